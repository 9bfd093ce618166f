"""A scripted server: it speaks the protocol over real WebSockets, and does what a test tells it.

It has no sessions and no law of its own, so it can do what a right server never does: lose an answer, leave
out a version, send what nobody asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from midstream.protocol.chunks import ChunkAssembler, chunks
from midstream.protocol.codec import CODECS, Codec
from midstream.protocol.errors import MidstreamError
from midstream.protocol.frames import (
    Call,
    Chunk,
    ClientFrame,
    ErrorFrame,
    Hello,
    Ping,
    Pong,
    Result,
    Welcome,
    WelcomeInfo,
)
from midstream.protocol.limits import DEFAULT_LIMITS, Limits

P = TypeVar("P", bound=msgspec.Struct)
HEARTBEAT_MS = 15_000


class Asked(msgspec.Struct, frozen=True):
    """A call that came, and the connection to answer it on."""

    id: int
    method: str
    params: msgspec.Struct
    link: PeerLink

    def as_(self, kind: type[P]) -> P:
        """Return the params, which must be of this type."""
        assert isinstance(self.params, kind)
        return self.params

    async def result(self, result: msgspec.Struct) -> None:
        """Answer."""
        await self.link.send(Result(self.id, self.link.codec.raw(result)))

    async def error(self, error: MidstreamError) -> None:
        """Refuse."""
        await self.link.send(ErrorFrame(self.id, error.info()))


class PeerLink:
    """One connection, at the server's end."""

    def __init__(self, connection: ServerConnection, codec: Codec) -> None:
        self.codec = codec
        self.connection = connection
        self._assembler = ChunkAssembler(2**26, codec)
        self.chunks = 0
        """Pieces of longer frames that came."""
        self._n = 0

    async def send(self, frame: object) -> None:
        """Send a frame."""
        await self.send_raw(self.codec.encode(frame))

    async def send_in_chunks(self, frame: object, chunk_bytes: int) -> int:
        """Send a frame in pieces, and return how many there were."""
        pieces = list(chunks(self.codec.encode(frame), n=self._n, chunk_bytes=chunk_bytes, codec=self.codec))
        self._n += 1
        for piece in pieces:
            await self.send_raw(piece)
        return len(pieces)

    async def send_raw(self, payload: bytes) -> None:
        """Send these bytes as one message; of no effect when the other end has gone."""
        try:
            await self.connection.send(payload, text=not self.codec.binary)
        except ConnectionClosed:
            return

    async def frame(self) -> ClientFrame:
        """Return the next frame, joined from its chunks.

        Raises:
            ConnectionClosed: the client has gone.
        """
        while True:
            frame = self.codec.decode_client_frame(await self.connection.recv(decode=False))
            if not isinstance(frame, Chunk):
                return frame
            self.chunks += 1
            joined = self._assembler.feed(frame)
            if joined is not None:
                return self.codec.decode_client_frame(joined)

    async def asked(self, method: str) -> Asked:
        """Return the next call, which must be of this method; pings on the way are answered."""
        while True:
            frame = await self.frame()
            if isinstance(frame, Ping):
                await self.send(Pong(frame.nonce, 0))
                continue
            assert isinstance(frame, Call), frame
            params, _ = self.codec.decode_params(frame.method, frame.params)
            assert frame.method == method, f"{frame.method} {params} instead of {method}"
            return Asked(frame.id, frame.method, params, self)

    async def is_quiet(self) -> bool:
        """Say whether the client has sent nothing that is not read yet, but for pings.

        Everything that it sent before its pong is here then.
        """
        await self.send(Ping(77))
        while isinstance(frame := await self.frame(), Ping):
            pass
        return isinstance(frame, Pong)

    async def close(self, code: int, reason: str = "") -> None:
        """Close with a code."""
        await self.connection.close(code, reason)

    def drop(self) -> None:
        """Break the connection without a word, as a lost network does when it comes back."""
        self.connection.transport.abort()

    async def gone(self) -> None:
        """Wait until the connection is over, whatever the client still sends."""
        try:
            while True:
                await self.connection.recv(decode=False)
        except ConnectionClosed:
            return


class Peer:
    """The scripted server."""

    def __init__(self) -> None:
        self.limits: Limits = DEFAULT_LIMITS
        self.heartbeat_ms = HEARTBEAT_MS
        self.statuses: list[HTTPStatus] = []
        """HTTP answers for the next handshakes, before any WebSocket is made."""
        self.first: Callable[[], object] | None = None
        """Makes the first frame in place of ``welcome``."""
        self.hellos: list[Hello] = []
        self.attempts = 0
        self.url = ""
        self._links: asyncio.Queue[PeerLink] = asyncio.Queue()
        self._server: Server | None = None

    async def start(self, port: int = 0) -> None:
        """Listen; on the same port again after :meth:`stop`."""
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            port,
            subprotocols=[Subprotocol(name) for name in CODECS],
            process_request=self._request,
            ping_interval=None,
            compression=None,
            max_size=None,
        )
        self.port: int = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"ws://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Stop listening and break all connections."""
        if self._server is not None:
            for connection in list(self._server.connections):
                connection.transport.abort()
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def accept(self) -> PeerLink:
        """Return the next connection whose client was greeted."""
        return await self._links.get()

    async def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        del request
        self.attempts += 1
        if self.statuses:
            return connection.respond(self.statuses.pop(0), "scripted\n")
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        codec = CODECS[connection.subprotocol or ""]
        link = PeerLink(connection, codec)
        try:
            hello = await link.frame()
        except ConnectionClosed:
            return
        assert isinstance(hello, Hello)
        self.hellos.append(hello)
        await link.send(self.first() if self.first else Welcome(self._welcome()))
        self._links.put_nowait(link)
        await connection.wait_closed()

    def _welcome(self) -> WelcomeInfo:
        return WelcomeInfo(
            connection_id=f"c{len(self.hellos)}",
            server="scripted",
            time=0,
            heartbeat_ms=self.heartbeat_ms,
            limits=self.limits,
            subject="local",
            scopes=["read", "write", "internal"],
        )
