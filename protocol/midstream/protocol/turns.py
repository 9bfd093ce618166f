"""The turns that a replica holds: those of its messages, the running one, and the newest (SPEC 4.6)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from midstream.protocol.outcomes import TurnChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from midstream.protocol.model import Turn

NEWEST: Final = 32
"""Turns that are kept whether or not a message names them, so that a late handle finds its turn's end."""


class Turns:
    """Turns by id, bounded."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        """Start with these."""
        self._turns = {turn.turn_id: turn for turn in turns}
        self.by_id: Mapping[str, Turn] = MappingProxyType(self._turns)
        """The turns, by id; a view."""

    def take(self, turns: Iterable[Turn]) -> list[TurnChanged]:
        """Keep what is newer than what is held, and return what changed."""
        changes: list[TurnChanged] = []
        for turn in turns:
            held = self._turns.get(turn.turn_id)
            if held is None or turn.revision > held.revision:
                self._turns[turn.turn_id] = turn
                changes.append(TurnChanged(turn.turn_id, turn.revision))
        return changes

    def drop_old(self, messages: int, named: Callable[[], set[str]]) -> None:
        """Drop turns that nobody names, once there are more than the ``messages`` and the newest need.

        ``named`` gives the ids of the turns that are named; it is asked only then.
        """
        if len(self._turns) <= NEWEST + messages:
            return
        kept = named() | set(sorted(self._turns, key=lambda name: self._turns[name].revision)[-NEWEST:])
        for name in [name for name in self._turns if name not in kept]:
            del self._turns[name]
