"""A listener on a real socket, and clients that write every byte themselves."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from midstream.protocol.codec import MSGPACK, Codec
from midstream.server.clock import SystemClock
from midstream.server.config import Config
from midstream.server.connections.listener import Listener, listen
from midstream.server.ids import RandomIds
from tests.server.connections.readers import Frame, plain
from tests.server.connections.registry import Notes


@asynccontextmanager
async def serving(registry: Notes, config: Config | None = None) -> AsyncGenerator[Listener]:
    """Listen on a free port."""
    config = msgspec.structs.replace(config or Config(), port=0)
    async with listen(config, registry, None, SystemClock(), RandomIds()) as listener:
        yield listener


class Client:
    """A client that speaks frames as plain arrays."""

    def __init__(self, websocket: ClientConnection, codec: Codec) -> None:
        """Take an open WebSocket."""
        self.websocket = websocket
        self.codec = codec

    async def send(self, *frame: object) -> None:
        """Send a frame."""
        data = self.codec.encode(list(frame))
        await self.websocket.send(data if self.codec.binary else data.decode())

    async def receive(self) -> Frame:
        """Return the next frame."""
        message = await self.websocket.recv()
        return plain(self.codec, message.encode() if isinstance(message, str) else message)

    async def receive_tag(self, tag: str) -> Frame:
        """Return the next frame with a tag; those before it are passed over."""
        while (frame := await self.receive())[0] != tag:
            pass
        return frame

    async def hello(self) -> Frame:
        """Say hello, and return the welcome."""
        await self.send("hello", 1, None, {"client": "test"})
        return await self.receive()

    async def closed(self) -> tuple[int | None, str | None]:
        """Read to the end, and return the code and the reason of the close."""
        try:
            while True:
                await self.websocket.recv()
        except ConnectionClosed:
            return self.websocket.close_code, self.websocket.close_reason


@asynccontextmanager
async def client_of(
    listener: Listener, codec: Codec = MSGPACK, *, hello: bool = True
) -> AsyncGenerator[Client]:
    """Connect, and say hello unless told not to."""
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    async with connect(
        f"ws://{host}:{listener.port}/",
        subprotocols=[Subprotocol(codec.subprotocol)],
        compression=None,
        max_size=None,
        proxy=None,
        ping_interval=None,
    ) as websocket:
        client = Client(websocket, codec)
        if hello:
            assert (await client.hello())[0] == "welcome"
        yield client


async def http(listener: Listener, request: str) -> tuple[int, dict[str, str], bytes]:
    """Send a plain HTTP request line by line, and return status, headers and body of the answer."""
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    writer.write(request.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().rstrip().split("\r\n")
    status = int(first.split()[1])
    body = b"" if status == HTTPStatus.SWITCHING_PROTOCOLS else await reader.read()
    writer.close()
    await writer.wait_closed()
    return status, dict(line.split(": ", 1) for line in lines), body
