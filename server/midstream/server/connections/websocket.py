"""A WebSocket connection that takes prebuilt messages and never waits for its peer.

websockets' own ``send`` and ``close`` wait until the transport has room, which is never where the
peer does not read. Here writing stops when the transport is full and goes on when it is empty, and
every end has a deadline at which the transport is cut.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import cache
from struct import pack
from typing import TYPE_CHECKING, Any, Final

from websockets.asyncio.server import ServerConnection
from websockets.frames import DATA_OPCODES, Opcode
from websockets.protocol import State

from midstream.server.connections.lobby import HANDSHAKE_BYTES, HELLO_FACTOR

if TYPE_CHECKING:
    from websockets.asyncio.server import Server
    from websockets.frames import Frame
    from websockets.server import ServerProtocol

    from midstream.protocol.codec import Codec
    from midstream.server.connections.lobby import Lobby

WRITE_BUFFER_BYTES: Final = 128 * 1024
"""What the transport buffers before it wants no more: the outbox, where pings pass, should hold the rest."""
SOCKET_BUFFER_BYTES: Final = 128 * 1024
"""What the kernel should buffer: left alone, it takes megabytes that then stand before every ping."""
ANSWER_BUFFER_BYTES: Final = 1024 * 1024
"""Where a peer is cut that sends WebSocket pings, which websockets answers itself, without reading pongs."""
CLOSE_SECONDS: Final = 2.0
"""How long a peer may take to answer a close frame."""
SLICE_BYTES: Final = 2 * 1024
"""What is parsed in one turn of the event loop where it may be compressed: it inflates to 2 MiB at most."""
_REASON_BYTES: Final = 123
"""What a close frame has room for (RFC 6455, 5.5)."""


def descriptor_of(transport: asyncio.BaseTransport) -> int:
    """Return the descriptor that may be written to past a transport; -1 where there is none.

    There is none where the transport encrypts. Only asyncio's own transports leave a descriptor open until
    after ``connection_lost``; where uvloop has closed it, it may be another connection's by then.
    """
    sock = transport.get_extra_info("socket")
    own = isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop)
    if not own or sock is None or transport.get_extra_info("sslcontext") is not None:
        return -1
    return int(sock.fileno())


@cache
def sealer(codec: Codec, *, compressed: bool = False) -> Callable[[bytes], bytes]:
    """Return the function that makes a complete, unmasked WebSocket message of an encoded frame.

    RFC 6455, 5.2; ``compressed`` marks what was compressed already (RFC 7692, 6). Ten times as fast as
    websockets' own ``Frame.serialize``, which took 1.5 µs of a version.
    """
    first = (0xC0 if compressed else 0x80) | (Opcode.BINARY if codec.binary else Opcode.TEXT)
    headers = [bytes((first, length)) for length in range(126)]

    def seal(payload: bytes) -> bytes:
        length = len(payload)
        if length < 126:  # noqa: PLR2004 - what fits into seven bits, but for the two that mean more
            return headers[length] + payload
        if length < 1 << 16:
            return pack("!BBH", first, 126, length) + payload
        return pack("!BBQ", first, 127, length) + payload

    return seal


class WebSocket(ServerConnection):
    """What :func:`websockets.asyncio.server.serve` makes for each connection.

    ``on_bytes`` is called when something came, ``on_blocked`` when it is not clear any more,
    ``on_writable`` when the transport wants more again, ``on_lost`` when it is gone.
    """

    # in a dictionary, with all that websockets has there, they would take 1.4 KiB
    __slots__ = (
        "_cut_at", "_heard", "_is_aborted", "_is_made", "_lobby", "_unparsed", "_written",
        "answer_bytes", "descriptor", "on_blocked", "on_bytes", "on_lost", "on_writable",
    )  # fmt: skip

    def __init__(
        self,
        protocol: ServerProtocol,
        server: Server,
        *,
        lobby: Lobby,
        hello_bytes: int,
        **options: Any,  # noqa: ANN401 - passed on
    ) -> None:
        """Make one that tells nobody anything yet, and waits in the lobby for its welcome."""
        super().__init__(protocol, server, **options)
        self._lobby = lobby
        self._heard = 0
        """Bytes that came before the HTTP handshake was over."""
        _shorten_first_message(protocol, HELLO_FACTOR * hello_bytes)
        self.on_bytes: Callable[[], None] | None = None
        self.on_blocked: Callable[[], None] | None = None
        self.on_writable: Callable[[], None] | None = None
        self.on_lost: Callable[[WebSocket], object] | None = None
        self.answer_bytes = 0
        """What an HTTP answer has, where no WebSocket was opened: all of it waits until the peer reads it."""
        self.descriptor = -1
        """What may be written to past the transport while :attr:`is_clear`."""
        self._is_made = self._is_aborted = False
        self._written = 0
        self._cut_at: asyncio.TimerHandle | None = None
        self._unparsed = b""
        """What came while reading goes on in slices."""

    @property
    def writable(self) -> bool:
        """Whether messages may be written now."""
        return self.protocol.state is State.OPEN and not self.paused

    @property
    def is_clear(self) -> bool:
        """Whether messages may be written past the transport: nothing stands before the kernel."""
        # one that closes has dropped what stood before it
        is_open = self.protocol.state is State.OPEN and not self.transport.is_closing()
        return self.descriptor >= 0 and is_open and not self.buffered

    @property
    def buffered(self) -> int:
        """Bytes that wait in front of the kernel."""
        return self.transport.get_write_buffer_size()

    @property
    def moved(self) -> int:
        """Bytes of our messages that the kernel has taken."""
        return self._written - self.buffered

    def header(self, name: str) -> str | None:
        """Return a header of the request that opened it, while that is known."""
        return None if self.request is None else self.request.headers.get(name)

    def welcome(self) -> None:
        """Leave the lobby: the peer has said who it is."""
        self._lobby.leave(self)

    def turn_out(self) -> None:
        """Go, because others want to come, and this one has said nothing yet."""
        self.transport.abort()

    def forget_handshake(self) -> None:
        """Let go of the headers of both sides, which take 5 KiB and which nobody reads any more."""
        self.response = None
        if self.request is not None:
            self.request.headers.clear()

    def write(self, messages: list[bytes]) -> None:
        """Write complete WebSocket messages in one go; the caller has looked at :attr:`writable`."""
        data = messages[0] if len(messages) == 1 else b"".join(messages)
        self._written += len(data)
        self.transport.write(data)

    def finish(self, code: int, reason: str, *, seconds: float = CLOSE_SECONDS) -> None:
        """Send a close frame behind what is buffered; cut the transport if no answer comes in time."""
        if self.protocol.state is State.OPEN:
            self.protocol.send_close(code, _cut(reason))
            self.send_data()
        self._cut_after(seconds)

    def cut(self, code: int, reason: str) -> None:
        """End at once; the close frame is sent only if nothing stands before it."""
        if self.protocol.state is State.OPEN and not self.buffered:
            self.protocol.send_close(code, _cut(reason))
            self.send_data()
        self.transport.abort()

    def abort(self) -> None:
        """End at once, without a word; one that was only just accepted ends when it has a transport."""
        self._is_aborted = True
        if self._is_made:
            self.transport.abort()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close, and wait until the transport is gone.

        Where it goes already, websockets would abort it once it is gone, at which asyncio's fails if it had
        closed by itself behind what it still wrote.
        """
        if self.protocol.state is State.OPEN:
            await super().close(code, reason)
        else:
            self._cut_after(CLOSE_SECONDS)
            await asyncio.shield(self.connection_lost_waiter)

    def _cut_after(self, seconds: float) -> None:
        if self._cut_at is None and not self.connection_lost_waiter.done():
            self._cut_at = self.loop.call_later(seconds, self.transport.abort)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what the kernel buffers; in a simulation there is no socket."""
        super().connection_made(transport)
        self._is_made = True
        if self._is_aborted:
            self.transport.abort()
            return
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        self.descriptor = descriptor_of(transport)
        self._lobby.enter(self)

    def data_received(self, data: bytes) -> None:
        """Count the peer as there, as long as what it sends is read at all."""
        if self.protocol.state is State.CONNECTING:
            self._heard += len(data)
            if self._heard > HANDSHAKE_BYTES:
                self.transport.abort()
                return
        if self.on_bytes is not None and self.protocol.state is State.OPEN:
            self.on_bytes()
        if self._unparsed:
            self._unparsed += data
        elif len(data) > SLICE_BYTES and self.protocol.extensions:
            self._unparsed = data
            self.recv_messages.resume = self._resume_reading
            self._parse_slice()
        else:
            self._parse(data)

    def _parse_slice(self) -> None:
        """Parse a little of what came; more in the next turn, or when messages that wait have been taken.

        A quarter of a megabyte, which one read may give, could inflate to messages that fill the memory.
        """
        if not self._unparsed:
            return  # it was lost with the connection
        data, self._unparsed = self._unparsed[:SLICE_BYTES], self._unparsed[SLICE_BYTES:]
        self._parse(data)
        if self.recv_messages.paused:
            return
        if self._unparsed:
            self.transport.pause_reading()
            self.loop.call_soon(self._parse_slice)
        else:
            self.transport.resume_reading()

    def _resume_reading(self) -> None:
        if self._unparsed:
            self.loop.call_soon(self._parse_slice)
        else:
            self.transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        if self.protocol.state is State.CLOSING:
            # websockets gives a peer that broke the protocol all the time it likes to go
            self._cut_after(CLOSE_SECONDS)
        if self.buffered > ANSWER_BUFFER_BYTES:
            self.transport.abort()

    def send_data(self) -> None:
        """Write what websockets has to say; nothing may be written past that while it waits."""
        try:
            super().send_data()
        except OSError:
            # our end of the stream goes out behind it: that fails where the peer has cut the connection
            self.transport.abort()
        if self.on_blocked is not None and not self.is_clear:
            self.on_blocked()

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        if self.on_writable is not None:
            self.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the descriptor, which is closed after this, and the deadline."""
        self.descriptor = -1
        self._unparsed = b""
        self._lobby.leave(self)
        if self.on_blocked is not None:
            self.on_blocked()
        if self._cut_at is not None:
            self._cut_at.cancel()
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost(self)


def _shorten_first_message(protocol: ServerProtocol, length: int) -> None:
    """Have no more than that taken in of a first message; what follows it may be as long as ever."""
    take, full = protocol.recv_frame, protocol.max_message_size

    def recv_frame(frame: Frame) -> None:
        take(frame)
        if frame.fin and frame.opcode in DATA_OPCODES:
            protocol.max_message_size = full
            del protocol.recv_frame

    protocol.max_message_size = length
    protocol.recv_frame = recv_frame  # type: ignore[method-assign]  # for one message; a subclass cannot be passed in


def _cut(reason: str) -> str:
    return reason.encode()[:_REASON_BYTES].decode(errors="ignore")
