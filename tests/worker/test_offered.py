"""What a worker does with offers: takes them, declines them, or lets them wait a little."""

from __future__ import annotations

import asyncio

import msgspec

from midstream.agents import Turn
from midstream.protocol.agent_calls import (
    AttachParams,
    DeclineParams,
)
from midstream.protocol.frames import Detached, Offer
from tests.client.stage import Stage, in_simulation
from tests.worker.peer import ATTACHED, Taker, attached, registered, working
from tests.worker.telling import Told


@in_simulation
async def test_an_offer_that_is_not_wanted_is_declined(stage: Stage) -> None:
    """There is no room, or another process began it; one that is known is ignored."""
    agent = Told()
    async with working(stage, agent):
        link, _ = await registered(stage)
        await link.send(Offer("s", "begun", resumed=True))
        declined = await link.asked("agent.decline")
        assert declined.as_(DeclineParams).turn_id == "begun"
        await attached(link)
        await Taker(link).take(2)
        await link.send(Offer("s", "t", resumed=True))
        await link.send(Offer("s", "another", resumed=False))
        declined = await link.asked("agent.decline")
        assert declined.as_(DeclineParams).turn_id == "another"


@in_simulation
async def test_an_offer_waits_for_an_agent_that_is_being_stopped(stage: Stage) -> None:
    """Its turn has ended at the server; the next one is taken when it has ended here."""
    may_end = asyncio.Event()
    begun: list[str] = []

    async def agent(turn: Turn) -> None:
        begun.append(turn.turn_id)
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()

    async with working(stage, agent) as worker:
        link, _ = await registered(stage)
        await attached(link)
        assert await link.is_quiet()
        await link.send(Detached(1, "ended"))
        await link.send(Offer("s", "next", resumed=False))
        assert await link.is_quiet()
        may_end.set()
        asked = await link.asked("agent.attach")
        assert asked.as_(AttachParams).turn_id == "next"
        turn = msgspec.structs.replace(ATTACHED.turn, turn_id="next")
        await asked.result(msgspec.structs.replace(ATTACHED, channel=2, turn=turn))
        assert await link.is_quiet()
        assert (begun, worker.turns) == (["t", "next"], 1)


@in_simulation
async def test_an_offer_that_comes_before_the_end_of_the_turn_before_is_taken(stage: Stage) -> None:
    """The server may know of the end first; it is declined only if there is no room for a while."""
    agent = Told()
    async with working(stage, agent):
        link, _ = await registered(stage)
        await attached(link)
        await Taker(link).take(2)
        await link.send(Offer("s", "second", resumed=False))
        await link.send(Offer("s", "second", resumed=False))
        assert await link.is_quiet()
        await link.send(Detached(1, "ended"))
        asked = await link.asked("agent.attach")
        assert asked.as_(AttachParams).turn_id == "second"
        turn = msgspec.structs.replace(ATTACHED.turn, turn_id="second")
        result = msgspec.structs.replace(ATTACHED, channel=2, turn=turn)
        await asked.result(result)
        await Taker(link, result).take(2)
        await link.send(Offer("s", "third", resumed=False))
        declined = await link.asked("agent.decline")
        assert declined.as_(DeclineParams).turn_id == "third"
