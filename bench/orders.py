"""What a server process is told, line by line on its input."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator


async def orders() -> AsyncIterator[list[str]]:
    """Yield the words of each line, until the input ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().split()
