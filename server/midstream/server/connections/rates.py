"""How much one connection, and one subject, may ask for (SPEC 11). Pure: it is told the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.errors import Overloaded

if TYPE_CHECKING:
    from midstream.protocol.limits import Limits


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


class _Subject:
    """A subject that is connected."""

    __slots__ = ("bucket", "connections")

    def __init__(self, calls_per_second: int, now: float) -> None:
        self.connections = 0
        self.bucket = Bucket(calls_per_second, now)


class Subjects:
    """Counts the connections of each subject, and their calls."""

    def __init__(self, limits: Limits) -> None:
        """Let each subject have so many connections at a time, and make so many calls a second."""
        self._limits = limits
        self._subjects: dict[str, _Subject] = {}

    def enter(self, subject: str, now: float) -> bool:
        """Count one connection more; False, and it is not counted, where there are enough."""
        known = self._subjects.get(subject)
        if known is None:
            known = self._subjects[subject] = _Subject(self._limits.calls_per_subject, now)
        if known.connections >= self._limits.connections_per_subject:
            return False
        known.connections += 1
        return True

    def take(self, subject: str, now: float) -> bool:
        """Take a call of one that has entered; False where all of its connections together make too many."""
        return self._subjects[subject].bucket.take(now)

    def leave(self, subject: str) -> None:
        """Count one less; once for each time that :meth:`enter` said True."""
        known = self._subjects[subject]
        known.connections -= 1
        if not known.connections:
            del self._subjects[subject]


def too_fast(limit: str, maximum: int) -> Overloaded:
    """Return the refusal of a call that may be sent again as it is, a little later."""
    return Overloaded(
        f"Limit {limit!r} is {maximum}. Send the call again when others were answered, or a second later.",
        {"limit": limit, "maximum": maximum},
    )
