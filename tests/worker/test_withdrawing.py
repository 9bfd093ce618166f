"""A question that a worker's agent takes back: over a connection it is the same as in the server."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from midstream.agents import Turn
from midstream.protocol.model import InteractionPart, ToolPart
from tests.worker.stage import OpenWorkerStage, parts_of


async def ask_in_vain(turn: Turn) -> None:
    """Ask, wait for a moment, and go on without an answer."""
    async with turn.step() as step:
        call = await step.tool("t", input="x")
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await turn.ask_approval(call, title="May I?")
    await call.fail("Nobody answered.")


async def test_a_workers_agent_takes_a_question_back_by_a_timeout(open_stage: OpenWorkerStage) -> None:
    """Over a connection it is the same: a timeout around a question leaves nothing that waits."""
    stage = await open_stage()
    stage.work(ask_in_vain)
    session = await stage.session()
    turn = await session.prompt("Go on")
    assert (await turn.finished()).state == "completed"
    [asked] = parts_of(session.messages, InteractionPart)
    assert (asked.status, asked.cancel_reason) == ("cancelled", "withdrawn")
    [tool] = parts_of(session.messages, ToolPart)
    assert (tool.state, tool.error) == ("failed", "Nobody answered.")
    await stage.proves(await stage.reader(include_internal=True))
