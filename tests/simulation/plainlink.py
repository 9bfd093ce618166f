"""A connection as a stranger writes it from SPEC.md: it comes back, takes frames, sends calls in order."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Protocol, TypeVar

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from midstream.client import ConnectionLost, MidstreamError
from midstream.protocol.chunks import ChunkAssembler, chunks
from midstream.protocol.codec import JSON
from midstream.protocol.errors import error_from_info
from midstream.protocol.frames import Call, Chunk, ErrorFrame, Hello, Ping, Pong, Result, ServerFrame, Welcome
from tests.simulation.backend import URL

CONNECT_SECONDS = 10
MAX_FRAME_BYTES = 2**30

R = TypeVar("R", bound=msgspec.Struct)
Answer = msgspec.Struct | MidstreamError | None
"""A result, an error, or None: the connection was lost before."""


class Owner(Protocol):
    """Who uses the link."""

    def welcomed(self) -> None:
        """Learn that calls can be sent."""

    def took(self, frame: ServerFrame) -> None:
        """Take a frame that is neither an answer nor part of keeping the link."""

    def lost(self, why: str) -> None:
        """Learn that the connection is gone; its calls have been told."""


class PlainLink:
    """Connects, says hello, answers pings, asks once a heartbeat, and begins anew when the link is gone.

    Attributes:
        online: set while calls can be sent.
        connections: counts the connections that were tried.
    """

    def __init__(self, owner: Owner, rng: Random, *, heartbeat: float, chunk_bytes: int) -> None:
        self.online = asyncio.Event()
        self.connections = 0
        self._owner = owner
        self._rng = rng
        self._heartbeat = heartbeat
        self._chunk_bytes = chunk_bytes
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._calls: dict[int, tuple[str, Callable[[Answer], None]]] = {}
        self._next_id = 0

    async def live(self) -> None:
        """Be connected as often as possible, until cancelled."""
        while True:
            why = "the connection ended"
            try:
                await self._connect()
            except (OSError, WebSocketException, TimeoutError, EOFError) as error:
                why = type(error).__name__
            finally:
                self.forget()
                self._owner.lost(why)
            await asyncio.sleep(self._rng.uniform(0, 2))

    def forget(self) -> None:
        """Forget the connection, and tell those who wait for answers."""
        self.online.clear()
        self._outgoing = asyncio.Queue()
        waiting, self._calls = self._calls, {}
        for _, take in waiting.values():
            take(None)

    def call(self, method: str, params: msgspec.Struct, take: Callable[[Answer], None]) -> None:
        """Send a call; `take` gets what comes of it, in the middle of the stream."""
        if not self.online.is_set():
            take(None)
            return
        call_id, self._next_id = self._next_id, self._next_id + 1
        self._calls[call_id] = (method, take)
        self._outgoing.put_nowait(JSON.encode(Call(call_id, method, JSON.raw(params))))

    async def ask(self, method: str, params: msgspec.Struct, kind: type[R], *, repeatable: bool = True) -> R:
        """Make a call, again and again until it is answered if that is harmless.

        Raises:
            MidstreamError: The server's refusal, or the connection was lost and a repeat could do harm.
        """
        while True:
            await self.online.wait()
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self.call(method, params, future.set_result)
            answer = await future
            if isinstance(answer, kind):
                return answer
            error = answer if isinstance(answer, MidstreamError) else ConnectionLost(method, sent=True)
            if not repeatable or (answer is not None and not error.retryable):
                raise error
            await asyncio.sleep(self._rng.uniform(0.1, 1))

    async def _connect(self) -> None:
        self.connections += 1
        async with asyncio.timeout(CONNECT_SECONDS) as patience:
            opening = connect(
                URL,
                subprotocols=[Subprotocol(JSON.subprotocol)],
                compression=None,
                ping_interval=None,
                close_timeout=1,
                max_size=None,
                proxy=None,
            )
            async with opening as connection:
                patience.reschedule(None)
                outgoing = self._outgoing
                outgoing.put_nowait(JSON.encode(Hello(1, None, {"client": "stranger"})))
                writer = asyncio.get_running_loop().create_task(self._write(connection, outgoing))
                try:
                    await self._read(connection)
                finally:
                    writer.cancel()
                    await asyncio.wait([writer])

    async def _write(self, connection: ClientConnection, outgoing: asyncio.Queue[bytes]) -> None:
        n = 0
        try:
            while True:
                try:
                    async with asyncio.timeout(self._heartbeat):
                        payload = await outgoing.get()
                except TimeoutError:
                    payload = JSON.encode(Ping(7))
                n += 1
                whole = len(payload) <= self._chunk_bytes
                pieces = chunks(payload, n=n, chunk_bytes=self._chunk_bytes, codec=JSON)
                for piece in [payload] if whole else pieces:
                    await connection.send(piece, text=True)
        except WebSocketException:
            pass  # the reader finds out

    async def _read(self, connection: ClientConnection) -> None:
        assembler = ChunkAssembler(MAX_FRAME_BYTES, JSON)
        while True:
            try:
                async with asyncio.timeout(2 * self._heartbeat):
                    data = await connection.recv(decode=False)
            except TimeoutError:
                connection.transport.abort()
                raise
            frame = JSON.decode_server_frame(data)
            if isinstance(frame, Chunk):
                whole = assembler.feed(frame)
                frame = None if whole is None else JSON.decode_server_frame(whole)
            if frame is not None:
                self._take(frame)

    def _take(self, frame: ServerFrame) -> None:
        if isinstance(frame, Welcome):
            self.online.set()
            self._owner.welcomed()
        elif isinstance(frame, Ping):
            self._outgoing.put_nowait(JSON.encode(Pong(frame.nonce, 0)))
        elif isinstance(frame, (Result, ErrorFrame)) and frame.id is not None:
            method, take = self._calls.pop(frame.id)
            if isinstance(frame, Result):
                take(JSON.decode_result(method, frame.result))
            else:
                take(error_from_info(frame.error))
        elif not isinstance(frame, Pong):
            self._owner.took(frame)
