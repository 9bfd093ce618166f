"""A server with tokens on a real socket, and guests that speak frames by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from midstream.protocol.codec import MSGPACK, Codec
from midstream.server import RunningServer, Server, Turn
from midstream.server.clock import SystemClock
from midstream.server.connections.minting import mint
from tests.server.connections.serving import Client

SECRET = "0123456789abcdef0123456789abcdef-of-tests"  # noqa: S105 - of tests
HOUR = 3_600


CLOCK = SystemClock()


def token(subject: str, *, ttl: float = HOUR, secret: str = SECRET, **claims: Any) -> str:  # noqa: ANN401 - of a token
    """A token of a subject."""
    return mint(secret, subject=subject, expires_at=int(CLOCK.wall_ms() / 1000 + ttl), **claims)


async def say_hello_back(turn: Turn) -> None:
    """An agent that answers with one text."""
    async with turn.step() as step, step.text() as text:
        await text.append("Hello")


@asynccontextmanager
async def server_with_tokens(path: Path, **settings: Any) -> AsyncGenerator[RunningServer]:  # noqa: ANN401 - of Server
    """A server whose secret the tests know."""
    settings = {"agent": say_hello_back, "token_secret": SECRET, **settings}
    async with Server(database=path, **settings).listen("127.0.0.1", 0) as running:
        yield running


class Guest(Client):
    """A client by hand, whose calls are answered in order of their ids."""

    def __init__(self, websocket: ClientConnection, codec: Codec) -> None:
        """Take an open WebSocket."""
        super().__init__(websocket, codec)
        self._calls = 0
        self.seen: list[Any] = []
        """The frames that came besides answers, and were kept."""

    async def receive(self) -> Any:  # noqa: ANN401 - as it came
        """Return the next frame."""
        return await super().receive()

    async def hello(self, given: str | None = None) -> Any:  # noqa: ANN401 - as it came
        """Say hello with a token, and return the welcome."""
        await self.send("hello", 1, given, {"name": "guest"})
        return await self.receive()

    async def ask(self, method: str, **params: object) -> Any:  # noqa: ANN401 - as it came
        """Make a call, and return the frame that answers it; frames before it are in `seen`."""
        self._calls += 1
        await self.send("call", self._calls, method, params)
        while True:
            frame = await self.receive()
            if frame[0] in {"result", "error"} and frame[1] == self._calls:
                return frame
            self.seen.append(frame)

    async def result(self, method: str, **params: object) -> Any:  # noqa: ANN401 - as it came
        """Make a call that is carried out."""
        frame = await self.ask(method, **params)
        assert frame[0] == "result", frame
        return frame[2]

    async def refusal(self, method: str, **params: object) -> Any:  # noqa: ANN401 - as it came
        """Make a call that is refused."""
        frame = await self.ask(method, **params)
        assert frame[0] == "error", frame
        return frame[2]


@asynccontextmanager
async def guest(
    url: str,
    given: str | None = None,
    *,
    hello: bool = True,
    **options: Any,  # noqa: ANN401 - of connect
) -> AsyncGenerator[Guest]:
    """Connect, and say hello with a token unless told not to."""
    async with connect(
        url,
        subprotocols=[Subprotocol(MSGPACK.subprotocol)],
        compression=None,
        max_size=None,
        proxy=None,
        ping_interval=None,
        **options,
    ) as websocket:
        client = Guest(websocket, MSGPACK)
        if hello:
            assert (await client.hello(given))[0] == "welcome"
        yield client
