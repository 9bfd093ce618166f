"""A client that makes many calls at once on one connection, and looks at nothing else that comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from midstream.protocol.calls import (
    CreateParams,
    PromptParams,
    PromptResult,
    SessionParams,
    SessionResult,
)
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import ErrorInfo
from midstream.protocol.frames import ErrorFrame, Hello, Pong, Result
from midstream.protocol.frames import Ping as PingFrame
from midstream.protocol.model import TextPart

R = TypeVar("R", bound=msgspec.Struct)


class Refused(Exception):
    """The server refused a call."""

    def __init__(self, error: ErrorInfo) -> None:
        """Keep what it said."""
        super().__init__(f"{error.code}: {error.message}")
        self.code = error.code


class Caller:
    """Makes calls. Its answers are matched by a task of its own, which :func:`calling` runs."""

    def __init__(self, connection: ClientConnection) -> None:
        """Take an open connection."""
        self._connection = connection
        self._calls = 0
        self._answers: dict[int, asyncio.Future[Result]] = {}

    async def read(self) -> None:
        """Match answers to calls, until the connection ends."""
        async for data in self._connection:
            frame = MSGPACK.decode_server_frame(data if isinstance(data, bytes) else data.encode())
            if isinstance(frame, PingFrame):
                await self._connection.send(MSGPACK.encode(Pong(frame.nonce, 0)))
            elif isinstance(frame, Result):
                self._answers.pop(frame.id).set_result(frame)
            elif isinstance(frame, ErrorFrame) and frame.id is not None:
                self._answers.pop(frame.id).set_exception(Refused(frame.error))

    async def call(self, method: str, params: msgspec.Struct, kind: type[R]) -> R:
        """Make a call, and wait for its answer.

        Raises:
            Refused: the server refused it.

        """
        self._calls += 1
        number = self._calls
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._connection.send(MSGPACK.call(number, method, params))
        frame = await self._answers[number]
        return msgspec.convert(MSGPACK.decode_result(method, frame.result), kind)

    async def create(self, session_id: str) -> None:
        """Create a session."""
        await self.call("sessions.create", CreateParams(session_id=session_id), SessionResult)

    async def prompt(self, session_id: str, message_id: str, text: str) -> None:
        """Hand in an input, to be run after those before it."""
        params = PromptParams(
            session_id=session_id, message_id=message_id, parts=[TextPart(text=text)], delivery="queue"
        )
        await self.call("prompt", params, PromptResult)

    async def until_idle(self, session_id: str) -> None:
        """Wait until no turn runs in a session."""
        while True:
            answer = await self.call("sessions.get", SessionParams(session_id=session_id), SessionResult)
            if not answer.session.running_turn_id:
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def calling(url: str) -> AsyncGenerator[Caller]:
    """Connect, and say hello."""
    async with connect(
        url,
        subprotocols=[Subprotocol(MSGPACK.subprotocol)],
        compression=None,
        max_size=None,
        ping_interval=None,
        proxy=None,
    ) as connection:
        await connection.send(MSGPACK.encode(Hello(1, None, {"name": "bench"})))
        await connection.recv()
        caller = Caller(connection)
        reading = asyncio.create_task(caller.read())
        try:
            yield caller
        finally:
            await connection.close()
            await reading
