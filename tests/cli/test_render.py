"""A transcript prints every word once, in order, and says so where something was taken back."""

import random
from collections.abc import Sequence

import pytest
from msgspec import UNSET, UnsetType, structs

from midstream.cli.pieces import Heading, Line, Piece, Text
from midstream.cli.render import CLEARED, LEFT_OUT, TAKEN_BACK, Transcript
from midstream.protocol.model import (
    ApprovalResponse,
    DataPart,
    ErrorPart,
    InteractionPart,
    InteractionRequest,
    Message,
    Part,
    ReasoningPart,
    Role,
    StreamState,
    TextPart,
    ToolPart,
    Turn,
    TurnFailure,
    TurnState,
)


def message(
    sequence: int,
    *parts: Part,
    role: Role = "agent",
    revision: int = 1,
    turn_id: str | UnsetType = UNSET,
) -> Message:
    """Build a message whose parts are numbered by their place."""
    return Message(
        message_id=f"m{sequence}",
        session_id="s",
        turn_id=turn_id,
        sequence=sequence,
        revision=revision,
        role=role,
        visibility="visible",
        created_at=0,
        updated_at=0,
        parts=[
            structs.replace(part, part_id=part.part_id or f"p{sequence}.{number}", sequence=number)
            for number, part in enumerate(parts, start=1)
        ],
    )


def text(words: str, state: StreamState = "streaming") -> TextPart:
    """Build a text part."""
    return TextPart(text=words, state=state)


def thought(words: str, state: StreamState = "streaming") -> ReasoningPart:
    """Build a reasoning part."""
    return ReasoningPart(text=words, state=state)


def turn(state: TurnState, error: TurnFailure | UnsetType = UNSET) -> Turn:
    """Build the turn `t`."""
    return Turn(
        turn_id="t", revision=1, state=state, phase="starting", phase_since=0, started_at=0, error=error
    )


def said(pieces: Sequence[Piece]) -> str:
    """Return all text of some pieces."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def lines(pieces: Sequence[Piece]) -> list[str]:
    """Return the lines of some pieces."""
    return [piece.text for piece in pieces if isinstance(piece, Line)]


def test_what_was_printed_is_not_printed_again() -> None:
    """The same replica twice gives nothing; a longer text gives only its end."""
    transcript = Transcript()
    first = message(1, text("Hello"))
    assert transcript.update([first], {}) == [Heading("agent"), Text("p1.1", "text", "Hello", done=False)]
    assert transcript.update([first], {}) == []
    longer = message(1, text("Hello, you", "done"), revision=2)
    assert transcript.update([longer], {}) == [Text("p1.1", "text", ", you", done=True)]
    assert transcript.update([structs.replace(longer, revision=3)], {}) == []


def test_a_part_that_ends_without_more_text_is_ended() -> None:
    """The screen learns that the line is over even when the last frame brings no text."""
    transcript = Transcript()
    transcript.update([message(1, text("Hello"))], {})
    assert transcript.update([message(1, text("Hello", "done"), revision=2)], {}) == [
        Text("p1.1", "text", "", done=True)
    ]


def test_two_streams_that_alternate_are_printed_one_after_the_other() -> None:
    """The second text waits until the first is done, so that their words never mix."""
    transcript = Transcript()
    pieces = transcript.update([message(1, thought("I th"), text("The"))], {})
    pieces += transcript.update([message(1, thought("I think"), text("The ans"), revision=2)], {})
    assert said(pieces) == "I think"
    pieces = transcript.update([message(1, thought("I think", "done"), text("The answer"), revision=3)], {})
    assert pieces == [
        Text("p1.1", "reasoning", "", done=True),
        Text("p1.2", "text", "The answer", done=False),
    ]


def test_a_question_never_waits_for_text() -> None:
    """A person can answer although an earlier part still streams."""
    request = InteractionRequest(title="Delete it?")
    asked = InteractionPart(
        interaction_id="i", interaction_type="approval", status="pending", request=request
    )
    assert lines(Transcript().update([message(1, text("While"), asked)], {})) == ["Delete it?"]


def test_a_later_message_waits_for_one_that_streams() -> None:
    """Whatever order updates come in, messages are printed whole and in their order."""
    transcript = Transcript()
    later = message(2, text("later", "done"))
    assert said(transcript.update([message(1, text("ear")), later], {})) == "ear"
    assert said(transcript.update([message(1, text("early", "done"), revision=2), later], {})) == "lylater"


@pytest.mark.parametrize(
    "now",
    [
        pytest.param([text("Hel", "done")], id="shorter"),
        pytest.param([text("Help!", "done")], id="other"),
        pytest.param([], id="gone"),
        pytest.param([structs.replace(text("Hello", "done"), part_id="new")], id="another part"),
    ],
)
def test_text_that_was_taken_back_is_said_and_the_message_printed_again(now: list[Part]) -> None:
    """A crash loses what was only streamed; the terminal cannot unprint it."""
    transcript = Transcript()
    transcript.update([message(1, text("Hello"))], {})
    again = transcript.update([message(1, *now, revision=9)], {})
    assert again[:3] == [
        Text("p1.1", "text", "", done=True),
        Line("warning", TAKEN_BACK),
        Heading("agent"),
    ]
    assert said(again) == "".join(part.text for part in now if isinstance(part, TextPart | ReasoningPart))
    assert transcript.update([message(1, *now, revision=10)], {}) == []


def test_a_tool_is_said_at_each_of_its_states_once() -> None:
    """Streaming, ready, running and its result each have a line, the arguments are said once."""
    transcript = Transcript()
    streamed = ToolPart(tool_call_id="c", tool_name="add", state="input-streaming", input_text='{"a"')
    ready = ToolPart(tool_call_id="c", tool_name="add", state="ready", input={"a": 1})
    states = (
        streamed,
        structs.replace(streamed, input_text='{"a": 1}'),
        ready,
        structs.replace(ready, state="running"),
        structs.replace(ready, state="running", output=0, preliminary=True),
        structs.replace(ready, state="completed", output=2),
    )
    shown = [lines(transcript.update([message(1, part, revision=n)], {})) for n, part in enumerate(states)]
    assert shown == [["add …"], [], ['add {"a":1}'], ["add is running"], ["add … 0"], ["add → 2"]]


def test_a_tool_of_the_past_is_one_line() -> None:
    """History says of a tool what it was called with and what came of it."""
    call = ToolPart(tool_call_id="c", tool_name="add", state="ready", input={"a": 1})
    done = structs.replace(call, title="Sum", state="completed", output=2)
    failed = structs.replace(call, tool_call_id="d", state="failed", error="denied")
    assert lines(Transcript().update([message(1, done, failed)], {})) == [
        'Sum (add) {"a":1} → 2',
        'add {"a":1} failed: denied',
    ]


def test_the_outcome_of_an_approval_is_said_when_it_comes() -> None:
    """Whoever answers it, everybody reads who and how."""
    transcript = Transcript()
    request = InteractionRequest(title="Delete it?")
    asked = InteractionPart(
        interaction_id="i", interaction_type="approval", status="pending", request=request
    )
    transcript.update([message(1, asked)], {})
    response = ApprovalResponse(decision="denied", reason="too risky")
    answered = structs.replace(asked, status="resolved", response=response, resolved_by="ann")
    assert lines(transcript.update([message(1, answered, revision=2)], {})) == ["denied by ann: too risky"]


def test_own_messages_are_told_from_those_of_others() -> None:
    """The chat knows the ids that it sent."""
    transcript = Transcript()
    transcript.own.add("m1")
    pieces = transcript.update(
        [message(1, TextPart(text="mine"), role="user"), message(2, TextPart(text="theirs"), role="user")], {}
    )
    assert [piece.who for piece in pieces if isinstance(piece, Heading)] == ["you", "user"]


def test_a_stopped_turn_is_said_once_and_a_completed_one_never() -> None:
    """A turn's end needs words only where it did not end by itself."""
    transcript = Transcript()
    messages = [message(1, text("Hel", "done"), turn_id="t")]
    assert lines(transcript.update(messages, {"t": turn("running")})) == []
    assert lines(transcript.update(messages, {"t": turn("stopped")})) == ["stopped"]
    assert lines(transcript.update(messages, {"t": turn("stopped")})) == []
    assert lines(Transcript().update(messages, {"t": turn("completed")})) == []


def test_why_a_turn_failed_is_said_once() -> None:
    """The error part says it; the turn says it only where there is no such part."""
    failed = {"t": turn("failed", TurnFailure(code="broke", message="It broke."))}
    why = ErrorPart(scope="turn", code="broke", message="It broke.", recoverable=False)
    assert lines(Transcript().update([message(1, why, turn_id="t")], failed)) == ["It broke. (broke)"]
    assert lines(Transcript().update([message(1, turn_id="t")], failed)) == ["failed: It broke. (broke)"]


def test_earlier_messages_are_printed_on_request_only() -> None:
    """A page of the past that arrives does not appear below the present."""
    transcript = Transcript()
    present = message(3, text("now", "done"))
    past = [message(1, text("then ", "done")), message(2, text("later ", "done"))]
    transcript.update([present], {})
    assert transcript.update([*past, present], {}) == []
    assert said(transcript.earlier([*past, present])) == "then later "
    assert lines(transcript.earlier([*past, present])) == ["there is nothing earlier"]
    assert transcript.update([*past, present], {}) == []


def test_a_clear_is_said_and_what_follows_is_printed() -> None:
    """The messages stay on the terminal, so it must say that they are gone."""
    transcript = Transcript()
    transcript.update([message(1, text("old", "done"))], {})
    assert transcript.cleared(1) == []
    assert transcript.cleared(2) == [Line("note", CLEARED)]
    assert transcript.cleared(2) == []
    assert said(transcript.update([message(2, text("new", "done"))], {})) == "new"


def test_what_was_missed_in_between_is_said() -> None:
    """After a long absence the replica begins anew with the newest messages."""
    transcript = Transcript()
    transcript.update([message(1, text("old", "done"))], {})
    newest = [message(51, text("new", "done")), message(52, text("newer", "done"))]
    assert transcript.update(newest, {})[0] == Line("note", LEFT_OUT)
    assert transcript.update([*newest, message(53, text("newest", "done"))], {})[0] == Heading("agent")


def test_text_cannot_steer_the_terminal() -> None:
    """Escape sequences and marks of direction are removed from all that comes from the server."""
    parts = (text("a\x1b[2Jb\rc\u202ed\n", "done"), DataPart(data_type="x\x1by", data="\x9b"))
    pieces = Transcript().update([message(1, *parts)], {})
    assert said(pieces) == "a[2Jbcd\n"
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for line in lines(pieces) for letter in line)


@pytest.mark.parametrize("seed", range(20))
def test_however_updates_are_cut_the_same_text_is_printed(seed: int) -> None:
    """Two texts and a thought that grow by random pieces read like the whole message at once."""
    generator = random.Random(seed)
    goals = ["I think so. " * 3, "The answer is 42. " * 3, "And so on. " * 3]
    lengths = [0, 0, 0]
    transcript = Transcript()
    pieces: list[Piece] = []
    revision = 0
    while lengths != [len(goal) for goal in goals]:
        grown = generator.randrange(3)
        lengths[grown] = min(lengths[grown] + generator.randrange(9), len(goals[grown]))
        revision += 1
        parts = [
            (thought if index == 0 else text)(goal[:length], "done" if length == len(goal) else "streaming")
            for index, (goal, length) in enumerate(zip(goals, lengths, strict=True))
        ]
        pieces += transcript.update([message(1, *parts, revision=revision)], {})
    assert said(pieces) == "".join(goals)
    ended = [piece.part_id for piece in pieces if isinstance(piece, Text) and piece.done]
    assert ended == ["p1.1", "p1.2", "p1.3"]
