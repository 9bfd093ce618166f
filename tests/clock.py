"""Clocks that tests move by hand, or that follow a simulated event loop.

Both have the shape of the server's clock (`now()` in monotonic seconds, `wall_ms()` in milliseconds since the
epoch), and neither reads the machine's time, so a test says when things happen.
"""

import asyncio

WALL_START_MS = 1_700_000_000_000
"""What the wall says when a test clock starts: a fixed day in November 2023."""


class ManualClock:
    """A clock that stands still until the test moves it.

    The monotonic time and the wall move together in `advance`; `skew_wall` sets the wall alone, forwards or
    backwards, as an administrator or NTP does. `now()` never goes back.
    """

    def __init__(self, now: float = 1000.0, wall_ms: int = WALL_START_MS) -> None:
        self._start = now
        self._now = now
        self._wall_start_ms = wall_ms

    def now(self) -> float:
        """Return the monotonic time, in seconds from an arbitrary point."""
        return self._now

    def wall_ms(self) -> int:
        """Return the wall time, in milliseconds since the epoch."""
        return self._wall_start_ms + round((self._now - self._start) * 1000)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on both times.

        Raises:
            ValueError: `seconds` is negative; monotonic time cannot go back (`skew_wall` sets the wall back).
        """
        if seconds < 0:
            raise ValueError(
                f"monotonic time cannot go back by {-seconds} s; use skew_wall to set the wall back"
            )
        self._now += seconds

    def skew_wall(self, ms: int) -> None:
        """Set the wall `ms` milliseconds ahead (back, if negative); monotonic time does not move."""
        self._wall_start_ms += ms


class SimClock:
    """A clock that reads both times from an event loop, which makes them virtual under `SimLoop`.

    The wall starts at `wall_ms` when the clock is made. Several clocks on one loop (a server's, and a
    client's that is ten minutes off) differ by their `skew_wall` alone.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, wall_ms: int = WALL_START_MS) -> None:
        self._loop = loop
        self._start = loop.time()
        self._wall_start_ms = wall_ms

    def now(self) -> float:
        """Return the loop's time, in seconds from an arbitrary point."""
        return self._loop.time()

    def wall_ms(self) -> int:
        """Return the wall time, in milliseconds since the epoch."""
        return self._wall_start_ms + round((self._loop.time() - self._start) * 1000)

    def skew_wall(self, ms: int) -> None:
        """Set the wall `ms` milliseconds ahead (back, if negative); the loop's time does not move."""
        self._wall_start_ms += ms
