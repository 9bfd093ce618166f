"""The end of an in-memory connection: an asyncio transport over two pipes.

It keeps the promises that asyncio's own socket transport keeps, in the same order of callbacks
(`asyncio/selector_events.py` is the model): `connection_made` once and first, `connection_lost` once and
last, flow control in both directions, half-close, and `abort` that never waits for the peer.
"""

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from typing import Any

from tests.pipe import Pipe

Address = tuple[str, int]
DEFAULT_HIGH_WATER = 64 * 1024
"""Bytes in the write buffer above which a protocol is paused unless it sets a limit; as in asyncio."""


class SocketStub:
    """What remains of a socket when there is none: addresses, and options that do nothing."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, local: Address, peer: Address | None = None) -> None:
        self._local = local
        self._peer = peer
        self._options: dict[tuple[int, int], int] = {}

    def fileno(self) -> int:
        """Return -1: there is no descriptor."""
        return -1

    def getsockname(self) -> Address:
        """Return the address of this end."""
        return self._local

    def getpeername(self) -> Address:
        """Return the address of the other end.

        Raises:
            OSError: This is the socket of a listener.
        """
        if self._peer is None:
            raise OSError(errno.ENOTCONN, "a listening socket has no peer")
        return self._peer

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Remember an option."""
        self._options[level, option] = value

    def getsockopt(self, level: int, option: int) -> int:
        """Return the option as it was set, or 0."""
        return self._options.get((level, option), 0)


class LinkTransport(asyncio.Transport):
    """One end of a `Link`.

    It reads from one pipe and writes to the other. Nothing is read before `start`, so bytes that are quicker
    than the acceptance of a connection wait for it.

    Attributes:
        context: the context in which the protocol is called.
        on_closed: called once, after `connection_lost`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        incoming: Pipe,
        outgoing: Pipe,
        extra: dict[str, object],
        context: Context,
    ) -> None:
        super().__init__(extra)
        self.context = context
        self.on_closed: Callable[[], None] | None = None
        self._loop = loop
        self._in = incoming
        self._out = outgoing
        self._protocol = asyncio.Protocol()
        self._buffer: deque[memoryview] = deque()
        self._buffered = 0
        self._high = DEFAULT_HIGH_WATER
        self._low = DEFAULT_HIGH_WATER // 4
        self._started = self._closing = self._lost = self._gone = False
        self._read_paused = self._write_paused = self._flushing = False
        self._eof = self._finished = self._resetting = False
        self._spilled = False

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Give the end its protocol: call `connection_made`, then read; nothing, if it ended already.

        Raises:
            TypeError: `protocol` is not an `asyncio.Protocol`.
        """
        if self._closing:
            return
        self.set_protocol(protocol)
        self._started = True
        self._protocol.connection_made(self)
        self._in.kick()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol.

        Raises:
            TypeError: `protocol` is not an `asyncio.Protocol`.
        """
        if not isinstance(protocol, asyncio.Protocol):
            raise TypeError(f"an in-memory link needs an asyncio.Protocol, not {type(protocol).__name__}")
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """Say whether the end is closed or about to be."""
        return self._closing

    # Reading

    @property
    def reading(self) -> bool:
        """Whether bytes are taken now: the end has started, is not paused and not closing."""
        return self._started and not self._read_paused and not self._closing

    @property
    def gone(self) -> bool:
        """Whether the end has closed for good: `connection_lost` has been called."""
        return self._gone

    def is_reading(self) -> bool:
        """Say whether bytes are taken now."""
        return self.reading

    def pause_reading(self) -> None:
        """Take no more bytes until `resume_reading`; they fill the pipe, then the sender's write buffer."""
        self._read_paused = True

    def resume_reading(self) -> None:
        """Take bytes again, from the next turn of the loop."""
        if self._read_paused:
            self._read_paused = False
            self._in.kick()

    def receive(self, data: bytes) -> None:
        """Hand bytes to the protocol. An exception of it closes the end, as in asyncio."""
        try:
            self._protocol.data_received(data)
        except Exception as exc:  # noqa: BLE001 - whatever a protocol raises must end its connection
            self._fail(exc, "protocol.data_received() call failed.")

    def receive_eof(self) -> None:
        """Tell the protocol that no more bytes come, and close unless it wants to go on writing."""
        try:
            keep_open = self._protocol.eof_received()
        except Exception as exc:  # noqa: BLE001 - as in receive
            self._fail(exc, "protocol.eof_received() call failed.")
        else:
            if not keep_open:
                self.close()

    def receive_reset(self) -> None:
        """End at once: the other side is gone."""
        self.fail(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))

    def refuse(self) -> None:
        """Answer bytes that came too late with a reset."""
        self._out.reset()

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes. What the link cannot take stays in the write buffer.

        Above the high-water mark the protocol is paused.

        Raises:
            RuntimeError: After `write_eof`.
        """
        if self._eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._lost or not data:
            return
        chunk = bytes(data)
        if self._out.filter is not None:
            chunk = self._out.filter(chunk)
        taken = 0 if self._buffer else self._out.offer(chunk)
        if taken < len(chunk):
            self._buffer.append(memoryview(chunk)[taken:])
            self._buffered += len(chunk) - taken
            self._pause_writing_if_full()

    def take(self, data: bytes) -> int:
        """Send bytes past the write buffer; return how many the link took, as `os.write` to a socket does.

        Raises:
            BlockingIOError: The link takes nothing now.
            BrokenPipeError: The end has closed.
        """
        assert self._spilled or not self._buffer, "bytes were offered past those that wait"
        if self._lost or self._eof:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        room = 0 if self._buffer else self._out.room
        if not room:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        piece = data[:room]
        chunk = piece if self._out.filter is None else self._out.filter(piece)
        taken = self._out.offer(chunk)
        if taken < len(chunk):  # the filter had held bytes back
            self._spilled = True
            self._buffer.append(memoryview(chunk)[taken:])
            self._buffered += len(chunk) - taken
        return len(piece)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send several pieces as one write."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """Say that half-close works."""
        return True

    def write_eof(self) -> None:
        """Send the end of the stream behind what is buffered; reading goes on."""
        if not self._closing and not self._eof:
            self._eof = True
            if not self._buffer:
                self._finish()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait in the write buffer."""
        return self._buffered

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the low-water and the high-water mark, in bytes."""
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the water marks, in bytes, with asyncio's defaults for the one that is left out.

        Raises:
            ValueError: Not `high >= low >= 0`.
        """
        if high is None:
            high = DEFAULT_HIGH_WATER if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low
        self._pause_writing_if_full()

    def room(self) -> None:
        """Plan to move buffered bytes on: the link can take more."""
        if self._buffer and not self._flushing and not self._lost:
            self._flushing = True
            self._loop.call_soon(self._flush, context=self.context)

    # Ending

    def close(self) -> None:
        """Close when the link has taken what is buffered; that is never, where the peer does not read."""
        if not self._closing:
            self._closing = True
            if not self._buffer:
                self._lose(None)

    def abort(self) -> None:
        """Close at once; what is buffered is lost, what the link took still arrives."""
        self.fail(None)

    def reset(self) -> None:
        """Close at once; the peer gets a reset instead of the end of the stream."""
        self._resetting = True
        self.fail(None)

    def vanish(self) -> None:
        """Close at once and never call the protocol again: its program is dead, the kernel cleans up."""
        self._started = False
        self._closing = self._lost = True
        self._discard_buffer()
        self._leave()

    def fail(self, exc: Exception | None) -> None:
        """Close at once, and tell the protocol why."""
        if not self._lost:
            self._discard_buffer()
            self._closing = True
            self._lose(exc)

    # Inside

    def _flush(self) -> None:
        self._flushing = False
        if self._lost:
            return  # it was planned before the end
        while self._buffer:
            head = self._buffer[0]
            taken = self._out.offer(head)
            self._buffered -= taken
            if taken < len(head):
                self._buffer[0] = head[taken:]
                break
            self._buffer.popleft()
        if self._write_paused and self._buffered <= self._low:
            self._write_paused = False
            self._protocol.resume_writing()
        if not self._buffer:
            self._spilled = False
            if self._closing:
                self._lose(None)
            elif self._eof:
                self._finish()

    def _pause_writing_if_full(self) -> None:
        if self._buffered > self._high and not self._write_paused:
            self._write_paused = True
            self._protocol.pause_writing()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._out.finish()

    def _discard_buffer(self) -> None:
        self._buffer.clear()
        self._buffered = 0

    def _lose(self, exc: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._loop.call_soon(self._call_lost, exc, context=self.context)

    def _call_lost(self, exc: Exception | None) -> None:
        try:
            if self._started:
                self._protocol.connection_lost(exc)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Do what a kernel does when a program lets go of a socket."""
        if self._gone:
            return
        self._gone = True
        if self._resetting or self._in.unread:
            self._out.reset()
        else:
            self._finish()
        self._in.kick()
        if self.on_closed is not None:
            self.on_closed()

    def _fail(self, exc: Exception, message: str) -> None:
        context: dict[str, Any] = {
            "message": f"Fatal error: {message}",
            "exception": exc,
            "transport": self,
            "protocol": self._protocol,
        }
        self._loop.call_exception_handler(context)
        self.fail(exc)
