"""How much one connection, and one subject, may ask for (SPEC 11). Pure: it is told the time."""

from __future__ import annotations

from midstream.protocol.errors import Overloaded


class Bucket:
    """A token bucket: so many a second, and as many at once."""

    __slots__ = ("_at", "_per_second", "_tokens")

    def __init__(self, per_second: int, now: float) -> None:
        """Begin full."""
        self._per_second = per_second
        self._tokens = float(per_second)
        self._at = now

    def take(self, now: float) -> bool:
        """Take one token; False where there is none."""
        self._tokens = min(self._per_second, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Subjects:
    """Counts the connections of each subject."""

    def __init__(self, limit: int) -> None:
        """Let each subject have at most ``limit`` connections at a time."""
        self._limit = limit
        self._counts: dict[str, int] = {}

    def enter(self, subject: str) -> bool:
        """Count one more; False, and it is not counted, where there are enough."""
        count = self._counts.get(subject, 0)
        if count >= self._limit:
            return False
        self._counts[subject] = count + 1
        return True

    def leave(self, subject: str) -> None:
        """Count one less; once for each time that :meth:`enter` said True."""
        self._counts[subject] -= 1
        if not self._counts[subject]:
            del self._counts[subject]


def too_fast(limit: str, maximum: int) -> Overloaded:
    """Return the refusal of a call that may be sent again as it is, a little later."""
    return Overloaded(
        f"Limit {limit!r} is {maximum}. Send the call again when others were answered, or a second later.",
        {"limit": limit, "maximum": maximum},
    )
