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
"""Seconds: what is due within it is done in one call of the event loop; a timer each costs 4 µs a token."""


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
        """Begin with no load. ``fan_out`` is told how long each publication took from when it was due."""
        self._fan_out = fan_out or Histogram()
        self._tick = tick_seconds
        self._limit = max(tick_seconds, limit_seconds)
        self._late = 0.0
        self._due: dict[int, list[Planned]] = {}

    def plan(self, session: Planned) -> None:
        """Have a session ticked once: in the event loop's next turn, or when it may be. Costs about 1 µs."""
        loop = asyncio.get_running_loop()
        not_before = session.next_tick_at
        step = math.ceil(not_before / _STEP) if not_before > loop.time() else 0
        waiting = self._due.get(step)
        if waiting is not None:
            waiting.append(session)
            return
        self._due[step] = [session]
        if step:
            loop.call_at(step * _STEP, self._run, step)
        else:
            loop.call_soon(self._run, 0)

    def seconds(self, *, late: float, cost: float) -> float:
        """Return how long after a publication the next of its session may come, both in seconds.

        ``late`` is how much later than planned it was, ``cost`` what it took.
        """
        self._late += (max(0.0, late - _SLACK) - self._late) * _SMOOTHING
        return min(self._limit, max(self._tick, _COSTS * cost, _LATES * self._late))

    def _run(self, step: int) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        due = step * _STEP or begun
        for session in self._due.pop(step):
            try:
                session.tick()
            except Exception as error:  # noqa: BLE001 - one session must not hold up the others
                loop.call_exception_handler({"message": "a tick failed", "exception": error})
            ended = loop.time()
            self._fan_out.add(ended - due)  # 0.2 µs, of the 20 to 50 that a publication to two takes
            session.next_tick_at = begun + self.seconds(late=begun - due, cost=ended - begun)
            begun = ended
