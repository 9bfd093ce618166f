"""Laws of a message under construction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from midstream.protocol.live import LiveMessage, appended, can_append
from midstream.protocol.model import FilePart, Message, Part, ReasoningPart, TextPart, ToolPart


def text(sequence: int, said: str = "", state: str = "streaming") -> TextPart:
    """A text part of an agent."""
    done = state == "done"
    part = TextPart(part_id=f"p{sequence}", sequence=sequence, text=said, state="streaming")
    return structs.replace(part, state="done") if done else part


def message(*parts: Part) -> Message:
    """A streaming message with these parts."""
    return Message(
        message_id="m",
        session_id="s",
        sequence=1,
        revision=1,
        role="agent",
        visibility="visible",
        created_at=1,
        updated_at=1,
        state="streaming",
        parts=list(parts),
    )


@given(pieces=st.lists(st.tuples(st.integers(1, 3), st.text(max_size=3), st.booleans())))
def test_appended_text_is_all_there_in_order_whenever_it_is_read(pieces: list[tuple[int, str, bool]]) -> None:
    """Reading in between changes nothing; each part gets its own."""
    tool = ToolPart(part_id="p3", sequence=3, tool_call_id="c", tool_name="t", state="input-streaming")
    live = LiveMessage(
        message(text(1), ReasoningPart(part_id="p2", sequence=2, text="", state="streaming"), tool)
    )
    said = {1: "", 2: "", 3: ""}
    for number, (sequence, piece, read) in enumerate(pieces):
        live.append(sequence, piece, revision=number + 2, updated_at=number + 10)
        said[sequence] += piece
        if read:
            live.message()
    first, second, third = live.message().parts
    assert isinstance(first, TextPart)
    assert isinstance(second, ReasoningPart)
    assert isinstance(third, ToolPart)
    assert (first.text, second.text, third.input_text or "") == (said[1], said[2], said[3])
    assert live.head.revision == len(pieces) + 1


def test_a_message_is_the_same_object_until_something_changes() -> None:
    """And parts that did not change stay the same objects."""
    live = LiveMessage(message(text(1, "a"), text(2, "b")))
    before = live.message()
    assert live.message() is before
    live.append(2, "c", revision=2, updated_at=2)
    after = live.message()
    assert after is not before
    assert after.parts[0] is before.parts[0]
    assert before.parts == [text(1, "a"), text(2, "b")]
    assert (after.revision, after.updated_at) == (2, 2)


def test_parts_are_put_in_their_places_and_those_above_the_count_are_dropped() -> None:
    """Text that waited for a replaced or dropped part goes with it."""
    live = LiveMessage(message(text(1, "a"), text(2, "b"), text(3, "c")))
    live.append(2, "old", revision=2, updated_at=2)
    live.append(3, "old", revision=3, updated_at=3)
    live.put([text(2, "B")], part_count=2, head=live.head)
    assert live.message().parts == [text(1, "a"), text(2, "B")]
    live.put([text(4, "d"), text(3, "c")], part_count=4, head=live.head)
    assert live.message().parts == [text(1, "a"), text(2, "B"), text(3, "c"), text(4, "d")]
    assert live.part_count == 4


@pytest.mark.parametrize(
    ("parts", "count"), [([text(3)], 3), ([], 2), ([text(2)], 3), ([text(0)], 1), ([text(2), text(4)], 4)]
)
def test_what_does_not_fit_changes_nothing(parts: list[Part], count: int) -> None:
    """A hole, or fewer parts than announced."""
    live = LiveMessage(message(text(1, "a")))
    live.append(1, "b", revision=2, updated_at=2)
    head = structs.replace(live.head, revision=9)
    assert live.misfit(parts, count) is not None
    with pytest.raises(ValueError, match="part"):
        live.put(parts, part_count=count, head=head)
    assert live.message().parts == [text(1, "ab")]
    assert live.message().revision == 2


def test_only_open_text_grows() -> None:
    """A delta to anything else would be a server's error."""
    tool = ToolPart(part_id="p", sequence=3, tool_call_id="c", tool_name="t", state="ready")
    live = LiveMessage(message(text(1), text(2, state="done"), tool))
    assert [live.accepts(sequence) for sequence in range(5)] == [False, True, False, False, False]
    file = FilePart(url="u", media_type="m")
    assert not can_append(file)
    with pytest.raises(TypeError):
        appended(file, "x")


def test_a_part_that_is_not_there_has_no_place() -> None:
    """Neither 0 nor one past the end, which a list would forgive."""
    live = LiveMessage(message(text(1)))
    for sequence in (0, -1, 2):
        with pytest.raises(IndexError):
            live.part(sequence)
        with pytest.raises(IndexError):
            live.part_id(sequence)
    assert live.part_id(1) == "p1"
