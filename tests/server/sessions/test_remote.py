"""A turn that a worker runs: who may attach, what is taken, and what is there afterwards (SPEC 14)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.protocol.agents import AbsorbInputs, AddInternal, EndStep, EndText, MoveTool
from midstream.protocol.errors import Refused
from midstream.protocol.frames import Ack, Answered, InputsWaiting, WriteRefused, Wrote
from midstream.protocol.model import ApprovalResponse, ErrorPart, InteractionPart, TextPart, ToolPart
from tests.server.sessions.house import House, Street, in_simulation, refusal
from tests.server.sessions.workers import COMPLETED, Link, Remote, remote_agents

if TYPE_CHECKING:
    from midstream.protocol.model import Message
    from midstream.server.sessions.offers import RemoteAgents

APPROVED = ApprovalResponse(decision="approved")


async def begin(house: House, agents: RemoteAgents, link: Link) -> Remote:
    """Create the session, prompt, and attach to the turn."""
    await house.create()
    agents.register(link, 1)
    turn_id = (await house.prompt("a")).turn_id
    assert isinstance(turn_id, str)
    return await Remote.attach(house, link, turn_id)


def texts(messages: list[Message]) -> list[str]:
    """The texts of the agent, in order."""
    return [
        part.text
        for message in messages
        if message.role == "agent"
        for part in message.parts
        if isinstance(part, TextPart)
    ]


def reason(error: object) -> object:
    """The word that says why something was refused."""
    assert isinstance(error, Refused)
    return error.details["reason"]


# Writing


@in_simulation
async def test_a_worker_runs_a_turn_as_an_agent_in_the_server_does(street: Street) -> None:
    """Text, a tool with an approval, steering, the end: and readers see all of it."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        assert remote.attached.prompt.message_id == "a"
        assert (remote.attached.generation, remote.attached.next_n) == (1, 1)
        remote.say("Hello")
        remote.call_tool()
        remote.ask()
        await remote.acknowledged(durable=True)
        await house.respond("ask", APPROVED, subject="bob")
        [answered] = link.of(Answered)
        assert (answered.interaction.status, answered.interaction.resolved_by) == ("resolved", "bob")
        await house.prompt("b")
        assert [frame.count for frame in link.of(InputsWaiting)] == [1]
        remote.run()
        remote.write(MoveTool(part_id="tool", state="completed", output=2))
        n = remote.write(AbsorbInputs())
        await remote.acknowledged()
        [wrote] = link.of(Wrote)
        assert (wrote.n, [message.message_id for message in wrote.result.messages]) == (n, ["b"])
        remote.say("World", "p2")
        remote.write(COMPLETED)
        await link.until(lambda: link.detached)
        assert link.detached == ["ended"]
        messages = await house.equal(recorder)
        assert texts(messages) == ["Hello", "World"]
        assert [message.role for message in messages] == ["user", "agent", "user", "agent"]
        assert (await house.turn(remote.attached.turn.turn_id)).turn.state == "completed"  # type: ignore[union-attr]  # there is one


@in_simulation
async def test_a_refused_write_changes_nothing_and_the_next_ones_are_taken(street: Street) -> None:
    """It uses up its number, and says why."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        bad = [
            remote.append(7, "to no part"),
            remote.write(EndText(part_id="nothing")),
            remote.run("p1"),
            remote.write(MoveTool(part_id="p1", state="waiting-user")),
        ]
        remote.open_text("p1", 2)  # the id is taken
        bad.append(remote.n - 1)
        remote.append(1, "good")
        remote.write(EndStep(step_id="step"))
        await remote.acknowledged(durable=True)
        assert [frame.n for frame in link.of(WriteRefused)] == bad
        assert texts(await house.messages()) == ["good"]


@in_simulation
async def test_results_come_before_the_acknowledgement_of_their_write(street: Street) -> None:
    """So that a worker that hears of the one knows the other."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        numbers = [remote.write(AddInternal(parts=[TextPart(text=str(i))])) for i in range(5)]
        await remote.acknowledged()
        for n in numbers:
            wrote = next(i for i, one in enumerate(link.frames) if isinstance(one, Wrote) and one.n == n)
            acked = next(i for i, one in enumerate(link.frames) if isinstance(one, Ack) and one.n >= n)
            assert wrote < acked


@in_simulation
async def test_what_was_taken_is_not_taken_again_and_a_gap_ends_the_attachment(street: Street) -> None:
    """The numbers of one turn are consecutive."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        n = remote.append(1, "once")
        await remote.acknowledged()
        remote.append(1, "twice", n)
        remote.append(1, "too early", n + 2)
        await link.until(lambda: link.detached)
        assert link.detached == ["gap"]
        again = await Remote.attach(house, link, remote.attached.turn.turn_id, generation=1)
        assert (again.attached.generation, again.n) == (2, n + 1)
        again.handle("p1")
        again.append(1, ".")
        again.write(EndStep(step_id="step"))
        await again.acknowledged()
        assert texts(await house.messages()) == ["once."]


@in_simulation
async def test_a_worker_that_ignores_its_window_is_detached(street: Street) -> None:
    """What waits for a session is bounded."""
    agents = remote_agents(window_bytes=100)
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        for _ in range(11):
            remote.call_tool(f"tool {remote.n}")
        await link.until(lambda: link.detached)
        assert link.detached == ["overloaded"]


@in_simulation
async def test_a_worker_that_does_not_read_is_detached(street: Street) -> None:
    """Else what it is told would wait without bound."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        link.is_behind = True
        remote.append(7, "refused")
        await link.until(lambda: link.detached)
        assert link.detached == ["overloaded"]


# Who holds the turn


@in_simulation
async def test_of_two_workers_the_first_to_attach_runs_the_turn(street: Street) -> None:
    """The other is told, and what it sends to a channel of its own fancy is nothing."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        first, second = Link("first"), Link("second")
        agents.register(second, 1)
        remote = await begin(house, agents, first)
        turn_id = remote.attached.turn.turn_id
        assert reason(await refusal(Remote.attach(house, second, turn_id))) == "turn_taken"
        remote.say("mine")
        await remote.acknowledged()
        assert texts(await house.messages()) == ["mine"]


@in_simulation
async def test_at_once_only_one_gets_it(street: Street) -> None:
    """The mailbox decides."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        links = [Link(str(number)) for number in range(5)]
        for link in links:
            agents.register(link, 1)
        await house.create()
        turn_id = str((await house.prompt("a")).turn_id)
        tries = await asyncio.gather(
            *(Remote.attach(house, link, turn_id) for link in links), return_exceptions=True
        )
        assert sum(isinstance(one, Remote) for one in tries) == 1
        assert {reason(one) for one in tries if not isinstance(one, Remote)} == {"turn_taken"}


@in_simulation
async def test_the_holder_comes_back_by_its_generation_and_fences_its_old_self(street: Street) -> None:
    """Also while the server has not noticed that the old connection is dead."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        old, new = Link("w"), Link("w")
        remote = await begin(house, agents, old)
        remote.open_text()
        remote.append(1, "old ")
        await remote.acknowledged()
        again = await Remote.attach(house, new, remote.attached.turn.turn_id, generation=1)
        assert old.detached == ["fenced"]
        remote.append(1, "nothing of this")
        again.handle("p1")
        again.append(1, "new")
        again.write(EndStep(step_id="step"))
        await again.acknowledged()
        assert texts(await house.messages()) == ["old new"]
        stale = refusal(Remote.attach(house, old, remote.attached.turn.turn_id, generation=1))
        assert reason(await stale) == "fenced"


@in_simulation
async def test_a_turn_that_has_ended_takes_nobody(street: Street) -> None:
    """Whoever comes learns that it is over."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.write(COMPLETED)
        await link.until(lambda: link.detached)
        error = await refusal(Remote.attach(house, link, remote.attached.turn.turn_id, generation=1))
        assert reason(error) == "turn_ended"


@in_simulation
async def test_a_server_with_an_agent_of_its_own_takes_no_worker(street: Street) -> None:
    """It says so."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        assert reason(await refusal(Remote.attach(house, Link("w"), turn.turn_id))) == "not_remote"


# The end of a turn


@in_simulation
async def test_a_stop_reaches_the_worker_at_once_and_nothing_enters_after_it(street: Street) -> None:
    """Partial text stays, a tool whose input streamed is failed, and no timer had to pass."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        remote.open_text()
        remote.append(1, "partial")
        await remote.acknowledged()
        before = street.loop.time()
        await house.stop()
        assert link.detached == ["ended"]
        assert street.loop.time() == before
        remote.append(1, " and more")
        remote.say("late", "p2")
        await asyncio.sleep(1)
        assert texts(await house.equal(recorder)) == ["partial"]


@in_simulation
async def test_the_next_turn_is_offered_when_one_ends(street: Street) -> None:
    """Queued input starts it in the same commit."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        await house.prompt("b", delivery="queue")
        remote.write(COMPLETED)
        await link.until(lambda: len(link.offers) == 2)
        again = await Remote.attach(house, link, link.offers[1][0])
        assert again.attached.prompt.message_id == "b"


# A worker that is lost


@in_simulation
async def test_a_lost_worker_goes_on_within_its_lease(street: Street) -> None:
    """From the last write that was taken: the open message is there, streamed text and all."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        remote.open_text()
        remote.append(1, "before ")
        link.lose()
        await asyncio.sleep(29)
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert again.n == remote.n
        [message] = again.attached.messages
        assert texts([message]) == ["before "]
        again.handle("p1")
        again.append(1, "after")
        again.write(EndStep(step_id="step"))
        again.write(COMPLETED)
        await again.link.until(lambda: again.link.detached)
        assert texts(await house.equal(recorder)) == ["before after"]


@in_simulation
async def test_what_came_before_the_connection_was_lost_is_carried_out(street: Street) -> None:
    """A worker may send the end of its turn, and go."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.say("bye")
        remote.write(COMPLETED)
        link.lose()
        await asyncio.sleep(1)
        turn = (await house.turn(remote.attached.turn.turn_id)).turn
        assert turn is not None
        assert turn.state == "completed"
        assert texts(await house.messages()) == ["bye"]


@in_simulation
async def test_after_the_lease_the_turn_fails_and_keeps_its_text(street: Street) -> None:
    """The next one begins where input waits."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        remote.append(1, "partial")
        await remote.acknowledged()
        await house.prompt("b", delivery="queue")
        link.lose()
        await asyncio.sleep(29.9)
        assert (await house.turn()).turn is not None
        await asyncio.sleep(0.2)
        turn = (await house.turn(remote.attached.turn.turn_id)).turn
        assert turn is not None
        assert (turn.state, turn.error.code if turn.error else "") == ("failed", "agent_lost")
        messages = await house.messages()
        assert texts(messages) == ["partial"]
        assert [part.code for part in messages[1].parts if isinstance(part, ErrorPart)] == ["agent_lost"]
        assert (await house.turn()).turn is not None


@in_simulation
async def test_answers_given_while_the_worker_is_away_are_there_when_it_is_back(street: Street) -> None:
    """Of an open message, and of one that a steering input has closed meanwhile."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.call_tool()
        remote.ask("one")
        await remote.acknowledged()
        await house.prompt("b")
        remote.write(AbsorbInputs())
        await remote.acknowledged()
        link.lose()
        await house.respond("one", APPROVED)
        again = await Remote.attach(
            house, Link("w"), remote.attached.turn.turn_id, generation=1, waiting=["one"]
        )
        assert [part.status for part in again.attached.interactions] == ["resolved"]
        again.run()
        await again.acknowledged(durable=True)
        assert not again.link.of(WriteRefused)


@in_simulation
async def test_results_that_were_lost_with_the_connection_are_told_again(street: Street) -> None:
    """And refusals."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        good = remote.write(AddInternal(parts=[TextPart(text="note")]))
        bad = remote.run("nothing")
        await remote.acknowledged()
        link.lose()
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert [(n, len(result.messages)) for n, result in again.attached.results] == [(good, 1)]
        assert [(n, error.code) for n, error in again.attached.refused] == [(bad, "illegal_transition")]


# A server that is lost


@in_simulation
async def test_after_a_crash_the_turn_stands_as_its_last_commit_left_it(street: Street) -> None:
    """What is sent again from there makes the text whole, and readers end equal."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        remote.open_text()
        remote.append(1, "stored ")
        remote.call_tool()  # a commit, in the middle of the text
        await remote.acknowledged(durable=True)
        sent = [remote.append(1, "lost "), remote.append(1, "too")]
        await remote.acknowledged()
        await asyncio.sleep(1)
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        new = Link("w")
        agents.register(new, 1)
        again = await Remote.attach(house, new, remote.attached.turn.turn_id, generation=1)
        assert (again.attached.next_n, again.attached.durable_n) == (sent[0], sent[0] - 1)
        assert texts(again.attached.messages) == ["stored "]
        again.handle("p1")
        again.append(1, "lost ")
        again.append(1, "too")
        again.write(EndStep(step_id="step"))
        await again.acknowledged(durable=True)
        recorder = await house.resume(recorder)
        assert texts(await house.equal(recorder)) == ["stored lost too"]


@in_simulation
async def test_a_turn_with_a_pending_approval_survives_the_server(street: Street) -> None:
    """It can be answered before the worker is back, and the tool runs once."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        remote = await begin(house, agents, Link("w"))
        remote.call_tool()
        remote.ask()
        await remote.acknowledged(durable=True)
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        [pending] = await house.asked()
        assert pending.interaction.interaction_id == "ask"
        await house.respond("ask", APPROVED)
        new = Link("w")
        again = await Remote.attach(house, new, remote.attached.turn.turn_id, generation=1)
        [part] = again.attached.interactions
        assert isinstance(part, InteractionPart)
        assert part.status == "resolved"
        again.run()
        again.run()
        await again.acknowledged()
        assert len(new.of(WriteRefused)) == 1
        [tool] = [
            part for message in await house.messages() for part in message.parts if isinstance(part, ToolPart)
        ]
        assert tool.state == "running"


@in_simulation
async def test_a_stop_of_the_server_stores_what_was_streamed(street: Street) -> None:
    """Nothing has to be sent again after it."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        n = remote.append(1, "streamed")
        await remote.acknowledged()
    assert link.detached == ["reload"]
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert (again.attached.next_n, again.attached.durable_n) == (n + 1, n)
        assert texts(again.attached.messages) == ["streamed"]


@in_simulation
async def test_after_a_crash_the_lease_runs_from_the_start(street: Street) -> None:
    """And a turn that nobody had taken is offered."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        remote = await begin(house, agents, Link("w"))
        remote.say("a")
        await remote.acknowledged(durable=True)
        await house.crash()
    async with street.house(remote=remote_agents()) as house:
        await asyncio.sleep(29)
        assert (await house.turn()).turn is not None
        await asyncio.sleep(2)
        turn = (await house.turn(remote.attached.turn.turn_id)).turn
        assert turn is not None
        assert turn.error is not UNSET
        assert turn.error.code == "agent_lost"
        await house.prompt("b")
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        agents.register(link, 1)
        [(turn_id, resumed)] = link.offers
        assert not resumed
        remote = await Remote.attach(house, link, turn_id)
        assert remote.attached.prompt.message_id == "b"
