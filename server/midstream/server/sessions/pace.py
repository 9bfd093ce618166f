"""When streamed text is published: at once after a pause, joined where much is said, later under load."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_COSTS: Final = 2
"""Times what a publication costs that the next one of its session is apart: half of the time is left."""
_LATES: Final = 4
"""Times the mean lateness that publications are apart. Where those of thousands of sessions fill the time,
each is late by half of what all take: half of the time is left then too."""
_SMOOTHING: Final = 1 / 8
_STEP: Final = 0.001
"""Seconds: what is due within it is done in one call of the event loop; a timer each costs 4 µs a token."""


class Pace:
    """Plans the publications of all sessions of a server.

    Two of one session are a tick apart, which is nothing while there is time for every token. Where a
    publication takes long (thousands of readers), or the event loop is late (thousands of sessions), it
    grows, up to a limit: what waits is joined, and one write costs the same whatever it holds.
    """

    def __init__(self, *, tick_seconds: float, limit_seconds: float) -> None:
        """Begin with no load."""
        self._tick = tick_seconds
        self._limit = max(tick_seconds, limit_seconds)
        self._late = 0.0
        self._due: dict[int, list[Callable[[], None]]] = {}

    def plan(self, publish: Callable[[], None], not_before: float) -> float:
        """Have ``publish`` called in the event loop's next turn, or later; return when, in its time.

        Costs about 1 µs.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        step = math.ceil(not_before / _STEP) if not_before > now else 0
        waiting = self._due.get(step)
        if waiting is None:
            self._due[step] = [publish]
            if step:
                loop.call_at(step * _STEP, self._run, step)
            else:
                loop.call_soon(self._run, 0)
        else:
            waiting.append(publish)
        return step * _STEP if step else now

    def seconds(self, *, late: float, cost: float) -> float:
        """Return how long after a publication the next of its session may come, both in seconds.

        ``late`` is how much later than planned it was, ``cost`` what it took.
        """
        self._late += (late - self._late) * _SMOOTHING
        return min(self._limit, max(self._tick, _COSTS * cost, _LATES * self._late))

    def _run(self, step: int) -> None:
        for publish in self._due.pop(step):
            try:
                publish()
            except Exception as error:  # noqa: BLE001 - one session must not hold up the others
                loop = asyncio.get_running_loop()
                loop.call_exception_handler({"message": f"{publish} failed", "exception": error})
