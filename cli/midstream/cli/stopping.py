"""How a process that runs agents is told to stop, and ends."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

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


@contextmanager
def stop_signals() -> Generator[asyncio.Event]:
    """Give an event that the first signal sets; the second one ends the process."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        if stopped.is_set():
            os._exit(128 + number)  # at once, as asked: what was acknowledged is on disk already
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
