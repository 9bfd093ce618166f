"""Laws of the turns that a replica holds."""

from __future__ import annotations

from midstream.protocol.model import Turn
from midstream.protocol.outcomes import TurnChanged
from midstream.protocol.turns import NEWEST, Turns


def turn(name: str, revision: int) -> Turn:
    """A turn that runs."""
    return Turn(
        turn_id=name, revision=revision, state="running", phase="starting", phase_since=1, started_at=1
    )


def test_a_newer_turn_replaces_and_an_older_one_is_ignored() -> None:
    """By revision, whatever order they come in; an equal revision is the same turn."""
    turns = Turns([turn("a", 5)])
    assert turns.take([turn("a", 7), turn("a", 6), turn("a", 7), turn("b", 1)]) == [
        TurnChanged("a", 7),
        TurnChanged("b", 1),
    ]
    assert dict(turns.by_id) == {"a": turn("a", 7), "b": turn("b", 1)}


def test_only_what_nobody_names_and_is_not_new_is_dropped() -> None:
    """However many come."""
    turns = Turns([turn("named", 1), turn("old", 2)])
    turns.take([turn(f"t{number}", number + 3) for number in range(NEWEST)])
    turns.drop_old(messages=1, named=lambda: {"named"})
    assert set(turns.by_id) == {"named", *(f"t{number}" for number in range(NEWEST))}


def test_who_names_turns_is_asked_only_when_there_are_too_many() -> None:
    """Most changes cost nothing."""
    asked: list[bool] = []

    def named() -> set[str]:
        asked.append(True)
        return set()

    turns = Turns([turn(f"t{number}", number) for number in range(NEWEST)])
    turns.drop_old(messages=0, named=named)
    assert not asked
    turns.take([turn("new", 99)])
    turns.drop_old(messages=0, named=named)
    assert asked == [True]
    assert len(turns.by_id) == NEWEST
    assert "t0" not in turns.by_id
