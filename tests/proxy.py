"""A TCP proxy that breaks connections the way networks do, for tests on real sockets.

It stands between clients and one server. Bytes pass in order, whatever else happens; only `drop` takes
something out of the middle of a stream: a whole WebSocket message of the server.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

READ_BYTES = 64 * 1024
HEAD_END = b"\r\n\r\n"
Pick = Callable[[bytes], bool]
"""Says of the payload of a message whether it is to be dropped."""


class Messages:
    """The server's bytes, cut into the HTTP head and WebSocket messages; those picked are left out."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._buffer = b""
        self._in_head = True

    def feed(self, data: bytes) -> bytes:
        """Take what came, and return what is to be passed on."""
        self._buffer += data
        passed = b""
        if self._in_head:
            end = self._buffer.find(HEAD_END)
            if end < 0:
                return b""
            passed, self._buffer = self._buffer[: end + len(HEAD_END)], self._buffer[end + len(HEAD_END) :]
            self._in_head = False
        while (size := _header_and_length(self._buffer)) is not None and sum(size) <= len(self._buffer):
            header, length = size
            message, self._buffer = self._buffer[: header + length], self._buffer[header + length :]
            if not self._pick(message[header:]):
                passed += message
        return passed


def _header_and_length(data: bytes) -> tuple[int, int] | None:
    """Return the sizes of the first message's header and payload; None where they are not known yet."""
    if len(data) < 2:
        return None
    length, extra = data[1] & 0x7F, {126: 2, 127: 8}.get(data[1] & 0x7F, 0)
    if len(data) < 2 + extra:
        return None
    return 2 + extra, int.from_bytes(data[2 : 2 + extra]) if extra else length


class _Connection:
    def __init__(self, client: StreamWriter, server: StreamWriter) -> None:
        self.ends = (client, server)

    def cut(self) -> None:
        for end in self.ends:
            end.transport.abort()


class Proxy:
    """Carries connections to a server, until it is told to break them.

    Attributes:
        url: where clients connect to.
        accepted: how many connections were carried.
        dropped: the payloads of the messages that were left out.
    """

    def __init__(self, host: str, port: int) -> None:
        self.url = ""
        self.accepted = 0
        self.dropped: list[bytes] = []
        self._server = (host, port)
        self._connections: set[_Connection] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._changed = asyncio.Event()
        self._delay = 0.0
        self._refuses = False
        self._pick: Pick | None = None

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def lead_to(self, url: str) -> None:
        """Carry new connections to another server."""
        self._server = _address(url)

    def cut(self) -> None:
        """End every connection at once, with a reset; new ones are carried."""
        for connection in list(self._connections):
            connection.cut()

    def blackhole(self) -> None:
        """Let nothing arrive in either direction, and tell nobody; new connections fare the same."""
        self._flows.clear()

    def heal(self) -> None:
        """Let arrive what was held, as TCP sends again what was lost."""
        self._flows.set()

    def refuse(self, *, refuses: bool = True) -> None:
        """Cut new connections as they come."""
        self._refuses = refuses

    def delay(self, seconds: float) -> None:
        """Let everything arrive later."""
        self._delay = seconds

    def drop(self, pick: Pick | None) -> None:
        """Leave out the server's messages that are picked, of connections that begin now.

        A message's payload is a frame; of chunks each is a message.
        """
        self._pick = pick

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something about the connections is so."""
        while not fact():
            self._changed.clear()
            await self._changed.wait()

    async def carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Carry one connection, until both directions have ended or it was cut."""
        if self._refuses:
            writer.transport.abort()
            return
        await self._flows.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._server)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, far_writer)
        self._connections.add(connection)
        self.accepted += 1
        self._changed.set()
        filtered = None if self._pick is None else Messages(self._picked)
        try:
            await asyncio.gather(
                self._pump(reader, far_writer, None), self._pump(far_reader, writer, filtered)
            )
        finally:
            self._connections.discard(connection)
            connection.cut()
            self._changed.set()

    def _picked(self, payload: bytes) -> bool:
        if self._pick is None or not self._pick(payload):
            return False
        self.dropped.append(payload)
        self._changed.set()
        return True

    async def _pump(self, reader: StreamReader, writer: StreamWriter, filtered: Messages | None) -> None:
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                await self._flows.wait()
                if self._delay:
                    await asyncio.sleep(self._delay)
                writer.write(data if filtered is None else filtered.feed(data))
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()


@asynccontextmanager
async def proxy_to(url: str) -> AsyncGenerator[Proxy]:
    """Have a proxy to the server at ``url``."""
    proxy = Proxy(*_address(url))
    server = await asyncio.start_server(proxy.carry, "127.0.0.1", 0)
    proxy.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.heal()
        proxy.cut()
        await proxy.until(lambda: proxy.connections == 0)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80
