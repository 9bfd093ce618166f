"""Notices when the event loop stands still, and says in the log what keeps it from running.

An agent that computes, or waits without ``await``, in the server's process keeps everybody waiting: nothing
can be done about it from outside, but it can be named.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Generator

BLOCKED_SECONDS: Final = 5.0
"""How long the loop stands still before that is said: longer than anything that the server does itself."""
_FRAMES: Final = 12
"""Innermost frames that are shown."""

log = structlog.get_logger("midstream.watchdog")


class Watchdog:
    """A thread that asks the event loop for a sign of life; it says when none comes, and when one did."""

    def __init__(self, seconds: float) -> None:
        """Watch over the loop that runs, in whose thread this is called."""
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._ended = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="midstream-watchdog", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, also where the loop is about to end."""
        self._ended.set()
        self._answered.set()

    def _watch(self) -> None:
        while not self._ended.wait(self._seconds / 4):
            self._answered.clear()
            asked = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(self._answered.set)
            except RuntimeError:  # the loop is closed
                return
            if self._answered.wait(self._seconds) or self._ended.is_set():
                continue
            log.warning(
                "loop_blocked",
                seconds=self._seconds,
                stack=self._stack(),
                do="let agents await, and what computes for long run in a thread or a worker",
            )
            self._answered.wait()
            if not self._ended.is_set():
                log.warning("loop_runs_again", seconds=round(time.monotonic() - asked, 1))

    def _stack(self) -> list[str]:
        """Return what the loop's thread is doing; lines of code, and no values."""
        # there is no other way to look
        frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        frame = frames.get(self._loop_thread)
        return [
            f"{one.filename}:{one.lineno} {one.name}" for one in traceback.extract_stack(frame)[-_FRAMES:]
        ]


@contextmanager
def watching(seconds: float | None = None) -> Generator[None]:
    """Watch over the running loop in the block; :data:`BLOCKED_SECONDS` where no time is given."""
    watchdog = Watchdog(BLOCKED_SECONDS if seconds is None else seconds)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()
