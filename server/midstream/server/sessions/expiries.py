"""When what waits for a person expires (SPEC 8.6). Pure: it is told the time of both clocks.

``request.expires_at`` is a time of the wall, and a wall can be set. So each wait has a deadline of the
monotonic clock too, and the first of both counts: with the wall set back nothing waits longer than was
said, and over a sleep of the machine, which the monotonic clock may not count, the wall decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from midstream.server.sessions import interactions

if TYPE_CHECKING:
    from midstream.protocol.model import InteractionPart
    from midstream.server.sessions.projection import Projection
    from midstream.server.sessions.versions import Versions


class _Wait(NamedTuple):
    wall_ms: int
    deadline: float

    def seconds(self, now: float, wall_ms: int) -> float:
        """Return how long it is until the first of both; not above 0 where that has come."""
        return min(self.deadline - now, (self.wall_ms - wall_ms) / 1000)


class Expiries:
    """The pending interactions of one loaded session that have a time."""

    __slots__ = ("_version", "_waits")

    def __init__(self) -> None:
        """Know of none."""
        self._version = -1
        self._waits: dict[str, _Wait] = {}

    def follow(self, projection: Projection, versions: Versions, *, now: float) -> None:
        """Look at what waits, where a commit came since: only a commit asks or answers.

        A new wait is reckoned from the last server time that was given, as its ``expires_at`` was.
        """
        if versions.durable == self._version:
            return
        known, self._version = self._waits, versions.durable
        self._waits = {
            part.interaction_id: known.get(part.interaction_id)
            or _Wait(part.request.expires_at, now + (part.request.expires_at - versions.last_time) / 1000)
            for _, part in interactions.pending(projection)
            if part.request.expires_at is not UNSET
        }

    def seconds(self, now: float, wall_ms: int) -> float | None:
        """Return how long it is until the next one expires; None where none does."""
        return min((wait.seconds(now, wall_ms) for wait in self._waits.values()), default=None)

    def due(self, projection: Projection, *, now: float, wall_ms: int) -> list[tuple[int, InteractionPart]]:
        """Return the interactions whose time has come, and the sequences of their messages."""
        if not any(wait.seconds(now, wall_ms) <= 0 for wait in self._waits.values()):
            return []  # the usual case, which must not cost a look at every part
        names = {name for name, wait in self._waits.items() if wait.seconds(now, wall_ms) <= 0}
        pending = interactions.pending(projection)
        return [(head.sequence, part) for head, part in pending if part.interaction_id in names]
