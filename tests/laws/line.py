"""One connection of a client that is nothing but SPEC.md: it sends calls and keeps what comes, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from midstream.protocol.chunks import ChunkAssembler
from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.errors import ErrorInfo, error_from_info
from midstream.protocol.frames import (
    Change,
    Chunk,
    Closed,
    Delta,
    ErrorFrame,
    Hello,
    Mark,
    Ping,
    Pong,
    Result,
    ServerFrame,
    ShortDelta,
    Signal,
    Skip,
    Sync,
    Welcome,
    WelcomeInfo,
)
from midstream.protocol.limits import PROTOCOL_VERSION
from tests.link import Link

if TYPE_CHECKING:
    from midstream.protocol.values import Value

T = TypeVar("T", bound=msgspec.Struct)
F = TypeVar("F", bound=ServerFrame)
DELTAS = (Delta, ShortDelta)
ChannelFrame = Delta | ShortDelta | Change | Skip | Sync | Mark | Closed | Signal
PATIENCE = 120.0
"""Virtual seconds that anything may take before the test fails instead of waiting."""


def tag_of(frame: msgspec.Struct | type[msgspec.Struct]) -> str:
    """Return the tag of a frame or of its class, or ``short`` for the one that has none."""
    return str(frame.__struct_config__.tag or "short")


class LineLost(Exception):
    """The connection ended before the answer came."""


@dataclass
class _Pending:
    method: str
    on_result: Callable[[msgspec.Struct], None] | None
    answer: asyncio.Future[msgspec.Struct]


class Line:
    """A connection to the server, and everything that came over it.

    Attributes:
        routes: who gets the frames of a channel; whoever subscribes sets it, and it is asked in the
            order of the stream.
        frames: every frame that came, chunks joined.
        raw: every frame as it came: chunks, and what was not sent in chunks.
        heard: the encoded frames, chunks joined.
        code: the close code, once the connection has ended; 1006 where it was lost.
    """

    def __init__(self, websocket: ClientConnection, codec: Codec) -> None:
        self.codec = codec
        self.routes: dict[int, Callable[[ChannelFrame], Awaitable[None]]] = {}
        self.frames: list[ServerFrame] = []
        self.raw: list[ServerFrame] = []
        self.heard: list[bytes] = []
        self.code: int | None = None
        self.welcome: WelcomeInfo | None = None
        self._websocket = websocket
        self._pending: dict[int, _Pending] = {}
        self._calls = 0
        self._assembler = ChunkAssembler(10**9, codec)
        self._news = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str, codec: Codec = MSGPACK) -> Line:
        """Connect and say hello."""
        websocket = await connect(
            url,
            subprotocols=[Subprotocol(codec.subprotocol)],
            proxy=None,
            compression=None,
            ping_interval=None,
            max_size=None,
        )
        line = cls(websocket, codec)
        line._reading = asyncio.create_task(line._read(), name="line")
        await line.send(Hello(PROTOCOL_VERSION, None, {"name": "law"}))
        await line.until(lambda: line.welcome is not None or line.code is not None)
        return line

    @property
    def link(self) -> Link:
        """The link in memory that carries it, to break."""
        link = self._websocket.transport.get_extra_info("link")
        assert isinstance(link, Link)
        return link

    @property
    def is_open(self) -> bool:
        """Whether the connection lives, as far as this end knows."""
        return self.code is None

    def of(self, kind: type[F]) -> list[F]:
        """Return all frames of one kind that came."""
        return [frame for frame in self.frames if isinstance(frame, kind)]

    @property
    def deltas(self) -> list[Delta | ShortDelta]:
        """Return all deltas that came, in both forms."""
        return [frame for frame in self.frames if isinstance(frame, DELTAS)]

    async def send(self, frame: object) -> None:
        """Send one frame; nothing, if the connection has ended."""
        data = self.codec.encode(frame)
        with suppress(ConnectionClosed):
            await self._websocket.send(data if self.codec.binary else data.decode())

    @property
    def refusals(self) -> list[ErrorInfo]:
        """Everything that was refused."""
        return [frame.error for frame in self.of(ErrorFrame)]

    async def send_raw(self, message: str | bytes) -> None:
        """Send a message as it stands, text or binary."""
        await self._websocket.send(message)

    async def ask(self, kind: type[T], method: str, **params: Value) -> T:
        """Call a method and wait for its result.

        Raises:
            MidstreamError: the call was refused.
            LineLost: the connection ended first.
        """
        result = await (await self.begin(method, params))
        assert isinstance(result, kind)
        return result

    async def begin(
        self,
        method: str,
        params: dict[str, Value],
        on_result: Callable[[msgspec.Struct], None] | None = None,
    ) -> asyncio.Future[msgspec.Struct]:
        """Send a call and do not wait. ``on_result`` is called at the answer's place in the stream."""
        self._calls += 1
        answer: asyncio.Future[msgspec.Struct] = asyncio.get_running_loop().create_future()
        if self.code is not None:
            _fail(answer, LineLost(method))
            return answer
        self._pending[self._calls] = _Pending(method, on_result, answer)
        await self.send(msgspec.Raw(self.codec.call(self._calls, method, params)))
        return answer

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something that came has made a fact true."""
        async with asyncio.timeout(PATIENCE):
            while not fact():
                self._news.clear()
                await self._news.wait()
                if self._reading is not None and self._reading.done():
                    self._reading.result()  # what a reader found wrong, where it did

    def cut(self) -> None:
        """Lose the connection: what is on its way is lost, and both ends notice."""
        self.link.cut()

    def stop_reading(self) -> None:
        """Read nothing any more, and say nothing about it."""
        self._websocket.transport.pause_reading()

    def read_on(self) -> None:
        """Read again."""
        self._websocket.transport.resume_reading()

    async def close(self) -> None:
        """End the connection at once, and everything that this end runs."""
        self._websocket.transport.abort()
        if self._reading is not None:
            await self._reading

    async def _read(self) -> None:
        try:
            async for data in self._websocket:
                await self._receive(data.encode() if isinstance(data, str) else data)
        except ConnectionClosed:
            pass
        finally:
            self.code = self._websocket.close_code or 1006
            pending, self._pending = self._pending, {}
            for call in pending.values():
                _fail(call.answer, LineLost(call.method))
            self._news.set()

    async def _receive(self, data: bytes) -> None:
        frame = self._decoded(data)
        self.raw.append(frame)
        if isinstance(frame, Chunk):
            whole = self._assembler.feed(frame)
            if whole is None:
                return
            data, frame = whole, self._decoded(whole)
        self.heard.append(data)
        await self._take(frame)

    def _decoded(self, data: bytes) -> ServerFrame:
        frame = self.codec.decode_server_frame(data)
        assert frame is not None, "a server of this version sends no unknown frame"
        return frame

    async def _take(self, frame: ServerFrame) -> None:
        self.frames.append(frame)
        if isinstance(frame, Welcome):
            self.welcome = frame.info
        elif isinstance(frame, Ping):
            await self.send(Pong(frame.nonce, 0))
        elif isinstance(frame, (Result, ErrorFrame)):
            self._settle(frame)
        elif isinstance(frame, ChannelFrame) and frame.channel in self.routes:
            await self.routes[frame.channel](frame)
        self._news.set()

    def _settle(self, frame: Result | ErrorFrame) -> None:
        call = None if frame.id is None else self._pending.pop(frame.id, None)
        if call is None:
            return  # of a frame that was sent as it stands
        if isinstance(frame, ErrorFrame):
            _fail(call.answer, error_from_info(frame.error))
            return
        try:
            result = self.codec.decode_result(call.method, frame.result)
            if call.on_result is not None:
                call.on_result(result)
        except AssertionError as error:
            _fail(call.answer, error)
        else:
            call.answer.set_result(result)


def _fail(answer: asyncio.Future[msgspec.Struct], error: Exception) -> None:
    """Fail a call for whoever waits for it, which may be nobody."""
    if not answer.done():
        answer.set_exception(error)
        answer.exception()
