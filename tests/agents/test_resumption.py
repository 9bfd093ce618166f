"""What another process left of a turn is seen, taken over once, or ended once."""

from __future__ import annotations

import pytest
from msgspec import structs

from midstream.agents.resumption import Resumption
from midstream.protocol.agents import AbandonStep, EndText, MoveTool
from midstream.protocol.model import (
    InteractionPart,
    InteractionRequest,
    InteractionStatus,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolState,
)

MESSAGE = Message(
    message_id="m",
    session_id="s",
    turn_id="t",
    sequence=2,
    revision=1,
    role="agent",
    visibility="visible",
    created_at=1,
    updated_at=1,
    state="streaming",
    parts=[],
)


def left(*parts: Part) -> Resumption:
    """Return a turn with these parts in its open message."""
    return Resumption([structs.replace(MESSAGE, parts=list(parts))])


def text(part_id: str, step_id: str, *, is_open: bool = True) -> TextPart:
    """Return a text."""
    return TextPart(part_id=part_id, step_id=step_id, text="x", state="streaming" if is_open else "done")


def tool(part_id: str, step_id: str, state: ToolState) -> ToolPart:
    """Return a tool call."""
    return ToolPart(
        part_id=part_id, step_id=step_id, tool_call_id=f"c{part_id}", tool_name="look", state=state
    )


def asked(
    interaction_id: str, title: str, *, call: str | None = None, status: InteractionStatus = "pending"
) -> InteractionPart:
    """Return an approval that was asked."""
    part = InteractionPart(
        interaction_id=interaction_id,
        interaction_type="approval",
        status=status,
        request=InteractionRequest(title=title, expires_at=7),
    )
    return part if call is None else structs.replace(part, tool_call_id=call)


def test_the_open_step_is_the_newest_in_which_something_streams() -> None:
    """With what streams in it."""
    reasoning = ReasoningPart(part_id="r", step_id="two", text="", state="streaming")
    arguments = tool("a", "two", "input-streaming")
    resumption = left(text("p", "one"), text("q", "two", is_open=False), reasoning, arguments)
    assert resumption.open_step_id == "two"
    assert resumption.texts("two") == [reasoning]
    assert resumption.streaming_calls("two") == [arguments]


@pytest.mark.parametrize("parts", [[], [text("p", "one", is_open=False)], [tool("a", "one", "ready")]])
def test_a_step_in_which_nothing_streams_is_not_open(parts: list[Part]) -> None:
    """Whether it was committed cannot be known, and need not be."""
    resumption = left(*parts)
    assert resumption.open_step_id is None
    assert list(resumption.endings()) == []


def test_an_open_step_is_taken_over_once() -> None:
    """Then it is its agent's, and nothing of it is ended."""
    resumption = left(text("p", "one"), text("q", "two"))
    resumption.take("two")
    assert resumption.open_step_id is None
    assert list(resumption.endings()) == [AbandonStep(step_id="one")]
    assert list(resumption.endings()) == []


def test_what_nobody_took_over_is_no_longer_open_once_it_was_ended() -> None:
    """A step that is gone cannot be gone on with."""
    resumption = left(text("p", "one"))
    assert list(resumption.endings()) == [AbandonStep(step_id="one")]
    assert resumption.open_step_id is None


@pytest.mark.parametrize("state", ["ready", "waiting-user", "running", "completed", "failed"])
def test_a_step_whose_tool_got_past_its_arguments_is_not_undone(state: ToolState) -> None:
    """What streams in it ends; the tool is for the agent to see to."""
    arguments = tool("a", "one", "input-streaming")
    resumption = left(text("p", "one"), tool("b", "one", state), arguments)
    endings = list(resumption.endings())
    assert endings[0] == EndText(part_id="p")
    assert isinstance(endings[1], MoveTool)
    assert (endings[1].part_id, endings[1].state, len(endings)) == ("a", "failed", 2)
    assert resumption.is_given_up(arguments)


def test_calls_that_have_not_ended_are_there_in_order() -> None:
    """Whatever step they are of."""
    states: list[ToolState] = ["completed", "ready", "failed", "waiting-user", "running", "input-streaming"]
    parts = [tool(state, f"s{number}", state) for number, state in enumerate(states)]
    assert [part.state for part in left(*parts).calls()] == [
        "ready",
        "waiting-user",
        "running",
        "input-streaming",
    ]


def test_a_question_about_a_call_is_the_newest_that_was_asked_about_it() -> None:
    """Whatever it says, and whatever became of it."""
    first, second = (
        asked("1", "May I?", call="c", status="expired"),
        asked("2", "Really?", call="c", status="resolved"),
    )
    resumption = left(
        tool("a", "one", "ready"), first, second, asked("3", "May I?", call="d"), text("p", "one")
    )
    request = InteractionRequest(title="Whatever")
    assert resumption.asked("approval", request, "c") == second
    assert resumption.asked("question", request, "c") is None
    assert resumption.asked("approval", request, "e") is None


def test_a_question_about_no_call_is_the_same_only_where_it_asks_the_same() -> None:
    """And only if it waits, or its answer is the last thing that was written."""
    request = InteractionRequest(title="Go on?")
    pending, resolved = asked("1", "Go on?"), asked("1", "Go on?", status="resolved")
    assert left(pending, text("p", "one")).asked("approval", request, None) == pending
    assert left(text("p", "one"), resolved).asked("approval", request, None) == resolved
    assert left(resolved, text("p", "one")).asked("approval", request, None) is None
    assert left(pending).asked("approval", InteractionRequest(title="Stop?"), None) is None
    assert left(asked("1", "Go on?", call="c")).asked("approval", request, None) is None
