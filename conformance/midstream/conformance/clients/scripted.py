"""The scripted server: real sockets, where nothing happens by itself but welcomes and pongs (SPEC 4.1)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol

from midstream.conformance.outcome import Failed
from midstream.protocol.chunks import ChunkAssembler, chunks
from midstream.protocol.codec import CODECS, MSGPACK, Codec
from midstream.protocol.errors import ErrorInfo, MidstreamError
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
from midstream.protocol.values import Value

SERVER_TIME: Final = 1_700_000_000_000
BRIEF: Final = 200
"""Characters of a frame in the log."""
T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True):
    """A call of the client: its params as the method's Struct, and as they were sent."""

    id: int
    method: str
    params: msgspec.Struct
    sent: Value

    def value(self, name: str) -> Value:
        """Return a param as it was sent; None where it was not."""
        return self.sent.get(name) if isinstance(self.sent, dict) else None


class Peer:
    """One connection of the client under test, as the server has it."""

    def __init__(self, connection: ServerConnection, codec: Codec, note: Callable[[str], None]) -> None:
        """Take over an open WebSocket."""
        self.codec = codec
        self.hello: Hello | None = None
        self.frames: list[ClientFrame] = []
        """All that came, in order, chunks joined."""
        self.longest = 0
        """Bytes of the longest WebSocket message that came."""
        self.faults: list[str] = []
        """What came and may not come."""
        self.answers_pings = True
        self.close_code: int | None = None
        self.over = False
        self._connection = connection
        self._note = note
        self._assembler = ChunkAssembler(DEFAULT_LIMITS.frame_bytes, codec)
        self._calls: list[Asked] = []
        self._changed = asyncio.Event()
        self._next_n = 0

    # What came

    async def until(self, look: Callable[[], T | None], what: str, *, within: float) -> T:
        """Wait until ``look`` gives something; it is asked after each frame.

        Raises:
            Failed: not within so many seconds, or the connection ended first.

        """
        try:
            async with asyncio.timeout(within):
                while True:
                    found = look()
                    if found is not None:
                        return found
                    if self.over:
                        break
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        how = "its connection ended first" if self.over else f"not within {within:g} s"
        raise Failed(f"the client did not {what}: {how}", seen=self._summary())

    async def call(self, method: str, *, within: float) -> Asked:
        """Wait for the next call of this method."""
        return await self.until(lambda: self.take(method), f"call {method!r}", within=within)

    def take(self, *methods: str) -> Asked | None:
        """Take the earliest call of these methods that came; None where none did."""
        found = next((call for call in self._calls if call.method in methods), None)
        if found is not None:
            self._calls.remove(found)
        return found

    def waiting(self, method: str) -> int:
        """Say how many calls of this method came, and were not taken by :meth:`call`."""
        return sum(call.method == method for call in self._calls)

    async def ended(self, *, within: float) -> None:
        """Wait until the connection is over."""
        with contextlib.suppress(Failed):
            await self.until(lambda: None, "", within=within)
        if not self.over:
            raise Failed(f"the client did not end the connection within {within:g} s", seen=self._summary())

    # What is sent

    async def send(self, frame: object) -> None:
        """Send a frame, in chunks where it is long."""
        payload = self.codec.encode(frame)
        if len(payload) <= DEFAULT_LIMITS.chunk_bytes:
            await self.send_bytes(payload)
            return
        for piece in self.pieces(payload):
            await self.send_bytes(piece)

    def pieces(self, payload: bytes, *, size: int = DEFAULT_LIMITS.chunk_bytes) -> list[bytes]:
        """Return the chunk frames of an encoded frame."""
        self._next_n += 1
        return list(chunks(payload, n=self._next_n, chunk_bytes=size, codec=self.codec))

    async def send_bytes(self, payload: bytes) -> None:
        """Send one WebSocket message of the encoding's kind."""
        self._note(f"< {_brief(payload)}")
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send(payload, text=not self.codec.binary)

    async def answer(self, call: Asked, result: object) -> None:
        """Answer a call."""
        await self.send(Result(call.id, self.codec.raw(result)))

    async def refuse(self, call: Asked, code: str, *, retryable: bool = False, **details: Value) -> None:
        """Refuse a call."""
        info = ErrorInfo(code=code, message=f"refused: {code}", retryable=retryable, details=details)
        await self.send(ErrorFrame(call.id, info))

    async def cut(self, frame: object, at: int) -> None:
        """Send the first ``at`` bytes of a frame's WebSocket message, then end the connection."""
        opcode = Opcode.BINARY if self.codec.binary else Opcode.TEXT
        data = Frame(opcode, self.codec.encode(frame)).serialize(mask=False)
        at = min(at, len(data) - 1)
        self._note(f"< {at} of {len(data)} bytes of {_brief(self.codec.encode(frame))}, and the end")
        self._connection.transport.write(data[:at])
        self._connection.transport.close()
        await self.ended(within=10)

    def drop(self) -> None:
        """End the connection without a word."""
        self._note("< the connection is cut")
        self._connection.transport.abort()

    async def close(self, code: int, reason: str = "") -> None:
        """Close with a code."""
        self._note(f"< close {code}")
        await self._connection.close(code, reason)

    # The reading, which the server does

    async def read(self, welcome: WelcomeInfo | None) -> None:
        """Read to the end; say ``welcome`` to the hello, unless there is none to say."""
        try:
            while True:
                data = await self._connection.recv(decode=False)
                self._note(f"> {_brief(data)}")
                self.longest = max(self.longest, len(data))
                try:
                    frame = self._decode(data)
                except MidstreamError as error:
                    self.faults.append(f"{error} in {_brief(data)}")
                    frame = None
                if frame is not None:
                    await self._take(frame, welcome)
                self._changed.set()
        except ConnectionClosed:
            pass
        finally:
            self.over = True
            self.close_code = self._connection.close_code
            self._note("> the connection is over")
            self._changed.set()

    def _decode(self, data: bytes) -> ClientFrame | None:
        frame = self.codec.decode_client_frame(data)
        if isinstance(frame, Chunk):
            joined = self._assembler.feed(frame)
            return None if joined is None else self.codec.decode_client_frame(joined)
        return frame

    async def _take(self, frame: ClientFrame, welcome: WelcomeInfo | None) -> None:
        self.frames.append(frame)
        if isinstance(frame, Hello):
            if self.hello is not None or len(self.frames) > 1:
                self.faults.append("a hello that is not the first frame")
            self.hello = frame
            if welcome is not None:
                await self.send(Welcome(welcome))
        elif self.hello is None:
            self.faults.append(f"{type(frame).__name__} before the hello")
        elif isinstance(frame, Ping) and self.answers_pings:
            await self.send(Pong(frame.nonce, SERVER_TIME))
        elif isinstance(frame, Call):
            params, sent = self.codec.decode_params(frame.method, frame.params)
            in_use = {call.id for call in self._calls}
            if frame.id in in_use:
                self.faults.append(f"the id {frame.id} of a call that has no answer")
            self._calls.append(Asked(frame.id, frame.method, params, sent))

    def _summary(self) -> str:
        return ", ".join(f"{c.method}" if isinstance(c, Call) else type(c).__name__ for c in self.frames)


class ScriptedServer:
    """Listens on loopback; each connection becomes a `Peer` that the case drives."""

    def __init__(self) -> None:
        """Begin without connections."""
        self.url = ""
        self.heartbeat_ms = 60_000
        self.limits: Limits = DEFAULT_LIMITS
        self.welcomes = True
        self.token_ms: int | None = None
        """In how many ms the welcome says that the token expires."""
        self.peers: list[Peer] = []
        """All connections, in the order in which they were opened."""
        self.opened_at: list[float] = []
        """When each was opened, in seconds of the loop."""
        self.log: list[str] = []
        self._arrived = asyncio.Event()

    async def peer(self, number: int, *, within: float) -> Peer:
        """Wait for the connection of this number, from 0, and its hello.

        Raises:
            Failed: it did not come.

        """
        try:
            async with asyncio.timeout(within):
                while len(self.peers) <= number:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise Failed(f"connection {number + 1} did not come within {within:g} s") from None
        found = self.peers[number]
        await found.until(lambda: found.hello, "say hello", within=within)
        return found

    async def serve(self, connection: ServerConnection) -> None:
        """Read one connection to its end."""
        codec = CODECS.get(str(connection.subprotocol), MSGPACK)
        index = len(self.peers)

        def note(line: str) -> None:
            self.log.append(f"{index + 1} {line}")

        peer = Peer(connection, codec, note)
        self.peers.append(peer)
        self.opened_at.append(asyncio.get_running_loop().time())
        self._arrived.set()
        await peer.read(self._welcome(index) if self.welcomes else None)

    def _welcome(self, index: int) -> WelcomeInfo:
        return WelcomeInfo(
            connection_id=f"c{index + 1}",
            server="midstream conform",
            time=SERVER_TIME,
            heartbeat_ms=self.heartbeat_ms,
            limits=self.limits,
            subject="local",
            scopes=["read", "write", "internal", "agent"],
            token_ms=UNSET if self.token_ms is None else self.token_ms,
        )


@contextlib.asynccontextmanager
async def scripted_server() -> AsyncGenerator[ScriptedServer]:
    """Serve on a free port of this machine, and cut all connections at the end."""
    server = ScriptedServer()
    async with serve(
        server.serve,
        "127.0.0.1",
        0,
        subprotocols=[Subprotocol(name) for name in CODECS],
        compression=None,
        ping_interval=None,
        max_size=None,
        close_timeout=2,
    ) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        server.url = f"ws://127.0.0.1:{port}"
        try:
            yield server
        finally:
            for peer in server.peers:
                if not peer.over:
                    peer.drop()


def _brief(data: bytes) -> str:
    text = repr(data)
    return text if len(text) <= BRIEF else f"{text[:BRIEF]}… {len(data)} bytes"
