"""Time, passed in: nothing in the client asks the operating system but here."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that only goes forward, and one that tells the date."""

    def now(self) -> float:
        """Return seconds of a clock that never goes back, at the pace of the event loop's time."""
        ...

    def wall_ms(self) -> int:
        """Return ms since the epoch; it may jump, and it goes on while the machine sleeps."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> float:
        """Return the monotonic clock, in seconds."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Return the wall clock, in ms since the epoch."""
        return time.time_ns() // 1_000_000
