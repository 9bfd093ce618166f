"""A client that sees and writes every byte of a WebSocket, compression included."""

import asyncio
import zlib
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode

from midstream.protocol.codec import MSGPACK
from midstream.server.connections.listener import Listener
from tests.server.connections.readers import Frame
from tests.simulation.frames import FLUSHED, FrameSplitter, WireFrame, content

OFFER = "permessage-deflate; client_max_window_bits"


def deflate(data: bytes) -> bytes:
    """Compress a message as RFC 7692, 7.2.1 says."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)).removesuffix(FLUSHED)


def masked(
    data: bytes, *, opcode: Opcode = Opcode.BINARY, compressed: bool = False, final: bool = True
) -> bytes:
    """Return the bytes of a client's WebSocket frame."""
    whole = WebSocketFrame(opcode, data, fin=final).serialize(mask=True)
    return bytes([whole[0] | (0x40 if compressed else 0)]) + whole[1:]


class Wire:
    """An open WebSocket of msgpack frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, offer: str) -> None:
        self.accepted: str | None = None
        """The server's answer to the offer."""
        self._reader = reader
        self._writer = writer
        self._offer = offer
        self._splitter = FrameSplitter()
        self._frames: list[WireFrame] = []

    async def open(self) -> None:
        """Do the HTTP handshake."""
        lines = [
            "GET / HTTP/1.1",
            "Host: localhost",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {b64encode(bytes(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Protocol: {MSGPACK.subprotocol}",
            *([f"Sec-WebSocket-Extensions: {self._offer}"] if self._offer else []),
            "",
            "",
        ]
        self._writer.write("\r\n".join(lines).encode())
        head = b""
        while not head:
            head, self._frames = self._splitter.feed(await self._more())
        answer, *headers = head.decode().strip().split("\r\n")
        assert answer.split()[1] == "101"
        named = dict(line.split(": ", 1) for line in headers)
        self.accepted = named.get("Sec-WebSocket-Extensions")

    async def hello(self) -> None:
        """Say hello, and read the welcome."""
        self.send("hello", 1, None, {})
        assert (await self.receive())[0] == "welcome"

    def send(self, *frame: object) -> None:
        """Send a frame, not compressed."""
        self.write(masked(MSGPACK.encode(list(frame))))

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._writer.write(data)

    async def read(self) -> WireFrame:
        """Return the next WebSocket frame."""
        while not self._frames:
            self._frames = self._splitter.feed(await self._more())[1]
        return self._frames.pop(0)

    async def receive(self) -> Frame:
        """Return the next frame of the protocol."""
        decoded: Frame = msgspec.msgpack.decode(content(await self.read()))
        return decoded

    async def closed(self) -> int:
        """Read to the close frame, and return its code."""
        while (frame := await self.read()).opcode != Opcode.CLOSE:
            pass
        return int.from_bytes(frame.payload[:2])

    async def _more(self) -> bytes:
        data = await self._reader.read(2**16)
        if not data:
            raise EOFError
        return data


@asynccontextmanager
async def wire_to(listener: Listener, offer: str = OFFER, *, hello: bool = True) -> AsyncGenerator[Wire]:
    """Connect, offering an extension or, where the offer is empty, none."""
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    wire = Wire(reader, writer, offer)
    try:
        await wire.open()
        if hello:
            await wire.hello()
        yield wire
    finally:
        writer.transport.abort()
