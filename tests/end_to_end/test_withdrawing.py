"""A question that its agent takes back: nobody is left with an approval that nobody waits for (SPEC 14.7)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from midstream.protocol.calls import StopResult
from tests.end_to_end.approvals import answer, interactions, pending, respond, tools
from tests.end_to_end.stage import OpenStage
from tests.end_to_end.test_reports_answers import begin_asking, listed, refused


async def test_a_question_whose_agent_gives_it_up_is_cancelled_for_everybody(open_stage: OpenStage) -> None:
    """The tool is ready again, the turn goes on, and who answers late is told."""
    stage = await open_stage()
    reader = await stage.reader()
    asking = await begin_asking(stage, reader)
    asking.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking.task
    await reader.line.until(lambda: not pending(reader))
    [part] = interactions(reader)
    assert (part.status, part.cancel_reason) == ("cancelled", "withdrawn")
    assert tools(reader)[asking.call.tool_call_id].state == "ready"
    assert await listed(reader.line) == []
    error = await refused(reader.line, part.interaction_id)
    assert (error.code, error.details["status"]) == ("interaction_closed", "cancelled")
    await asking.call.run()
    await asking.call.complete("did it anyway")
    await stage.finish(asking.turn, reader)
    assert reader.replica.turns[asking.turn.turn_id].state == "completed"
    await stage.proves(reader)


async def test_a_stop_is_no_withdrawal(open_stage: OpenStage) -> None:
    """The turn is over before its agent is cancelled, so the reason stays that of the stop."""
    stage = await open_stage()
    reader = await stage.reader()
    asking = await begin_asking(stage, reader)
    await reader.line.ask(StopResult, "stop", session_id="s", turn_id=asking.turn.turn_id)
    await reader.line.until(lambda: not pending(reader))
    asking.task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await asking.task
    [part] = interactions(reader)
    assert part.cancel_reason == "turn_stopped"
    await stage.proves(reader)


@pytest.mark.parametrize("first", ["answer", "withdrawal"])
async def test_of_an_answer_and_a_withdrawal_the_first_one_counts(open_stage: OpenStage, first: str) -> None:
    """Both are sent before either is heard of; the outcome is one of them, whole, for everybody."""
    stage = await open_stage()
    reader = await stage.reader()
    asking = await begin_asking(stage, reader)
    if first == "withdrawal":
        asking.task.cancel()
    sent = await respond(reader.line, asking.asked.interaction_id, answer("approved", "yes"))
    if first == "answer":
        asking.task.cancel()
    with suppress(asyncio.CancelledError):
        await asking.task
    with suppress(Exception):
        await sent
    await reader.line.until(lambda: not pending(reader))
    [part] = interactions(reader)
    assert part.status in {"resolved", "cancelled"}
    assert (part.status == "resolved") == bool(part.resolved_by)
    assert tools(reader)[asking.call.tool_call_id].state == "ready"
    await stage.proves(reader)
