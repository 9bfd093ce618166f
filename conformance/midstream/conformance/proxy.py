"""A TCP proxy that breaks connections the way networks do.

It stands between clients and one server, and knows nothing of what it carries. Bytes pass in order; a fault
delays them, cuts them into other pieces, keeps them for good, or ends the connection after an exact count.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

READ_BYTES = 64 * 1024
BUFFER_BYTES = 64 * 1024
"""What the kernel holds of what the server sent, roughly, before the proxy reads it."""
Direction = Literal["up", "down"]
"""`up` is from the client to the server, `down` from the server to the client."""


@dataclass
class Faults:
    """What goes wrong in one direction. Counts are of the bytes of a connection, the handshake's included.

    Attributes:
        cut_after: end the connection, by a reset, when so many bytes have passed; the next one does not.
        delay: seconds by which all that comes is late.
        half_open: nothing arrives any more, and nobody is told; undone, what was held arrives.
        read_bytes: how much is read from the sender at once; with ``every`` that makes a slow reader.
        every: seconds between two reads.
        split: pass on in pieces of so many bytes, each a packet of its own.
    """

    cut_after: int | None = None
    delay: float = 0.0
    half_open: bool = False
    read_bytes: int = READ_BYTES
    every: float = 0.0
    split: int | None = None


class Connection:
    """One connection that is carried. ``passed`` counts the bytes that arrived, by direction."""

    def __init__(self, client: StreamWriter, server: StreamWriter) -> None:
        """Join the two ends."""
        self._ends = (client, server)
        self.passed: dict[Direction, int] = {"up": 0, "down": 0}

    @property
    def is_over(self) -> bool:
        """Whether an end has gone, which the other does not learn while the connection is half open."""
        return any(end.is_closing() for end in self._ends)

    def cut(self) -> None:
        """End both sides at once, by a reset."""
        for end in self._ends:
            end.transport.abort()


class Proxy:
    """Carries connections to a server, with the faults that are set at the moment.

    Attributes:
        url: where clients connect to, with the path and query of the server's own.
        up, down: the faults of each direction; they may be changed at any time, and hold for all connections.
        connections: those that are open.
        accepted: how many were carried.
        doubled: make a second connection to the server for each, which gets the same bytes from the client,
            and whose answers go nowhere: a client that connects twice.
        refuses: cut new connections as they come.
    """

    def __init__(self, host: str, port: int) -> None:
        """Lead to a server; `proxy_to` listens."""
        self.url = ""
        self.up = Faults()
        self.down = Faults()
        self.connections: list[Connection] = []
        self.accepted = 0
        self.doubled = False
        self.refuses = False
        self._server = (host, port)
        self._changed = asyncio.Event()
        self._swallowing: set[asyncio.Task[None]] = set()

    def lead_to(self, url: str) -> None:
        """Carry new connections to another server."""
        self._server = address(url)

    def cut(self) -> None:
        """End every connection at once; new ones are carried."""
        for connection in list(self.connections):
            connection.cut()

    def set(self, *, up: Faults | None = None, down: Faults | None = None) -> None:
        """Change the faults of one direction or both; what waits for the old ones looks again."""
        self.up = up or self.up
        self.down = down or self.down
        self._tell()

    def heal(self) -> None:
        """Undo all faults; what was held arrives."""
        self.set(up=Faults(), down=Faults())

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something about the connections is so."""
        while not fact():
            await self._changed.wait()

    async def carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Carry one connection, until both directions have ended or it was cut."""
        if self.refuses:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await _connect(self._server)
        except OSError:
            writer.transport.abort()
            return
        _send_at_once(writer)
        _send_at_once(far_writer)
        twin = await self._twin() if self.doubled else None
        connection = Connection(writer, far_writer)
        self.connections.append(connection)
        self.accepted += 1
        self._tell()
        try:
            await asyncio.gather(
                self._pump(connection, "up", reader, far_writer, twin),
                self._pump(connection, "down", far_reader, writer, None),
            )
        finally:
            self.connections.remove(connection)
            connection.cut()
            if twin is not None:
                twin.transport.abort()
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _twin(self) -> StreamWriter | None:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*self._server)
            task = asyncio.create_task(_swallow(reader))
            self._swallowing.add(task)
            task.add_done_callback(self._swallowing.discard)
            return writer
        return None

    async def _pump(
        self,
        connection: Connection,
        direction: Direction,
        reader: StreamReader,
        writer: StreamWriter,
        twin: StreamWriter | None,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(self._faults(direction).read_bytes):
                while self._faults(direction).half_open:
                    await self._changed.wait()
                faults = self._faults(direction)
                if faults.delay:
                    await asyncio.sleep(faults.delay)
                rest = None if faults.cut_after is None else faults.cut_after - connection.passed[direction]
                if rest is not None:
                    data = data[: max(0, rest)]
                await _write(writer, data, faults.split)
                if twin is not None:
                    await _write(twin, data, faults.split)
                connection.passed[direction] += len(data)
                if rest is not None and len(data) == max(0, rest):
                    await asyncio.sleep(0.01)  # a reset overtakes what the kernel still holds
                    connection.cut()
                self._tell()
                if faults.every:
                    await self._pause(faults)
            if writer.can_write_eof():
                writer.write_eof()

    async def _pause(self, faults: Faults) -> None:
        """Wait as long as a slow reader does, or until it is none any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(faults.every):
                while faults is self.up or faults is self.down:
                    await self._changed.wait()

    def _faults(self, direction: Direction) -> Faults:
        return self.up if direction == "up" else self.down


async def _connect(server: tuple[str, int]) -> tuple[StreamReader, StreamWriter]:
    """Connect with a small buffer, so that the server feels how slowly the proxy reads."""
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, where = (await loop.getaddrinfo(*server, type=socket.SOCK_STREAM))[0]
    endpoint = socket.socket(family, kind, protocol)
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    endpoint.setblocking(False)  # noqa: FBT003 - the name of the method says it
    try:
        await loop.sock_connect(endpoint, where)
    except OSError:
        endpoint.close()
        raise
    return await asyncio.open_connection(sock=endpoint, limit=READ_BYTES // 2)


async def _write(writer: StreamWriter, data: bytes, split: int | None) -> None:
    size = split or max(1, len(data))
    for start in range(0, len(data), size):
        writer.write(data[start : start + size])
        await writer.drain()
        if split:
            await asyncio.sleep(0)


async def _swallow(reader: StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(READ_BYTES):
            pass


def _send_at_once(writer: StreamWriter) -> None:
    endpoint = writer.get_extra_info("socket")
    endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@asynccontextmanager
async def proxy_to(url: str) -> AsyncGenerator[Proxy]:
    """Have a proxy to the server at ``url``, on this machine's loopback. TLS is not carried: a ``ws`` URL."""
    proxy = Proxy(*address(url))
    # small buffers: a reader that is slow must be felt by the sender
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(proxy.carry, sock=listener, limit=READ_BYTES)
    parts = urlsplit(url)
    host, port = listener.getsockname()[:2]
    proxy.url = parts._replace(netloc=f"{host}:{port}").geturl()
    try:
        yield proxy
    finally:
        server.close()
        proxy.heal()
        proxy.cut()
        await proxy.until(lambda: not proxy.connections)


def address(url: str) -> tuple[str, int]:
    """Return the host and port that a URL leads to."""
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80
