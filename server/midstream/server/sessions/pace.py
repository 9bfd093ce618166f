"""When streamed text is published: at once after a pause, joined where much is said, later under load."""

from __future__ import annotations

import asyncio
import math
from typing import Final, Protocol

from midstream.server.tally import Histogram

_COSTS: Final = 2
"""Times what a publication costs that the next one of its session is apart: half of the time is left."""
_LATES: Final = 4
"""Times the mean lateness that publications are apart. Where those of thousands of sessions fill the time,
each is late by half of what all take: half of the time is left then too."""
_SLACK: Final = 0.002
"""Seconds that count as no lateness: the event loop's timers are a millisecond late where nothing runs."""
_SMOOTHING: Final = 1 / 8
_STEP: Final = 0.001
"""Seconds: what is due within it is done in one call of the event loop; a timer each costs 4 µs a token.
It is set for the beginning: the event loop counts in ms, and is up to one late."""


class Planned(Protocol):
    """A session whose text waits."""

    next_tick_at: float
    """When it may be published, by the event loop's time: at once, where that has passed."""

    def tick(self) -> None:
        """Publish it."""
        ...


class Pace:
    """Plans the publications of all sessions of a server.

    Two of one session are a tick apart, which is nothing while there is time for every token. Where a
    publication takes long (thousands of readers), or the event loop is late (thousands of sessions), it
    grows, up to a limit: what waits is joined, and one write costs the same whatever it holds.
    """

    def __init__(
        self, *, tick_seconds: float, limit_seconds: float, fan_out: Histogram | None = None
    ) -> None:
        """Begin with no load. ``fan_out`` is told how long all took that were due together."""
        self._fan_out = fan_out or Histogram()
        self._tick = tick_seconds
        self._limit = max(tick_seconds, limit_seconds)
        self._late = 0.0
        self._due: dict[int, list[Planned]] = {}
        self._soon: list[Planned] = []
        """Those that are ticked at the end of this turn of the event loop."""
        self._soon_since = -math.inf
        """When that was known to be later than their times."""

    def plan(self, session: Planned) -> None:
        """Have a session ticked once: in the event loop's next turn, or when it may be. Costs about 1 µs."""
        not_before = session.next_tick_at
        if not_before <= self._soon_since:  # others wait for this turn's end already: no clock is asked
            self._soon.append(session)
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        step = int(not_before / _STEP)
        if step * _STEP <= now:
            self._soon_since = now
            if not self._soon:
                loop.call_soon(self._run_soon)
            self._soon.append(session)
            return
        waiting = self._due.get(step)
        if waiting is not None:
            waiting.append(session)
            return
        self._due[step] = [session]
        loop.call_at(step * _STEP, self._run_step, step)

    def seconds(self, *, late: float, cost: float) -> float:
        """Return how long after a publication the next of its session may come, both in seconds.

        ``late`` is how much later than planned it was, ``cost`` what it took.
        """
        self._late += (max(0.0, late - _SLACK) - self._late) * _SMOOTHING
        return min(self._limit, max(self._tick, _COSTS * cost, _LATES * self._late))

    def _run_soon(self) -> None:
        sessions, self._soon, self._soon_since = self._soon, [], -math.inf
        self._run(sessions, asyncio.get_running_loop().time())

    def _run_step(self, step: int) -> None:
        self._run(self._due.pop(step), step * _STEP)

    def _run(self, sessions: list[Planned], due: float) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for session in sessions:
            try:
                session.tick()
            except Exception as error:  # noqa: BLE001 - one session must not hold up the others
                loop.call_exception_handler({"message": "a tick failed", "exception": error})
            ended = loop.time()
            session.next_tick_at = begun + self.seconds(late=begun - due, cost=ended - begun)
            begun = ended
        # once for all that were due together: 0.15 µs, of the 20 to 50 that each of them takes
        self._fan_out.add(begun - due)
