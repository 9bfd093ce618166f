"""The demo agent does what it is asked for, and nothing else."""

import pytest

from midstream.protocol.model import DataPart, Message
from midstream.protocol.values import Value
from midstream.server.agents.pace import Pace, words
from midstream.server.agents.wishes import (
    FIRST_NOTES,
    NOTES,
    Wish,
    count_words,
    noted_text,
    notes_in,
    roll,
    wishes,
)


def with_notes(*notes: Value) -> Message:
    """Build an agent's message that has notes."""
    return Message(
        message_id="m",
        session_id="s",
        sequence=1,
        revision=1,
        role="agent",
        visibility="visible",
        created_at=0,
        updated_at=0,
        parts=[DataPart(data_type=NOTES, data=list(notes))],
    )


@pytest.mark.parametrize("text", ["hello", "", "How are you today?", "What is the time?"])
def test_small_talk_asks_for_nothing(text: str) -> None:
    """A plain hello never ends in an approval."""
    assert wishes(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Use a TOOL, then ask me a question!", ["tool", "question"]),
        ("delete it, delete it", ["delete"]),
        ("help", ["help"]),
        ("note delete the long text", ["note"]),
        ("a longing for toolboxes", []),
    ],
)
def test_words_are_wishes_in_their_order_and_each_once(text: str, found: list[Wish]) -> None:
    """Only whole words count, and the words of a note are its own."""
    assert wishes(text) == found


def test_everything_shows_each_kind_and_ends_well() -> None:
    """The tour has a tool, a question and an approval, but no failure in it."""
    assert {"tool", "question", "delete"} <= set(wishes("everything"))
    assert not {"fail", "error"} & set(wishes("everything"))


def test_a_note_is_what_follows_the_word() -> None:
    """Without more words there is nothing to note."""
    assert noted_text("Note: buy\n milk") == "buy milk"
    assert noted_text("note") == noted_text("notes") == noted_text("hello") == ""


def test_the_last_notes_of_the_session_count() -> None:
    """A new session has something to delete; one whose notes are gone has nothing."""
    assert notes_in([]) == list(FIRST_NOTES)
    assert notes_in([with_notes("a"), with_notes("a", "b")]) == ["a", "b"]
    assert notes_in([with_notes("a"), with_notes()]) == []


def test_words_are_counted() -> None:
    """Hyphens and apostrophes do not part a word."""
    assert count_words("It's a well-known thing.") == {"words": 4, "characters": 24, "longest": "well-known"}
    assert count_words("") == {"words": 0, "characters": 0, "longest": ""}


def test_dice_fall_as_their_seed_says() -> None:
    """The same turn rolls the same, and others roll otherwise."""
    assert roll("turn_1") == roll("turn_1")
    rolls = {tuple(roll(f"turn_{number}")) for number in range(500)}
    assert rolls == {(a, b) for a in range(1, 7) for b in range(1, 7)}


@pytest.mark.parametrize("text", ["", " ", "one", "  two  words\n", "# Title\n\n- a\n- b\n"])
def test_words_join_to_the_text_again(text: str) -> None:
    """Streaming word by word loses no space and no newline."""
    assert "".join(words(text)) == text


def test_a_pace_is_not_negative() -> None:
    """Time does not go back."""
    with pytest.raises(ValueError, match="speed is -1"):
        Pace(-1)
