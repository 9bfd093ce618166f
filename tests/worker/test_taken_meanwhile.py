"""A turn that another worker took between the offer and the attach."""

from __future__ import annotations

import msgspec

from midstream.agents import Turn
from midstream.protocol.agent_calls import AttachParams, DetachParams, EmptyResult
from midstream.protocol.frames import Offer
from tests.client.stage import Stage, in_simulation
from tests.worker.peer import ATTACHED, registered, working


@in_simulation
async def test_a_process_that_does_not_go_on_gives_up_what_another_has_begun_meanwhile(stage: Stage) -> None:
    """It was offered as not begun; when the attach is carried out, another worker has written to it."""
    begun: list[Turn] = []

    async def agent(turn: Turn) -> None:
        begun.append(turn)

    async with working(stage, agent) as worker:
        link, _ = await registered(stage)
        await link.send(Offer("s", "t", resumed=False))
        asked = await link.asked("agent.attach")
        assert asked.as_(AttachParams).turn_id == "t"
        await asked.result(msgspec.structs.replace(ATTACHED, generation=2, next_n=5, durable_n=4))
        given_up = await link.asked("agent.detach")
        assert given_up.as_(DetachParams).channel == ATTACHED.channel
        await given_up.result(EmptyResult())
        assert worker.turns == 0
    assert not begun
