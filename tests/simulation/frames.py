"""Taking a WebSocket stream apart, so that a test can remove exactly one frame from it.

Frames that were joined in one write, or cut over several, are found all the same. Payloads are as they were
sent; `content` inflates one that was compressed, which here is always one frame and refers to no other.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

from tests.link import Direction

HEAD_END = b"\r\n\r\n"
EXTENDED_16 = 126
EXTENDED_64 = 127


FLUSHED = b"\x00\x00\xff\xff"
"""What a compressed message leaves out at its end (RFC 7692, 7.2.1)."""


@dataclass(frozen=True, slots=True)
class WireFrame:
    """One WebSocket frame as it stands in the stream.

    Attributes:
        opcode: 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong.
        final: whether it ends its message.
        payload: its content, unmasked.
        raw: all its bytes, header included.
    """

    opcode: int
    final: bool
    payload: bytes
    raw: bytes


def is_compressed(frame: WireFrame) -> bool:
    """Say whether RSV1 is set (RFC 7692, 6)."""
    return bool(frame.raw[0] & 0x40)


def content(frame: WireFrame) -> bytes:
    """Return the payload as it was before it was compressed, if it was."""
    if not is_compressed(frame):
        return frame.payload
    inflater = zlib.decompressobj(-15)
    whole = inflater.decompress(frame.payload + FLUSHED)
    assert not inflater.unconsumed_tail
    assert not inflater.unused_data
    return whole


class FrameSplitter:
    """Splits one direction of a connection into the HTTP head of the handshake and WebSocket frames.

    What is not complete yet is kept until the rest comes. Works for both directions: masked frames are
    unmasked.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._in_head = True

    def feed(self, data: bytes) -> tuple[bytes, list[WireFrame]]:
        """Take the next bytes of the stream.

        Returns:
            The HTTP head, if it was completed by these bytes (else nothing), and the frames that were
            completed, in order.
        """
        self._pending += data
        head = b""
        if self._in_head:
            end = self._pending.find(HEAD_END)
            if end < 0:
                return b"", []
            self._in_head = False
            head = self._cut(end + len(HEAD_END))
        frames: list[WireFrame] = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return head, frames

    def _next(self) -> WireFrame | None:
        pending = self._pending
        if len(pending) < 2:
            return None
        size, at = pending[1] & 0x7F, 2
        if size >= EXTENDED_16:
            width = 2 if size == EXTENDED_16 else 8
            if len(pending) < at + width:
                return None
            size, at = int.from_bytes(pending[at : at + width]), at + width
        mask = bytes(pending[at : at + 4]) if pending[1] & 0x80 else b""
        at += 4 if pending[1] & 0x80 else 0
        if len(pending) < at + size:
            return None
        raw = self._cut(at + size)
        payload = raw[at:]
        if mask:
            payload = bytes(byte ^ mask[position % 4] for position, byte in enumerate(payload))
        return WireFrame(raw[0] & 0x0F, bool(raw[0] & 0x80), payload, raw)

    def _cut(self, count: int) -> bytes:
        taken = bytes(self._pending[:count])
        del self._pending[:count]
        return taken


class DropFrames:
    """A filter for a `Link` that removes frames from one direction and lets all else pass.

    It must be installed before the first byte (`network.on_link`), because it has to see the stream from its
    beginning. A frame that is written in several pieces is sent when it is complete.

    Attributes:
        dropped: the frames that were removed, in order.
        passed: how many frames were let through.
    """

    def __init__(
        self, wanted: Callable[[WireFrame], bool], *, direction: Direction = "down", count: int = 1
    ) -> None:
        self.dropped: list[WireFrame] = []
        self.passed = 0
        self._wanted = wanted
        self._direction = direction
        self._left = count
        self._splitter = FrameSplitter()

    def __call__(self, direction: Direction, data: bytes) -> bytes:
        """Return what remains of a written chunk."""
        if direction != self._direction:
            return data
        kept, frames = self._splitter.feed(data)
        for frame in frames:
            if self._left > 0 and self._wanted(frame):
                self._left -= 1
                self.dropped.append(frame)
            else:
                self.passed += 1
                kept += frame.raw
        return kept
