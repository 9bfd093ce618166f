"""Laws of the window: what is planned changes nothing, and what joins is whole."""

from __future__ import annotations

from msgspec import structs

from midstream.protocol.frames import Delta, MessageEntry, ShortDelta
from midstream.protocol.model import Message, TextPart
from midstream.protocol.outcomes import Appended, Gap
from midstream.protocol.window import Window, complete
from tests.protocol.session_model import CHANNEL, NAME, entry


def message(sequence: int, revision: int = 1, text: str = "") -> Message:
    """A streaming message with one part."""
    return Message(
        message_id=f"m{sequence}",
        session_id=NAME,
        sequence=sequence,
        revision=revision,
        role="agent",
        visibility="visible",
        created_at=1,
        updated_at=1,
        state="streaming",
        parts=[TextPart(part_id="p", sequence=1, text=text, state="streaming")],
    )


def window(*sequences: int, end: int | None = None) -> Window:
    """A window that holds these messages and begins at the first."""
    made = Window(NAME, sequences[0], end)
    made.add(message(sequence) for sequence in sequences)
    return made


def test_a_plan_changes_nothing_until_it_is_carried_out() -> None:
    """So a reader never sees half of it."""
    held = window(1, 2)
    shown = held.messages()
    entries = [entry(message(1), message(1, text="a")), entry(None, message(3))]
    steps = held.plan(entries, version=9, since=None, below=0)
    assert isinstance(steps, list)
    assert held.messages() is shown
    assert held.message("m3") is None
    held.carry_out(steps, durable=9)
    assert held.messages() == [message(1, 9, "a"), message(2), message(3, 9)]


def test_what_is_below_the_sessions_first_message_is_not_planned() -> None:
    """Nothing is told of a message that the same frame clears away."""
    held = window(1, 2)
    entries = [entry(message(1), message(1, text="a")), entry(message(2), message(2, text="b"))]
    steps = held.plan(entries, version=9, since=None, below=2)
    assert isinstance(steps, list)
    assert [step.message_id for step in steps] == ["m2"]


def test_one_message_stands_once_in_a_frame() -> None:
    """Two entries for it could not be judged against what is held."""
    twice = [entry(message(1), message(1, text="a"))] * 2
    assert isinstance(window(1).plan(twice, version=9, since=None, below=0), Gap)


def test_an_id_that_another_message_has_does_not_fit() -> None:
    """Ids are unique in a session."""
    stranger = structs.replace(entry(None, message(3)), message_id="m1")
    assert isinstance(window(1, 2).plan([stranger], version=9, since=None, below=0), Gap)


def test_a_delta_not_above_its_message_is_ignored() -> None:
    """The message had it already, from a page."""
    held = Window(NAME, 1)
    held.add([message(1, revision=5, text="Hello")])
    assert held.append(Delta(CHANNEL, 5, 1, 1, 1, "lo"), 1) is None
    assert held.append(ShortDelta(CHANNEL, 5, 1, "lo"), 1) is None
    at = held.messages()[0].created_at + 1
    assert held.append(Delta(CHANNEL, 6, 1, 1, 1, "!"), 1) == Appended("m1", "p", 1, 1, 6, at, "!")
    assert held.append(ShortDelta(CHANNEL, 7, 3, "?"), 1) == Appended("m1", "p", 1, 1, 7, at + 3, "?")
    assert held.messages()[0].parts == message(1, text="Hello!?").parts


def test_a_window_joins_the_one_before_it() -> None:
    """What both hold stays as it is in the later one; the lower end is the earlier one's."""
    later, earlier = window(3, 4), window(1, 2, end=3)
    assert [earlier.covers(sequence) for sequence in range(5)] == [False, True, True, False, False]
    shown = later.messages()
    later.join(earlier)
    assert later.first == 1
    assert [one.sequence for one in later.messages()] == [1, 2, 3, 4]
    assert later.messages()[2] is shown[0]
    assert len(later) == 4
    assert later.message("m2") == message(2)


def test_what_is_dropped_is_forgotten_by_its_id_too() -> None:
    """And the lower end never moves down."""
    held = window(1, 2, 3)
    assert held.drop_below(3) == ("m1", "m2")
    assert (held.first, held.message("m1"), len(held)) == (3, None, 1)
    assert held.drop_below(2) == ()
    assert held.first == 3


def test_an_entry_is_complete_with_all_its_fields_and_parts_only() -> None:
    """Else the message is unknown, and the reader has lost something."""
    whole = entry(None, message(1))
    assert complete(whole, 7) == message(1, revision=7)
    for name in ("message_id", "session_id", "role", "visibility", "created_at"):
        given = {field: getattr(whole, field) for field in whole.__struct_fields__ if field != name}
        assert complete(MessageEntry(**given), 7) is None
    assert complete(structs.replace(whole, part_count=2), 7) is None
    assert complete(structs.replace(whole, part_count=0), 7) is None
    assert complete(structs.replace(whole, appends=[(1, "x")]), 7) is None
    assert complete(structs.replace(whole, ended=[1]), 7) is None
