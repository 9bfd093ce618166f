"""The older form becomes messages, turns and summaries; what has no place there is refused, never dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from msgspec import UNSET, structs

from midstream.protocol.export import Header
from midstream.protocol.four_type import NO_REASON, FourTypeReader
from midstream.protocol.into_four_type import FourTypeWriter
from midstream.protocol.lines import BadLine
from midstream.protocol.model import (
    ActionPart,
    ErrorPart,
    Message,
    Part,
    Summary,
    TextPart,
    Turn,
    TurnFailure,
)
from tests.whole_sessions import Whole, wholes

Made = Message | Turn | Summary
Record = dict[str, Any]


def user(message_id: str = "u", **fields: object) -> Record:
    """What a user said."""
    parts = [{"type": "text", "text": f"text of {message_id}", "state": "done"}]
    return {"type": "user", "message_id": message_id, "created_at": 10, "parts": parts, **fields}


def assistant(message_id: str = "a", **fields: object) -> Record:
    """What an agent said."""
    parts = [{"type": "text", "text": f"text of {message_id}", "state": "done"}]
    return {"type": "assistant", "message_id": message_id, "created_at": 20, "parts": parts, **fields}


ACTION: Record = {
    "type": "action", "message_id": "x", "created_at": 30, "action_id": "i", "action_type": "t",
    "state": "completed", "title": "T",
}  # fmt: skip
ERROR: Record = {
    "type": "error", "message_id": "e", "created_at": 40, "scope": "turn", "code": "c", "message": "m",
    "recoverable": True,
}  # fmt: skip


def read(*records: Record, session_id: str | None = "s") -> tuple[list[Made], Header]:
    """Read records to their end."""
    reader = FourTypeReader(session_id)
    made: list[Made] = []
    for record in records:
        made.extend(reader.take(json.dumps(record).encode() + b"\n"))
    last, header = reader.finish()
    return [*made, *last], header


def messages_of(made: list[Made]) -> list[Message]:
    """The messages alone."""
    return [one for one in made if isinstance(one, Message)]


def turns_of(made: list[Made]) -> list[Turn]:
    """The turns alone."""
    return [one for one in made if isinstance(one, Turn)]


def test_each_record_becomes_a_message_at_its_place() -> None:
    """Roles, parts and times; actions and errors are agent messages of their own."""
    made, header = read(
        user(input_type="text", turn_id="t", sequence=3, updated_at=15),
        assistant(turn_id="t", sequence=4),
        {**ACTION, "turn_id": "t", "sequence": 7},
        {**ERROR, "turn_id": "t", "sequence": 8},
    )
    messages = messages_of(made)
    assert [(one.sequence, one.role, one.state) for one in messages] == [
        (1, "user", UNSET),
        (2, "agent", "done"),
        (3, "agent", "done"),
        (4, "agent", "done"),
    ]
    assert messages[0].parts == [TextPart(part_id="part_1", sequence=1, text="text of u")]
    assert (messages[0].created_at, messages[0].updated_at) == (10, 15)
    assert messages[1].parts == [TextPart(part_id="part_1", sequence=1, text="text of a", state="done")]
    assert isinstance(messages[2].parts[0], ActionPart)
    assert isinstance(messages[3].parts[0], ErrorPart)
    assert {one.turn_id for one in messages} == {"t"}
    session = header.session
    assert (session.session_id, session.message_count) == ("s", 4)
    assert (session.created_at, session.updated_at, header.version) == (10, 40, 1)


@pytest.mark.parametrize(
    ("records", "state", "error"),
    [
        ([user(), assistant()], "completed", UNSET),
        ([user(), assistant(status="completed"), ERROR], "completed", UNSET),
        ([user(status="done"), assistant(status="done"), assistant("b")], "completed", UNSET),
        ([user(), assistant(status="stopped")], "stopped", UNSET),
        ([user(), assistant(status="streaming")], "running", UNSET),
        ([user(), assistant(status="failed")], "failed", NO_REASON),
        ([user(), assistant(status="failed"), ERROR], "failed", TurnFailure(code="c", message="m")),
        ([user(), ERROR, assistant("b", status="failed")], "failed", TurnFailure(code="c", message="m")),
        ([user(), {**ERROR, "scope": "session"}, assistant(status="failed")], "failed", NO_REASON),
        ([user(), ERROR], "failed", TurnFailure(code="c", message="m")),
        ([user(), assistant("a"), user("v"), assistant("b", status="stopped")], "stopped", UNSET),
        ([user()], "completed", UNSET),
    ],
)
def test_the_status_of_the_last_answer_is_the_outcome_of_the_turn(
    records: list[Record], state: str, error: object
) -> None:
    """A message is streaming or done; success, stop and failure are the turn's."""
    made, _ = read(*({**record, "turn_id": "t"} for record in records))
    [turn] = turns_of(made)
    assert (turn.turn_id, turn.state, turn.error) == ("t", state, error)
    assert (turn.finished_at is UNSET) == (state == "running")
    assert turn.started_at == 10
    streaming = [one.state for one in messages_of(made)].count("streaming")
    assert streaming == (1 if state == "running" else 0)


def test_turns_follow_each_other_and_each_comes_once() -> None:
    """When the next begins; an answer without a turn has one of its own where it did not complete."""
    made, _ = read(
        user("u1", turn_id="one"),
        assistant("a1", turn_id="one"),
        user("u2", turn_id="two"),
        assistant("a2", status="stopped"),
        assistant("a3"),
    )
    assert [(turn.turn_id, turn.state) for turn in turns_of(made)] == [
        ("one", "completed"),
        ("two", "completed"),
        ("turn_a2", "stopped"),
    ]
    assert [one.turn_id for one in messages_of(made)] == ["one", "one", "two", "turn_a2", UNSET]


def test_a_summary_is_no_message_and_what_follows_moves_up() -> None:
    """It closes what stands before it, since the one before."""
    summary = assistant("x", kind="summary", sequence=3, parts=[
        {"type": "text", "text": "one", "state": "done"}, {"type": "text", "text": "two", "state": "done"},
    ])  # fmt: skip
    made, header = read(
        user("u1", sequence=1), assistant("a1", sequence=2), summary, user("u2", sequence=4),
        user("y", kind="summary", sequence=5), assistant("a2", sequence=6),
    )  # fmt: skip
    assert [one.sequence for one in messages_of(made)] == [1, 2, 3, 4]
    assert [one for one in made if isinstance(one, Summary)] == [
        Summary(from_sequence=1, through_sequence=2, text="one\n\ntwo", created_at=20),
        Summary(from_sequence=3, through_sequence=3, text="text of y", created_at=10),
    ]
    assert (header.session.message_count, header.session.summarized_through) == (4, 3)


def test_the_session_is_the_one_that_was_asked_for_or_the_one_that_is_named() -> None:
    """One of them must be known from the first record on."""
    made, header = read(user(session_id="old"), assistant(), session_id=None)
    assert header.session.session_id == "old"
    assert {one.session_id for one in messages_of(made)} == {"old"}
    assert read(user(session_id="old"))[1].session.session_id == "s"


CONTEXT = {"type": "context", "tag": "page", "context": "c"}
REFUSED: dict[str, tuple[list[Record], int, str]] = {
    "no record": ([], 1, ""),
    "an unknown type": ([{**user(), "type": "robot"}], 1, "type"),
    "no type": ([{"message_id": "m", "created_at": 1}], 1, "type"),
    "no id": ([{**user(), "message_id": ""}], 1, "message_id"),
    "no time": ([{**user(), "created_at": None}], 1, "created_at"),
    "an unknown status": ([assistant(status="lost")], 1, "status"),
    "a status that nothing of a user has": ([user(status="stopped")], 1, "status"),
    "a field that has no place": ([assistant(model="gpt")], 1, "model"),
    "a part's field that has no place": (
        [user(parts=[{"type": "text", "text": "t", "colour": 1}])], 1, "parts[0].colour",
    ),
    "a sequence that does not ascend": ([user("u", sequence=2), user("v", sequence=2)], 2, "sequence"),
    "another session": ([user(session_id="a"), user("v", session_id="b")], 2, "session_id"),
    "a text of a user that streams": (
        [user(parts=[{"type": "text", "text": "t", "state": "streaming"}])], 1, "parts[0].state",
    ),
    "a text of an agent without state": (
        [assistant(parts=[{"type": "text", "text": "t"}])], 1, "parts[0].state",
    ),
    "a part that a user cannot have": ([user(parts=[{"type": "step-start"}])], 1, "parts[0].type"),
    "a part that an agent cannot have": ([assistant(parts=[CONTEXT])], 1, "parts[0].type"),
    "an input type that the parts are not": ([user(input_type="file")], 1, "input_type"),
    "an input type of one where the parts are mixed": (
        [user(input_type="text", parts=[CONTEXT, {"type": "text", "text": "t"}])], 1, "input_type",
    ),
    "an unknown input type": ([user(input_type="voice")], 1, "input_type"),
    "an answer after the end of its turn": (
        [assistant("a", turn_id="t", status="stopped"), assistant("b", turn_id="t")], 2, "turn_id",
    ),
    "a summary of nothing": ([user(kind="summary")], 1, "kind"),
    "a summary of nothing new": (
        [user(), user("x", kind="summary"), user("y", kind="summary")], 3, "kind",
    ),
    "a summary with more than text": ([user(), user("x", kind="summary", parts=[CONTEXT])], 2, "parts"),
    "a summary without text": ([user(), user("x", kind="summary", parts=[])], 2, "parts"),
    "a hidden summary": ([user(), user("x", kind="summary", visibility="internal")], 2, "visibility"),
    "a summary that failed": ([user(), assistant("x", kind="summary", status="failed")], 2, "status"),
    "an action without title": ([{key: ACTION[key] for key in ACTION if key != "title"}], 1, "title"),
    "an error of an unknown scope": ([{**ERROR, "scope": "world"}], 1, "scope"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_mapped_is_refused_by_line_and_field(name: str) -> None:
    """So that nothing is lost in silence."""
    records, line, field = REFUSED[name]
    with pytest.raises(BadLine) as caught:
        read(*records)
    assert (caught.value.line, caught.value.field) == (line, field)


def test_a_session_that_nobody_names_is_refused_at_once() -> None:
    """At the first record, and the text says what to do."""
    with pytest.raises(BadLine, match=r"line 1: session_id: .*--session"):
        read(user(), session_id=None)


# Into the older form


def write(made: list[Made]) -> tuple[list[bytes], FourTypeWriter]:
    """Write what was read again."""
    writer = FourTypeWriter()
    turns = {turn.turn_id: turn for turn in turns_of(made)}
    lines: list[bytes] = []
    for one in made:
        if isinstance(one, Message):
            lines.extend(writer.take(one, None if one.turn_id is UNSET else turns[one.turn_id]))
        elif isinstance(one, Summary):
            writer.summary(one)
    return [*lines, *writer.finish()], writer


@given(wholes(at_rest=False))
def test_what_was_written_in_the_older_form_is_read_and_written_the_same(whole: Whole) -> None:
    """Whatever was lost is lost the first time: then nothing more."""
    lines, _ = write(told(whole))
    if not lines:
        return
    reader = FourTypeReader("s")
    made = [one for line in lines for one in reader.take(line)]
    again, writer = write([*made, *reader.finish()[0]])
    assert again == lines
    assert not [what for what in writer.lost if "cut" in what or "origin" in what or "subject" in what]


@given(wholes(at_rest=True))
def test_what_was_said_is_all_there_in_the_older_form(whole: Whole) -> None:
    """Every part, in order, but for ids and steps of actions and errors; summaries at their places."""
    lines, _ = write(told(whole))
    if not lines:
        return
    reader = FourTypeReader("s")
    made = [one for line in lines for one in reader.take(line)]
    said = [bare(part) for one in messages_of(made) for part in one.parts]
    assert said == [bare(part) for one in whole.messages for part in one.parts]
    summaries = [one.text for one in made if isinstance(one, Summary)]
    assert summaries == [one.text for one in whole.summaries]


def told(whole: Whole) -> list[Made]:
    """A session in the order in which it was told; each turn's messages stand together."""
    turns = {turn.turn_id: turn for turn in whole.turns}
    seen: set[str] = set()
    closing = {one.through_sequence: one for one in whole.summaries}
    made: list[Made] = list(whole.turns)
    before: object = UNSET
    for message in whole.messages:
        turn_id = message.turn_id
        if turn_id is not UNSET and ((turn_id in seen and turn_id != before) or turn_id not in turns):
            turn_id = UNSET
        seen |= {turn_id} if turn_id is not UNSET else set()
        before = turn_id
        made.append(structs.replace(message, turn_id=turn_id))
        if message.sequence in closing:
            made.append(closing[message.sequence])
    return made


def bare(part: Part) -> Part:
    """A part without what an action or an error has no place for in the older form."""
    part = structs.replace(part, sequence=0)
    if isinstance(part, (ActionPart, ErrorPart)):
        return structs.replace(part, part_id="", step_id=UNSET)
    return part


def test_what_has_no_place_in_the_older_form_is_counted() -> None:
    """So that whoever asked can be told."""
    stopped = Turn(
        turn_id="t",
        revision=1,
        state="stopped",
        phase="starting",
        phase_since=1,
        started_at=1,
        finished_at=2,
    )
    [message] = messages_of(read(user(turn_id="t"))[0])
    summary = Summary(from_sequence=1, through_sequence=1, text="x", created_at=1, subject="ann")
    _, writer = write([stopped, message, summary])
    assert set(writer.lost) == {
        "outcomes of turns that were stopped before the agent said anything",
        "subjects of summaries",
    }
