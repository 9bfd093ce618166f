"""Callbacks for later, all of which end with the client and none of which fails unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timer:
    """One callback that is still to come."""

    def __init__(self, owner: Timers, callback: Callable[[], None]) -> None:
        """Wait for nothing yet."""
        self._owner = owner
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, seconds: float) -> None:
        """Let the callback come after so many seconds of the loop."""
        self._handle = asyncio.get_running_loop().call_later(seconds, self._fire)

    def cancel(self) -> None:
        """Let it not come; of no effect when it came already."""
        if self._handle is not None:
            self._handle.cancel()
        self._owner.forget(self)

    def _fire(self) -> None:
        self._owner.forget(self)
        self._owner.run(self._callback)


class Timers:
    """All callbacks of one client that are still to come."""

    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        """Call ``on_failure`` with what a callback raises."""
        self._on_failure = on_failure
        self._waiting: dict[Timer, None] = {}

    def __len__(self) -> int:
        """Return how many callbacks are still to come."""
        return len(self._waiting)

    def later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call ``callback`` after so many seconds of the loop, unless the timer is cancelled."""
        timer = Timer(self, callback)
        self._waiting[timer] = None
        timer.arm(max(0.0, seconds))
        return timer

    def run(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` now, and report what it raises."""
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - it is reported, and closes the client
            self._on_failure(error)

    def forget(self, timer: Timer) -> None:
        """Count this timer no longer."""
        self._waiting.pop(timer, None)

    def cancel_all(self) -> None:
        """Let nothing come any more."""
        for timer in list(self._waiting):
            timer.cancel()
