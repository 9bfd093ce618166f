"""An export says all of a session, the same way each time; what is not one is refused by line and field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.export import Entity, Reader, renamed, write_line
from midstream.protocol.lines import BadLine
from midstream.protocol.model import Message
from tests.whole_sessions import Whole, wholes

Lines = list[dict[str, Any]]


def read(lines: list[bytes]) -> list[Entity]:
    """Read an export to its end."""
    reader = Reader()
    entities = [reader.take(line) for line in lines]
    reader.finish()
    return entities


@given(wholes(at_rest=False))
def test_what_is_read_is_what_was_written(whole: Whole) -> None:
    """Whatever the session holds; and written again it is the same bytes, one line each."""
    lines = [write_line(entity) for entity in whole.entities()]
    entities = read(lines)
    assert entities == whole.entities()
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    assert [write_line(entity) for entity in entities] == lines


@given(wholes(at_rest=False), st.data())
def test_an_export_that_lacks_a_line_is_refused(whole: Whole, data: st.DataObject) -> None:
    """Whichever it is, also the last: a file that was cut is known."""
    lines = [write_line(entity) for entity in whole.entities()]
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    with pytest.raises(BadLine):
        read(lines)


@given(wholes(at_rest=False), st.data())
def test_an_export_that_was_cut_within_a_line_is_refused_there(whole: Whole, data: st.DataObject) -> None:
    """The error names the line that is not whole."""
    lines = [write_line(entity) for entity in whole.entities()]
    number = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(1, len(lines[number]) - 2))
    with pytest.raises(BadLine) as caught:
        read([*lines[:number], lines[number][:cut]])
    assert caught.value.line == number + 1


@given(wholes(at_rest=False), st.text(min_size=1, max_size=8))
def test_an_export_is_renamed_by_the_sessions_id_alone(whole: Whole, name: str) -> None:
    """Header and messages; what is renamed back is what it was."""
    entities = [renamed(entity, name) for entity in whole.entities()]
    assert {entity.session_id for entity in entities if isinstance(entity, Message)} <= {name}
    assert [renamed(entity, whole.session.session_id) for entity in entities] == whole.entities()


def sample() -> Lines:
    """The lines of a small export, as plain values."""
    text = {"type": "text", "part_id": "p", "sequence": 1, "text": "Hi"}
    head = {"session_id": "s", "revision": 4, "visibility": "visible", "created_at": 5, "updated_at": 6}
    tool = {
        "type": "tool", "part_id": "q", "sequence": 2, "tool_call_id": "c", "tool_name": "t",
        "state": "failed", "error": "no",
    }  # fmt: skip
    return [
        {
            "format": "midstream.session",
            "format_version": 1,
            "version": 9,
            "session": {
                "session_id": "s", "revision": 9, "created_at": 5, "updated_at": 6, "message_count": 2,
                "summarized_through": 1,
            },
        },
        {
            "turn": {
                "turn_id": "t", "revision": 4, "state": "failed", "phase": "streaming", "phase_since": 5,
                "started_at": 5, "finished_at": 6, "error": {"code": "c", "message": "m"},
            }
        },
        {"message": {**head, "message_id": "a", "sequence": 1, "role": "user", "parts": [text]}},
        {
            "message": {
                **head, "message_id": "b", "sequence": 2, "role": "agent", "state": "done", "turn_id": "t",
                "parts": [{**text, "state": "done"}, tool],
            }
        },
        {"summary": {"from_sequence": 1, "through_sequence": 1, "text": "short", "created_at": 7}},
        {
            "input": {
                "message_id": "a", "content_hash": "h", "subject": "ann", "delivery": "auto",
                "state": "started", "turn_id": "t", "accepted": 2,
            }
        },
        {"end": {"turns": 1, "messages": 2, "summaries": 1, "inputs": 1}},
    ]  # fmt: skip


def encoded(lines: Lines) -> list[bytes]:
    """Write plain lines as another program would, with spaces."""
    return [json.dumps(line).encode() + b"\r\n" for line in lines]


def test_lines_that_another_program_wrote_are_read() -> None:
    """Spaces, escapes and other line ends mean nothing; what is absent has its usual value."""
    assert len(read(encoded(sample()))) == 7


SPOILED: dict[str, tuple[int, str, object, str]] = {
    # name: line, path of what is set, its value (REMOVED: it is left out), the field that is named
    "no export": (1, "format", "other", "format"),
    "a later format": (1, "format_version", 2, "format_version"),
    "no session": (1, "session", "REMOVED", "session"),
    "an empty id": (1, "session.session_id", "", "session.session_id"),
    "a session above the version": (1, "session.revision", 10, "session.revision"),
    "a count below 0": (1, "session.message_count", -1, "session.message_count"),
    "more cleared than there is": (1, "session.first_sequence", 4, "session.first_sequence"),
    "a key of the header that nobody knows": (1, "session.colour", "red", "session.colour"),
    "a turn without its state": (2, "turn.state", "REMOVED", "turn.state"),
    "a turn of an unknown state": (2, "turn.state", "gone", "turn.state"),
    "a turn that ended and is said to run": (2, "turn.state", "running", "turn.finished_at"),
    "a turn that completed with an error": (2, "turn.state", "completed", "turn.error"),
    "a turn above the version": (2, "turn.revision", 10, "turn.revision"),
    "a turn without id": (2, "turn.turn_id", "", "turn.turn_id"),
    "a message of another session": (3, "message.session_id", "x", "message.session_id"),
    "a message at another place": (3, "message.sequence", 2, "message.sequence"),
    "a message above the version": (4, "message.revision", 10, "message.revision"),
    "a message without id": (3, "message.message_id", "", "message.message_id"),
    "a time that is no number": (3, "message.created_at", "now", "message.created_at"),
    "a time before all": (3, "message.created_at", -1, "message.created_at"),
    "a number that no client can hold": (3, "message.created_at", 2**53, "message.created_at"),
    "a user's message that streams": (3, "message.state", "streaming", "message.state"),
    "an agent's message without state": (4, "message.state", "REMOVED", "message.state"),
    "an unknown role": (3, "message.role", "assistant", "message.role"),
    "a part at another place": (4, "message.parts.1.sequence", 3, "message.parts[1].sequence"),
    "a part without id": (4, "message.parts.1.part_id", "REMOVED", "message.parts[1].part_id"),
    "a part with the id of another": (4, "message.parts.1.part_id", "p", "message.parts[1].part_id"),
    "a part of an unknown type": (4, "message.parts.1.type", "dance", "message.parts[1].type"),
    "a part that a user cannot have": (3, "message.parts.0.type", "step-start", "message.parts[0].text"),
    "a failed tool without error": (4, "message.parts.1.error", "REMOVED", "message.parts[1].error"),
    "a text that is no string": (3, "message.parts.0.text", 7, "message.parts[0].text"),
    "a part's key that nobody knows": (4, "message.parts.1.colour", 1, "message.parts[1].colour"),
    "a summary that overlaps": (5, "summary.from_sequence", 2, "summary.from_sequence"),
    "a summary of what is not there": (5, "summary.through_sequence", 3, "summary.through_sequence"),
    "a summary that says nothing": (5, "summary.text", " ", "summary.text"),
    "an input of an unknown state": (6, "input.state", "lost", "input.state"),
    "an input above the version": (6, "input.accepted", 10, "input.accepted"),
    "another number of turns": (7, "end.turns", 2, "end.turns"),
    "another number of inputs": (7, "end.inputs", 0, "end.inputs"),
    "fewer messages than the session has": (7, "end.messages", 3, "end.messages"),
}


def spoil(line: dict[str, Any], path: str, value: object) -> None:
    """Set, or remove, what stands at a path."""
    *way, last = path.split(".")
    here: Any = line
    for key in way:
        here = here[int(key) if key.isdecimal() else key]
    if value == "REMOVED":
        del here[last]
    else:
        here[last] = value


@pytest.mark.parametrize("name", SPOILED)
def test_what_is_wrong_is_named_by_its_line_and_field(name: str) -> None:
    """So that a person can find it in the file."""
    number, path, value, field = SPOILED[name]
    lines = sample()
    spoil(lines[number - 1], path, value)
    with pytest.raises(BadLine) as caught:
        read(encoded(lines))
    assert (caught.value.line, caught.value.field) == (number, field)
    assert str(caught.value).startswith(f"line {number}: {field}: ")


def test_a_session_that_says_more_than_its_lines_is_refused() -> None:
    """Messages and summaries that the header counts and that are not there."""
    for field, value, named in (("message_count", 3, "message"), ("summarized_through", 2, "summary")):
        lines = sample()
        lines[0]["session"][field] = value
        with pytest.raises(BadLine) as caught:
            read(encoded(lines))
        assert (caught.value.line, caught.value.field) == (7, named)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"", ""),
        (b"[]", ""),
        (b"null", ""),
        (b"{}", ""),
        (b'{"turn": {}, "message": {}}', ""),
        (b'{"thing": {}}', ""),
        (b'{"message": {"a": 1, "a": 2}}', "a"),
        (b'{"message": {"a": 1e400}}', ""),
        (b'{"message": {"a": "\\ud800"}}', ""),
        (b"\xff", ""),
        (b"[" * 100_000, ""),
        (b'{"end": {"turns": 0}}', "end.messages"),
    ],
)
def test_a_line_of_another_form_is_refused(line: bytes, field: str) -> None:
    """Whatever the bytes are: the line is named, and the key where one is at fault."""
    reader = Reader()
    reader.take(encoded(sample())[0])
    with pytest.raises(BadLine) as caught:
        reader.take(line)
    assert caught.value.line == 2
    assert caught.value.field.endswith(field)


def test_lines_in_another_order_and_behind_the_end_are_refused() -> None:
    """Turns come before messages, and nothing after the end."""
    lines = encoded(sample())
    with pytest.raises(BadLine, match="line 4: turn: stands behind a line of 'message'"):
        read([lines[0], lines[2], lines[3], lines[1]])
    with pytest.raises(BadLine, match="line 8: stands behind the end"):
        read([*lines, lines[-1]])
    with pytest.raises(BadLine, match="line 1: is missing"):
        Reader().header  # noqa: B018 - the property is what is tested
    with pytest.raises(BadLine, match="line 7: end: is missing: the file was cut"):
        read(lines[:-1])
