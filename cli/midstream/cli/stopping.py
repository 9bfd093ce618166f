"""How a process that runs agents is told to stop, and ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

HEED_SECONDS = 1
"""How long tasks that an agent left get to heed their cancellation."""


async def deaf_tasks() -> int:
    """Cancel every task that the agent left; return how many do not heed it."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return 0
    _, deaf = await asyncio.wait(left, timeout=HEED_SECONDS)
    return len(deaf)


OVERDUE = 75
"""Exit code of a process that did not come to its end in time (EX_TEMPFAIL)."""


@contextmanager
def stop_signals(*, within: float | None = None) -> Generator[asyncio.Event]:
    """Give an event that the first signal sets; the second one ends the process.

    With ``within`` the process ends so many seconds after the first signal, however far it has come: also
    where an agent lets nothing else run, or the disk does not answer. That is as ``kill -9`` would be.
    """
    stopped = asyncio.Event()
    told: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        if told:
            os._exit(128 + number)  # at once, as asked: what was acknowledged is on disk already
        told.append(number)
        if within is not None:
            overdue = threading.Timer(within, os._exit, (OVERDUE,))
            overdue.daemon = True
            overdue.start()
        loop.call_soon_threadsafe(stopped.set)

    # not asyncio's own: they wait for the loop's turn, which an agent that blocks it never gives
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
