"""What similar systems get wrong, of approvals: who comes back, who is too late, and what fails afterwards.

Real connections and a real file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from midstream.protocol.calls import InteractionsResult, StopResult
from midstream.protocol.errors import MidstreamError
from midstream.protocol.model import ApprovalResponse, InteractionPart
from midstream.protocol.values import Value
from midstream.server import Approval, Question, QuestionOption, ToolCall, Turn, TurnFailed
from tests.end_to_end.approvals import answer, interactions, pending, respond, tools
from tests.end_to_end.stage import OpenStage, Stage
from tests.laws.line import Line
from tests.laws.reader import Reader


async def until_pending(reader: Reader) -> InteractionPart:
    """Wait until something waits for an answer, and return it."""
    await reader.line.until(lambda: bool(pending(reader)))
    return pending(reader)[0]


async def listed(line: Line) -> list[str]:
    """Return the ids of what waits, as the call `interactions` says."""
    items = (await line.ask(InteractionsResult, "interactions", session_id="s")).items
    return [item.interaction.interaction_id for item in items]


async def refused(line: Line, interaction_id: str, decision: str = "approved") -> MidstreamError:
    """Respond, and return the error that comes."""
    with pytest.raises(MidstreamError) as late:
        await (await respond(line, interaction_id, answer(decision, "late")))
    return late.value


async def begin_asking(stage: Stage, reader: Reader, expires_in: float | None = None) -> Asking:
    """Start a turn whose agent asks about a tool, and wait until that is seen."""
    turn = await stage.turn()
    async with turn.step() as step:
        call = await step.tool("t", input="x")
    task = asyncio.create_task(turn.ask_approval(call, title="May I?", expires_in=expires_in))
    return Asking(turn, call, task, await until_pending(reader))


class Asking:
    """A turn that waits for an approval."""

    def __init__(
        self, turn: Turn, call: ToolCall, task: asyncio.Task[Approval], asked: InteractionPart
    ) -> None:
        self.turn = turn
        self.call = call
        self.task = task
        self.asked = asked


async def test_a_pending_approval_is_there_after_a_reload_and_on_a_second_device(
    open_stage: OpenStage,
) -> None:
    """Whoever comes sees it, and can answer it; the agent never noticed that all were gone."""
    stage = await open_stage()
    first = await stage.reader()
    asking = await begin_asking(stage, first)
    await first.leave()
    fresh, second = await stage.reader(), await stage.reader()
    await first.rejoin(await stage.line())
    for reader in (first, fresh, second):
        assert pending(reader) == [asking.asked]
        assert tools(reader)[asking.call.tool_call_id].state == "waiting-user"
        assert await listed(reader.line) == [asking.asked.interaction_id]
    await (await respond(second.line, asking.asked.interaction_id, answer("approved", "here")))
    assert (await asking.task).approved
    await stage.finish(asking.turn, first)
    assert await listed(first.line) == []
    await stage.proves(first)


async def test_an_approval_that_waits_when_the_server_restarts_is_found_cancelled(
    open_stage: OpenStage,
) -> None:
    """An agent in the server's process is gone with it, so nobody could act on an answer; that is said."""
    stage = await open_stage()
    reader = await stage.reader()
    asking = await begin_asking(stage, reader)
    await stage.restart()
    await reader.rejoin(await stage.line())
    for one in (reader, await stage.reader()):
        [part] = interactions(one)
        assert (part.status, part.cancel_reason) == ("cancelled", "runtime_interrupted")
        assert tools(one)[asking.call.tool_call_id].error == "runtime_interrupted"
        error = await refused(one.line, part.interaction_id)
        assert (error.code, error.details["status"]) == ("interaction_closed", "cancelled")
        assert one.replica.turns[asking.turn.turn_id].state == "failed"
    assert asking.task.done()


async def close_by_response(stage: Stage, reader: Reader, asking: Asking) -> None:
    """Answer it."""
    assert stage.running.connections
    await (await respond(reader.line, asking.asked.interaction_id, answer("denied", "no")))


async def close_by_stop(stage: Stage, reader: Reader, asking: Asking) -> None:
    """Stop its turn."""
    assert stage.running.connections
    await reader.line.ask(StopResult, "stop", session_id="s", turn_id=asking.turn.turn_id)


async def close_by_its_turns_end(stage: Stage, reader: Reader, asking: Asking) -> None:
    """Let the agent return without the answer."""
    await stage.finish(asking.turn, reader)


async def close_by_failure(stage: Stage, reader: Reader, asking: Asking) -> None:
    """Let the agent fail without the answer."""
    await stage.finish(asking.turn, reader, TurnFailed("gone", "The model went away."))


async def close_by_expiry(stage: Stage, reader: Reader, asking: Asking) -> None:
    """Let its time come."""
    assert stage.running.connections
    assert (await asking.task).status == "expired"
    await reader.line.until(lambda: not pending(reader))


Closing = Callable[[Stage, Reader, Asking], Awaitable[None]]
CLOSINGS: dict[str, tuple[Closing, str, str | None]] = {
    "a response": (close_by_response, "resolved", None),
    "a stop": (close_by_stop, "cancelled", "turn_stopped"),
    "its turn's end": (close_by_its_turns_end, "cancelled", "turn_stopped"),
    "a failure": (close_by_failure, "cancelled", "turn_stopped"),
    "its expiry": (close_by_expiry, "expired", None),
}


@pytest.mark.parametrize("closing", CLOSINGS)
async def test_an_answer_to_an_interaction_that_is_closed_is_told_the_outcome(
    open_stage: OpenStage, closing: str
) -> None:
    """And changes nothing; neither does one to an interaction that never was."""
    close, status, reason = CLOSINGS[closing]
    stage = await open_stage()
    reader = await stage.reader()
    asking = await begin_asking(stage, reader, expires_in=0.05 if status == "expired" else None)
    await close(stage, reader, asking)
    [part] = interactions(reader)
    assert (part.status, part.cancel_reason or None) == (status, reason)
    version = reader.replica.version
    for _ in range(2):
        error = await refused(reader.line, part.interaction_id)
        assert (error.code, error.details["status"]) == ("interaction_closed", status)
        expected = msgspec.to_builtins(part.response) if part.response else None
        assert error.details["response"] == expected
        assert error.details["resolved_by"] == ("local" if status == "resolved" else None)
        unknown = await refused(reader.line, "never")
        assert (unknown.code, unknown.details) == ("not_found", {"kind": "interaction", "id": "never"})
    assert (interactions(reader), reader.replica.version) == ([part], version)


def answers(**values: Value) -> Value:
    """Return a response to questions, by their ids."""
    return {
        "kind": "question",
        "answers": [{"question_id": name, "value": value} for name, value in values.items()],
    }


TWICE: Value = [{"question_id": "name", "value": "Ada"}, {"question_id": "name", "value": "Bob"}]
FITTING = answers(many=["red", "blue"], name="Ada", one="red")
"""In another order than the questions."""
MISFITS: dict[str, tuple[Value, str]] = {
    "an approval": (answer("approved", "yes"), "response.kind"),
    "of no kind": ({"answers": []}, "response.kind"),
    "no response": (None, "response"),
    "no answers": ({"kind": "question"}, "response.answers"),
    "an empty list": ({"kind": "question", "answers": []}, "response.answers"),
    "one is missing": (answers(name="Ada", one="red"), "response.answers"),
    "one that was not asked": (
        answers(name="A", one="red", many=[], more="x"),
        "response.answers[3].question_id",
    ),
    "one twice": ({"kind": "question", "answers": TWICE}, "response.answers[1].question_id"),
    "no option": (answers(name="Ada", one="green", many=[]), "response.answers[1].value"),
    "one is no option": (
        answers(name="Ada", one="red", many=["red", "x"]),
        "response.answers[2].value",
    ),
    "an option twice": (answers(name="Ada", one="red", many=["red", "red"]), "response.answers[2].value"),
    "a list for one": (answers(name=["Ada"], one="red", many=[]), "response.answers[0].value"),
    "one for a list": (answers(name="Ada", one="red", many="red"), "response.answers[2].value"),
    "a number": (answers(name=1, one="red", many=[]), "response.answers[0].value"),
    "nothing": (answers(name=None, one="red", many=[]), "response.answers[0].value"),
}


async def test_an_answer_that_does_not_fit_its_question_is_refused_by_its_field(
    open_stage: OpenStage,
) -> None:
    """It leaves the question pending for all, and the next one may fit."""
    stage = await open_stage()
    reader = await stage.reader()
    turn = await stage.turn()
    colours = [QuestionOption(value=value) for value in ("red", "blue")]
    asking = asyncio.create_task(
        turn.ask(
            Question(question_id="name", question="Who?"),
            Question(question_id="one", question="Which?", options=colours),
            Question(question_id="many", question="Which ones?", options=colours, multiple=True),
            title="Three things",
        )
    )
    asked = await until_pending(reader)
    version = reader.replica.version
    for name, (response, field) in MISFITS.items():
        with pytest.raises(MidstreamError) as refused_one:
            await (await respond(reader.line, asked.interaction_id, response))
        error = refused_one.value
        assert (name, error.code, error.details.get("field")) == (name, "invalid", field)
    assert (pending(reader), reader.replica.version) == ([asked], version)
    await (await respond(reader.line, asked.interaction_id, FITTING))
    assert (await asking).values == {"name": "Ada", "one": "red", "many": ["red", "blue"]}
    await stage.finish(turn, reader)
    await stage.proves(reader)


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_what_was_answered_before_the_run_failed_is_not_asked_again(
    open_stage: OpenStage, decision: str
) -> None:
    """The answer stays, through a restart too, and the next turn's agent finds it in its context."""
    stage = await open_stage()
    reader = await stage.reader()
    asking = await begin_asking(stage, reader)
    await (await respond(reader.line, asking.asked.interaction_id, answer(decision, "I said so")))
    assert (await asking.task).approved == (decision == "approved")
    await stage.finish(asking.turn, reader, TurnFailed("gone", "The model went away."))
    for _ in range(2):
        assert await listed(reader.line) == []
        assert [part.status for part in interactions(reader)] == ["resolved"]
        await stage.restart()
        await reader.rejoin(await stage.line())
    turn = await stage.turn("Once more")
    told = [part for message in (await turn.context()).messages for part in message.parts]
    [known] = [part for part in told if isinstance(part, InteractionPart)]
    assert isinstance(known.response, ApprovalResponse)
    assert (known.status, known.response.decision) == ("resolved", decision)
    await stage.finish(turn, reader)
    assert [part.interaction_id for part in interactions(reader)] == [known.interaction_id]
    await stage.proves(reader)
