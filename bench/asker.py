"""A connection of a server in this process: frames in, WebSocket messages out, and no socket."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from midstream.protocol.frames import Call, Hello
from midstream.protocol.limits import Limits
from midstream.server.connections.backlog import Backlog
from midstream.server.connections.calls import Calls
from midstream.server.connections.connection import Connection
from midstream.server.connections.effects import Dispatch
from midstream.server.connections.hello import Settings
from midstream.server.connections.outbox import Outbox
from midstream.server.connections.rates import Subjects
from midstream.server.connections.websocket import sealer

if TYPE_CHECKING:
    import msgspec

    from bench.inside import Inside
    from midstream.protocol.codec import Codec
    from midstream.server.sessions.commands import Answer


class Asker:
    """A connection without a socket, which makes one call at a time."""

    def __init__(self, house: Inside, codec: Codec) -> None:
        """Say hello."""
        limits = Limits(calls_per_second=1_000_000)
        self._codec = codec
        self._outbox = Outbox(
            codec,
            seal=sealer(codec),
            wake=lambda: None,
            spill=lambda data: None,  # noqa: ARG005 - nothing is written past it
            chunk_bytes=limits.chunk_bytes,
            backlog=Backlog(2**24, 2**40),
        )
        settings = Settings(server="bench", limits=limits, heartbeat_seconds=15, sync_seconds=60)
        self._connection = Connection(
            "c",
            self._outbox,
            settings,
            Subjects(limits),
            now=time.monotonic(),
        )
        self._calls = Calls(house.registry, limits, None)
        self._receive(codec.encode(Hello(1, None, {})))
        self._outbox.take(2**24)

    def call(self, number: int, method: str, params: msgspec.Struct) -> bytes:
        """Return a call as a client sends it."""
        return self._codec.encode(Call(number, method, self._codec.raw(params)))

    async def ask(self, number: int, call: bytes) -> list[bytes]:
        """Make a call, and return the WebSocket messages of its answer."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answer(given: Answer) -> None:
            self._connection.answer(number, given, now=time.monotonic())
            done.set_result(None)

        for effect in self._receive(call):
            if isinstance(effect, Dispatch):
                self._calls.begin(self._connection, effect.call, answer, lambda: None)
        await done
        return self._outbox.take(2**24)

    def _receive(self, data: bytes) -> list[object]:
        now = time.monotonic()
        return list(self._connection.on_message(data, binary=self._codec.binary, now=now, wall_ms=0))
