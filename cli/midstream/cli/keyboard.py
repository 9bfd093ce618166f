"""Lines from a pipe, a file or a simple terminal, without stopping the event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def lines_of(stream: TextIO) -> AsyncIterator[str]:
    """Yield lines as they come, until the stream ends. One line is read ahead.

    A thread waits for them, because a file cannot be waited for by an event loop. It does not keep
    the process alive: a line that comes too late is read by nobody.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)

    def read() -> None:
        try:
            for line in stream:
                asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(queue.put(None), loop).result()
        except (RuntimeError, OSError, ValueError, asyncio.CancelledError):
            return  # the loop is closed, or the stream: nobody waits for more

    threading.Thread(target=read, name="keyboard", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line
