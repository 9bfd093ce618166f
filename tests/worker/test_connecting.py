"""A worker comes back: whatever is refused, put off or lost, its turns are attached to again, or let go."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from midstream.client.errors import IncompatibleServer
from midstream.protocol.agent_calls import (
    AttachParams,
    DetachParams,
    EmptyResult,
    RegisterResult,
    UnregisterParams,
)
from midstream.protocol.agents import EndTurn
from midstream.protocol.errors import (
    MidstreamError,
    NotFound,
    Overloaded,
    Refused,
    Unavailable,
    UnknownMethod,
)
from midstream.protocol.frames import Ack, Append, Detached, GoAway, Offer, WriteFrame
from midstream.worker import ConnectionRejected, Worker
from tests.client.stage import Stage, in_simulation, on_every_network
from tests.worker.peer import ATTACHED, Taker, again, attached, registered, working
from tests.worker.telling import Told


@on_every_network
async def test_a_turn_is_taken_written_and_ended(stage: Stage) -> None:
    """The frames are those of SPEC 14.1."""
    agent = Told()
    async with working(stage, agent) as worker:
        link, params = await registered(stage)
        assert (params.name, params.concurrency, params.resumes) == ("w", 1, False)
        await attached(link)
        taker = Taker(link)
        agent.say("Hello")
        await taker.take(3)
        agent.end()
        await taker.take(2)
        await taker.acknowledge(5)
        [end] = await taker.take()
        assert isinstance(end, WriteFrame)
        assert end.write == EndTurn(state="completed")
        await taker.acknowledge(6)
        await link.send(Detached(1, "ended"))
        assert await link.is_quiet()
        assert worker.turns == 0
        ops = [
            one.text if isinstance(one, Append) else type(one.write).__name__ for one in taker.writes.values()
        ]
        assert ops == ["BeginStep", "AddPart", "Hello", "EndText", "EndStep", "EndTurn"]
        assert list(taker.writes) == [1, 2, 3, 4, 5, 6]


@in_simulation
async def test_registering_is_tried_again_while_the_server_puts_it_off(stage: Stage) -> None:
    """With pauses, on one connection."""
    async with working(stage, Told()):
        link = await stage.peer.accept()
        for error in (Overloaded("Later"), Unavailable("Later"), Overloaded("Later")):
            asked = await link.asked("agent.register")
            await asked.error(error)
        asked = await link.asked("agent.register")
        await asked.result(RegisterResult(lease_ms=1))
        await attached(link)


@on_every_network
async def test_a_server_that_takes_no_workers_ends_them_with_the_reason(stage: Stage) -> None:
    """There is nothing to come back for."""
    worker = Worker(stage.peer.url, Told(), clock=stage.clock, random=stage.random)
    running = asyncio.ensure_future(worker.run())
    link = await stage.peer.accept()
    asked = await link.asked("agent.register")
    await asked.error(UnknownMethod("agent.register"))
    with pytest.raises(MidstreamError, match=r"agent\.register"):
        await running


@on_every_network
async def test_a_strange_answer_ends_the_worker(stage: Stage) -> None:
    """It is no server of this protocol."""
    worker = Worker(stage.peer.url, Told(), clock=stage.clock, random=stage.random)
    running = asyncio.ensure_future(worker.run())
    link = await stage.peer.accept()
    asked = await link.asked("agent.register")
    await asked.result(Strange())
    with pytest.raises(IncompatibleServer):
        await running


class Strange(msgspec.Struct):
    """No result of a register."""

    lease: str = "none"


@on_every_network
async def test_a_worker_that_is_replaced_stops_its_agents_and_ends(stage: Stage) -> None:
    """By 4506, which says not to come back."""
    agent = Told()
    worker = Worker(stage.peer.url, agent, clock=stage.clock, random=stage.random)
    running = asyncio.ensure_future(worker.run())
    link, _ = await registered(stage)
    await attached(link)
    await Taker(link).take(2)
    await link.close(4506, "worker_replaced")
    with pytest.raises(ConnectionRejected, match="4506"):
        await running
    assert agent.stopped.is_set()
    assert worker.turns == 0


@pytest.mark.parametrize("code", ["gap", "reload", "overloaded", "unheard_of"])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_attachment_that_ended_is_made_anew_where_the_server_is(code: str, seed: int) -> None:
    """On the same connection; the agent does not notice."""

    @in_simulation
    async def scenario(stage: Stage) -> None:
        agent = Told()
        async with working(stage, agent):
            link, _ = await registered(stage)
            await attached(link)
            agent.say("one", "two", "three")
            taker = Taker(link)
            await taker.take_all()
            await link.send(Detached(1, code))
            result = again(ATTACHED, channel=2, next_n=3, durable_n=2)
            params = await attached(link, result, offer=False)
            assert params == AttachParams(session_id="s", turn_id="t", generation=1)
            second = Taker(link, result)
            await second.take_all()
            assert {n: one.text for n, one in second.writes.items() if isinstance(one, Append)} == {
                n: one.text for n, one in taker.writes.items() if n > 2 and isinstance(one, Append)
            }
            assert agent.begun == 1

    scenario(seed)


@in_simulation
async def test_attaching_is_tried_again_while_the_server_puts_it_off(stage: Stage) -> None:
    """Its turn stays its own."""
    agent = Told()
    async with working(stage, agent):
        link, _ = await registered(stage)
        await link.send(Offer("s", "t", resumed=False))
        for error in (Unavailable("Later"), Refused("not_registered", "First"), Overloaded("Later")):
            asked = await link.asked("agent.attach")
            await asked.error(error)
        await attached(link, offer=False)
        agent.say("Here")
        await Taker(link).take(3)


@on_every_network
async def test_a_refused_attach_lets_the_turn_go_and_the_worker_takes_the_next(stage: Stage) -> None:
    """Another has it, or it has ended, or its session was deleted."""
    agent = Told()
    errors = [
        *(Refused(reason, "No") for reason in ("turn_taken", "turn_ended", "fenced", "not_remote")),
        NotFound("session", "s"),
    ]
    async with working(stage, agent) as worker:
        link, _ = await registered(stage)
        for error in errors:
            await link.send(Offer("s", "t", resumed=False))
            asked = await link.asked("agent.attach")
            await asked.error(error)
        assert await link.is_quiet()
        assert (worker.turns, agent.begun) == (0, 0)
        await attached(link)
        await Taker(link).take(2)
        assert (worker.turns, agent.begun) == (1, 1)


@pytest.mark.parametrize("reason", ["turn_ended", "fenced"])
def test_a_turn_that_ended_while_the_worker_was_away_stops_its_agent(reason: str) -> None:
    """Nothing of it is sent any more."""

    @in_simulation
    async def scenario(stage: Stage) -> None:
        agent = Told()
        async with working(stage, agent) as worker:
            link, _ = await registered(stage)
            await attached(link)
            await Taker(link).take(2)
            link.drop()
            agent.say("too late")
            link, _ = await registered(stage)
            asked = await link.asked("agent.attach")
            await asked.error(Refused(reason, "No"))
            await agent.stopped.wait()
            assert await link.is_quiet()
            assert worker.turns == 0

    scenario(0)


@in_simulation
async def test_a_lost_answer_to_the_first_attach_is_asked_for_again(stage: Stage) -> None:
    """Without an offer, and with the same instance."""
    agent = Told()
    async with working(stage, agent):
        link, first = await registered(stage)
        await link.send(Offer("s", "t", resumed=False))
        await link.asked("agent.attach")
        link.drop()
        link, second = await registered(stage)
        assert second == first
        params = await attached(link, again(ATTACHED), offer=False)
        assert params.generation is msgspec.UNSET
        agent.say("Here")
        await Taker(link).take(3)
        assert agent.begun == 1


@in_simulation
async def test_an_agent_whose_predecessors_words_are_gone_is_stopped(
    stage: Stage,
) -> None:
    """A server that forgets what it had taken from another process cannot be gone on with."""
    agent = Told()
    async with working(stage, agent, resumes=True) as worker:
        link, _ = await registered(stage)
        result = msgspec.structs.replace(ATTACHED, next_n=8, durable_n=4)
        await attached(link, result)
        await Taker(link, result).take(2)
        link.drop()
        link, _ = await registered(stage)
        await attached(link, again(result, next_n=5), offer=False)
        detach = await link.asked("agent.detach")
        assert detach.as_(DetachParams).channel == 1
        await detach.result(EmptyResult())
        await agent.stopped.wait()
        assert worker.turns == 0


@in_simulation
async def test_a_drain_outlives_its_connection(stage: Stage) -> None:
    """It registers again to attach, and at once takes itself out."""
    agent = Told()
    async with working(stage, agent) as worker:
        link, _ = await registered(stage)
        await attached(link)
        await Taker(link).take(2)
        draining = asyncio.ensure_future(worker.drain(600))
        asked = await link.asked("agent.unregister")
        assert isinstance(asked.params, UnregisterParams)
        link.drop()
        link, _ = await registered(stage)
        result = again(ATTACHED, next_n=3, durable_n=2)
        await attached(link, result, offer=False)
        await (await link.asked("agent.unregister")).result(EmptyResult())
        agent.end()
        taker = Taker(link, result)
        await taker.take(2)
        await taker.acknowledge(4)
        await taker.take()
        await taker.acknowledge(5)
        await draining


@in_simulation
async def test_a_server_that_goes_away_is_come_back_to_when_it_says(stage: Stage) -> None:
    """The turn goes on there."""
    agent = Told()
    async with working(stage, agent):
        link, _ = await registered(stage)
        await attached(link)
        await Taker(link).take(2)
        await link.send(GoAway("restart", 3_000))
        await link.gone()
        link, _ = await registered(stage)
        result = again(ATTACHED, next_n=1, durable_n=0)
        await attached(link, result, offer=False)
        taker = Taker(link, result)
        await taker.take(2)
        assert list(taker.writes) == [1, 2]


@on_every_network
async def test_frames_of_an_attachment_that_is_over_are_ignored(stage: Stage) -> None:
    """They crossed with the news."""
    agent = Told()
    async with working(stage, agent):
        link, _ = await registered(stage)
        await attached(link)
        await Taker(link).take(2)
        for channel in (0, 2, 99):
            await link.send(Ack(channel, 1_000, 1_000))
            await link.send(Detached(channel, "ended"))
        agent.say("Still here")
        [said] = await Taker(link).take()
        assert isinstance(said, Append)
        assert (said.text, agent.stopped.is_set()) == ("Still here", False)
