"""What waits for all readers together: bounded, so that many slow ones cannot fill the memory (SPEC 6, 11).

Each outbox has its own mark. A thousand readers who never read could fill a thousand of them within seconds,
long before each is cut as stalled. So above a bound for all of them each may hold little, and those go first
to whom nothing moves. Pure: it is told the time.
"""

from __future__ import annotations

from typing import Final, Protocol

LOW_MARK_BYTES: Final = 16 * 1024
"""The mark of each outbox while too much waits in all of them."""
STALLED_SECONDS: Final = 1.0
"""Without a byte moved for so long, a reader may be cut while too much waits."""
_LOOK_SECONDS: Final = 0.25


class Slow(Protocol):
    """A reader for whom something waits."""

    def still_for(self, now: float) -> float:
        """Return for how many seconds no byte has moved."""
        ...


class Backlog:
    """Adds up what waits for each reader; ``mark_bytes`` is the mark of every outbox now."""

    def __init__(self, mark_bytes: int, limit_bytes: int) -> None:
        """Begin with nothing waiting.

        Args:
            mark_bytes: of an outbox, as long as all together are within the limit.
            limit_bytes: of all together.

        """
        self.mark_bytes = mark_bytes
        self.held = 0
        """Bytes that wait, in outboxes and transports."""
        self._full_mark = mark_bytes
        self._limit = limit_bytes
        self._readers: dict[Slow, int] = {}
        self._looked_at = 0.0

    def note(self, reader: Slow, held: int) -> None:
        """Learn how much waits for a reader; 0 forgets it."""
        before = self._readers.pop(reader, 0)
        if held:
            self._readers[reader] = held
        self.held += held - before
        low = min(LOW_MARK_BYTES, self._full_mark)
        self.mark_bytes = self._full_mark if self.held <= self._limit else low

    def to_cut(self, now: float) -> list[Slow]:
        """Return who has to go, the one that holds the most first: nobody, where all is within the limit."""
        if self.held <= self._limit or now < self._looked_at + _LOOK_SECONDS:
            return []
        self._looked_at = now
        spare = self.held - self._limit
        going: list[Slow] = []
        for reader, held in sorted(self._readers.items(), key=lambda one: -one[1]):
            if spare <= 0:
                break
            if reader.still_for(now) >= STALLED_SECONDS:
                going.append(reader)
                spare -= held
        return going
