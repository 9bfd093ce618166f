"""A client that counts: every byte that TCP carries for it, and what the bytes were for."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from midstream.protocol.calls import (
    Cursor,
    MessagesParams,
    Page,
    PromptParams,
    PromptResult,
    SubscribeParams,
    SubscribeResult,
    VerifyParams,
    VerifyResult,
)
from midstream.protocol.chunks import ChunkAssembler
from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.digest import message_digest
from midstream.protocol.frames import (
    Change,
    Chunk,
    Delta,
    ErrorFrame,
    Hello,
    Mark,
    Ping,
    Pong,
    Result,
    ServerFrame,
    ShortDelta,
    Skip,
    Sync,
    Welcome,
)
from midstream.protocol.merge import Replica
from midstream.protocol.model import TextPart
from midstream.protocol.outcomes import Gap, PageOutcome

R = TypeVar("R", bound=msgspec.Struct)


class Unexpected(Exception):
    """The server did something that makes the measurement worthless."""


class Relay:
    """Carries one connection, and counts its bytes: all but the headers of TCP and IP."""

    def __init__(self) -> None:
        self.up = 0
        """Bytes from the client so far, WebSocket headers and masks included."""
        self.down = 0
        """Bytes from the server so far."""

    async def carry(self, reader: StreamReader, writer: StreamWriter, host: str, port: int) -> None:
        """Carry until one end closes."""
        far_reader, far_writer = await asyncio.open_connection(host, port)
        try:
            await asyncio.gather(
                self._pump(reader, far_writer, is_up=True), self._pump(far_reader, writer, is_up=False)
            )
        finally:
            writer.close()
            far_writer.close()

    async def _pump(self, reader: StreamReader, writer: StreamWriter, *, is_up: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if is_up:
                    self.up += len(data)
                else:
                    self.down += len(data)
                writer.write(data)
                await writer.drain()
            writer.write_eof()


class CountingReader:
    """Follows one session with a replica, and knows what it cost."""

    def __init__(self, connection: ClientConnection, relay: Relay, replica: Replica, codec: Codec) -> None:
        """Take an open connection, carried by the relay."""
        self.connection = connection
        self.relay = relay
        self.replica = replica
        self.codec = codec
        self._assembler = ChunkAssembler(2**28, codec)
        self._calls = 0

    async def receive(self) -> ServerFrame:
        """Apply the next frame to the replica, and return it."""
        while True:
            data = await self.connection.recv(decode=False)
            frame = self.codec.decode_server_frame(bytes(data))
            if isinstance(frame, Chunk):
                whole = self._assembler.feed(frame)
                frame = None if whole is None else self.codec.decode_server_frame(whole)
            if frame is None:
                continue
            if isinstance(frame, Ping):
                await self.send(Pong(frame.nonce, 0))
            elif isinstance(frame, ErrorFrame):
                raise Unexpected(frame.error.message)
            elif isinstance(frame, (ShortDelta, Delta, Change, Skip, Sync, Mark)) and isinstance(
                outcome := self.replica.apply(frame), Gap
            ):
                raise Unexpected(outcome.reason)
            return frame

    async def send(self, frame: msgspec.Struct) -> None:
        """Send a frame."""
        await self._send(self.codec.encode(frame))

    async def call(self, method: str, params: msgspec.Struct, kind: type[R]) -> R:
        """Make a call, and wait for its answer; what comes before it is applied."""
        self._calls += 1
        await self._send(self.codec.call(self._calls, method, params))
        while True:
            frame = await self.receive()
            if isinstance(frame, Result) and frame.id == self._calls:
                return msgspec.convert(self.codec.decode_result(method, frame.result), kind)

    async def subscribe(self, cursor: Cursor | None = None, limit: int = 50) -> SubscribeResult:
        """Subscribe, and bring the replica up to now."""
        params = SubscribeParams(
            session_id=self.replica.session_id,
            cursor=msgspec.UNSET if cursor is None else cursor,
            limit=limit,
        )
        answer = await self.call("subscribe", params, SubscribeResult)
        if isinstance(outcome := self.replica.apply_sync(answer.sync), Gap):
            raise Unexpected(outcome.reason)
        return answer

    async def load_all(self) -> None:
        """Read the pages before the window."""
        while self.replica.has_more:
            first = self.replica.from_sequence
            params = MessagesParams(
                session_id=self.replica.session_id,
                limit=200,
                before_sequence=msgspec.UNSET if first is None else first,
            )
            if self.replica.merge_page(await self.call("messages", params, Page)) is not PageOutcome.MERGED:
                raise Unexpected("a page did not fit")

    async def prompt(self, message_id: str, text: str) -> None:
        """Hand in an input."""
        params = PromptParams(
            session_id=self.replica.session_id, message_id=message_id, parts=[TextPart(text=text)]
        )
        await self.call("prompt", params, PromptResult)

    async def until_idle(self) -> None:
        """Follow until no turn runs."""
        while self.replica.running_turn is not None:
            await self.receive()

    async def check(self) -> None:
        """Prove that the replica equals the server, or raise."""
        held = {
            message.sequence: (message.sequence, message.revision, message_digest(message))
            for message in self.replica.messages()
        }
        if not held:
            return
        for start in range(min(held), max(held) + 1, 200):
            params = VerifyParams(
                session_id=self.replica.session_id, from_sequence=start, to_sequence=start + 199
            )
            answer = await self.call("verify", params, VerifyResult)
            mine = [held[number] for number in sorted(held) if start <= number < start + 200]
            if answer.version != self.replica.version or mine != answer.digests:
                raise Unexpected("the replica differs from the server")

    async def _send(self, data: bytes) -> None:
        await self.connection.send(data if self.codec.binary else data.decode())


@asynccontextmanager
async def counting(url: str, replica: Replica, codec: Codec = MSGPACK) -> AsyncGenerator[CountingReader]:
    """Connect through a relay of its own, and say hello."""
    relay = Relay()
    host, port = urlsplit(url).hostname or "", urlsplit(url).port or 0
    async with (
        await asyncio.start_server(lambda r, w: relay.carry(r, w, host, port), "127.0.0.1", 0) as server,
        connect(
            f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/",
            subprotocols=[Subprotocol(codec.subprotocol)],
            compression=None,
            max_size=None,
            ping_interval=None,
            proxy=None,
        ) as connection,
    ):
        reader = CountingReader(connection, relay, replica, codec)
        await reader.send(Hello(1, None, {"name": "bench"}))
        if not isinstance(await reader.receive(), Welcome):
            raise Unexpected("no welcome")
        yield reader
