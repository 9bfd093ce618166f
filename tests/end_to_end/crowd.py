"""Many light clients in one process: a socket, a replica, SPEC.md's rules for coming back, and no more.

A connection is a bare asyncio protocol, because two thousand of a library's would measure the library.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from contextlib import suppress
from random import Random
from struct import pack, unpack_from
from typing import TypeVar

import msgspec

from midstream.protocol.calls import SubscribeResult
from midstream.protocol.chunks import ChunkAssembler
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import MidstreamError, error_from_info
from midstream.protocol.frames import Chunk, Closed, ErrorFrame, GoAway, Hello, Ping, Pong, Result, Welcome
from midstream.protocol.merge import Replica
from midstream.protocol.outcomes import Gap
from midstream.protocol.values import Value

T = TypeVar("T", bound=msgspec.Struct)
BACKOFF_S = 0.5
BACKOFF_LIMIT_S = 30.0
"""SPEC 4.7."""


class Wire(asyncio.Protocol):
    """One WebSocket, without extensions; ``take`` gets each frame, and ``lost`` is set at its end."""

    def __init__(self, host: str, take: Callable[[object], None]) -> None:
        """Be ready to be connected."""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost = asyncio.Event()
        self.failure: Exception | None = None
        """What was wrong with a frame."""
        self._host = host
        self._take = take
        self._buffer = bytearray()
        self._assembler = ChunkAssembler(256 * 1024 * 1024, MSGPACK)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a WebSocket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            f"GET / HTTP/1.1\r\nHost: {self._host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: midstream.v1.msgpack\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        """Take the answer, then frames."""
        self._buffer += data
        if not self.opened.done():
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            if not head.startswith(b"HTTP/1.1 101"):
                self.close()
                return
            self._buffer = rest
            self.opened.set_result(None)
        while (payload := self._next()) is not None:
            frame = MSGPACK.decode_server_frame(payload)
            if isinstance(frame, Chunk):
                whole = self._assembler.feed(frame)
                frame = None if whole is None else MSGPACK.decode_server_frame(whole)
            if frame is not None:
                self._give(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits."""
        del exc
        self.lost.set()
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the handshake failed"))
            self.opened.exception()

    def send(self, frame: object) -> None:
        """Send a frame, masked with zeros."""
        payload = MSGPACK.encode(frame)
        size = len(payload)
        head = pack("!BB", 0x82, 0x80 | size) if size < 126 else pack("!BBH", 0x82, 0xFE, size)
        if self._transport is not None:
            self._transport.write(head + b"\0\0\0\0" + payload)

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.abort()

    def _give(self, frame: object) -> None:
        try:
            self._take(frame)
        except Exception as failure:  # noqa: BLE001  # whoever waits for the end of the connection raises it
            self.failure = failure
            self.close()

    def _next(self) -> bytes | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, at = buffer[1], 2
        if size == 126:
            size, at = (unpack_from("!H", buffer, 2)[0], 4) if len(buffer) >= 4 else (1 << 62, 4)
        elif size == 127:
            size, at = (unpack_from("!Q", buffer, 2)[0], 10) if len(buffer) >= 10 else (1 << 62, 10)
        if len(buffer) < at + size:
            return None
        opcode, payload = buffer[0] & 15, bytes(buffer[at : at + size])
        del buffer[: at + size]
        if opcode == 8:
            self.close()
        return payload if opcode == 2 else self._next()


class Visitor:
    """One client of one session: it stays, comes back by the rules, and follows.

    Attributes:
        back_at: when it was subscribed last, by the loop's clock.
        attempts: when it tried to connect.
    """

    def __init__(self, port: Callable[[], int], session_id: str, chance: Random) -> None:
        """Belong to a session; ``port`` says where its server is."""
        self.replica = Replica(session_id)
        self.back_at = 0.0
        self.attempts: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._port = port
        self._chance = chance
        self._wire: Wire | None = None
        self._channel: int | None = None
        self._calls = 0
        self._pending: dict[int, tuple[str, asyncio.Future[msgspec.Struct]]] = {}
        self._return_at: float | None = None
        self._tries = 0
        self._is_leaving = False
        self._news = asyncio.Event()

    async def stay(self) -> None:
        """Be there until cancelled."""
        try:
            while True:
                with suppress(OSError):
                    await self._visit()
                await asyncio.sleep(self._pause())
        finally:
            if self._wire is not None:
                self._wire.close()

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something that came has made a fact true."""
        while not fact():
            self._news.clear()
            await self._news.wait()

    async def ask(self, kind: type[T], method: str, **params: Value) -> T:
        """Call, again and again until it is answered; raises what it is refused with for good."""
        while True:
            try:
                result = await self._begin(method, params)
            except ConnectionError:
                await asyncio.sleep(0.1)
            except MidstreamError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(0.1)
            else:
                assert isinstance(result, kind)
                return result

    def _pause(self) -> float:
        """Return how long to wait for the next attempt (SPEC 4.7)."""
        at, self._return_at = self._return_at, None
        if at is not None:
            return max(0.0, at - self._loop.time())
        self._tries += 1
        return self._chance.uniform(0, min(BACKOFF_LIMIT_S, BACKOFF_S * 2 ** (self._tries - 1)))

    async def _visit(self) -> None:
        self.attempts.append(self._loop.time())
        port = self._port()
        wire = Wire(f"127.0.0.1:{port}", self._take)
        await self._loop.create_connection(lambda: wire, "127.0.0.1", port)
        try:
            await wire.opened
            self._wire, self._is_leaving = wire, False
            wire.send(Hello(1, None, {"name": "crowd"}))
            await wire.lost.wait()
            if wire.failure is not None:
                raise wire.failure
        finally:
            self._wire = self._channel = None
            wire.close()
            pending, self._pending = self._pending, {}
            for _, answer in pending.values():
                if answer.done():
                    continue
                answer.set_exception(ConnectionError("the connection was lost"))
                answer.exception()

    def _begin(self, method: str, params: dict[str, Value]) -> asyncio.Future[msgspec.Struct]:
        answer: asyncio.Future[msgspec.Struct] = self._loop.create_future()
        if self._wire is None or self._is_leaving or (self._channel is None and method != "subscribe"):
            answer.set_exception(ConnectionError("not connected"))
            return answer
        self._calls += 1
        self._pending[self._calls] = method, answer
        self._wire.send(msgspec.Raw(MSGPACK.call(self._calls, method, params)))
        return answer

    def _subscribe(self, *, keep_cursor: bool = True) -> None:
        params: dict[str, Value] = {"session_id": self.replica.session_id, "limit": 20}
        cursor = self.replica.cursor() if keep_cursor else None
        if cursor is not None:
            params["cursor"] = msgspec.to_builtins(cursor)
        self._channel = None
        # the answer is taken in its place, and where it is refused the connection is begun anew
        self._begin("subscribe", params).add_done_callback(self._refused)

    def _refused(self, answer: asyncio.Future[msgspec.Struct]) -> None:
        if not answer.cancelled() and answer.exception() is not None and self._wire is not None:
            self._wire.close()

    def _take(self, frame: object) -> None:
        match frame:
            case Welcome():
                self._subscribe()
            case Ping(nonce):
                if self._wire is not None:
                    self._wire.send(Pong(nonce, 0))
            case GoAway(_, after_ms):
                self._return_at = self._loop.time() + after_ms / 1000
                self._is_leaving = True
                self._leave()
            case Result() | ErrorFrame():
                self._settle(frame)
                self._leave()
            case _:
                if getattr(frame, "channel", None) == self._channel and self._channel is not None:
                    self._follow(frame)
        self._news.set()

    def _settle(self, frame: Result | ErrorFrame) -> None:
        method, answer = self._pending.pop(frame.id or 0)
        if isinstance(frame, ErrorFrame):
            answer.set_exception(error_from_info(frame.error))
            answer.exception()
            return
        result = MSGPACK.decode_result(method, frame.result)
        if isinstance(result, SubscribeResult):
            self._attach(result)
        if not answer.done():
            answer.set_result(result)

    def _follow(self, frame: object) -> None:
        if isinstance(frame, Closed):
            self._subscribe()
            return
        outcome = self.replica.apply(frame)  # type: ignore[arg-type]  # a frame of the session
        if isinstance(outcome, Gap):
            self._subscribe(keep_cursor=outcome.keep_cursor)

    def _attach(self, result: SubscribeResult) -> None:
        outcome = self.replica.apply_sync(result.sync)
        assert not isinstance(outcome, Gap), outcome
        self._channel = result.channel
        self._tries = 0
        self.back_at = self._loop.time()

    def _leave(self) -> None:
        if self._is_leaving and not self._pending and self._wire is not None:
            self._wire.close()
