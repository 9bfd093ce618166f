"""Chunks: a long frame in pieces, so that pings and other sessions pass between (SPEC 3.3).

A piece is bytes in msgpack and a slice of the text in JSON. ``n`` counts up on each connection and
in each direction, so that a piece of a frame that was given up is known from that of a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.protocol.errors import InvalidRequest, LimitExceeded
from midstream.protocol.frames import Chunk
from midstream.protocol.values import NOT_UNICODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.protocol.codec import Codec

_OVERHEAD: Final = 32
"""Bytes of a chunk frame around its piece, at most: tag, n, last, and the piece's own length."""
_OPEN: Final = 1_024
"""Frames that may be in pieces at once: a sender has at most one for each subscription."""


def chunks(payload: bytes, *, n: int, chunk_bytes: int, codec: Codec) -> Iterator[bytes]:
    """Yield the encoded chunk frames of an encoded frame, each of at most ``chunk_bytes`` bytes.

    They are encoded one by one, as they are taken. JSON text is cut between code points only.
    """
    # inside a JSON string, each quote and backslash of the payload takes two bytes
    size = chunk_bytes - _OVERHEAD if codec.binary else (chunk_bytes - _OVERHEAD) // 2
    start = 0
    while start < len(payload):
        end = min(start + size, len(payload))
        if not codec.binary:
            while end < len(payload) and payload[end] & 0xC0 == 0x80:  # noqa: PLR2004 - inside a code point
                end -= 1
        piece = payload[start:end]
        yield codec.encode(Chunk(n, end == len(payload), piece if codec.binary else piece.decode()))
        start = end


class ChunkAssembler:
    """Joins the chunks of one direction of a connection; holds at most ``limit_bytes`` of pieces."""

    def __init__(self, limit_bytes: int, codec: Codec) -> None:
        """Join pieces of this codec, as long as all that wait have at most so many bytes."""
        self._limit_name, self._limit = "frame_bytes", limit_bytes
        self._binary = codec.binary
        self._open: dict[int, bytearray] = {}
        self._highest = -1
        self._held = 0

    def allow(self, limit_name: str, limit_bytes: int) -> None:
        """Go by another limit from now on."""
        self._limit_name, self._limit = limit_name, limit_bytes

    def feed(self, chunk: Chunk) -> bytes | None:
        """Take a chunk and return its frame, encoded, if it was the last piece; else None.

        Pieces of a frame that was given up are ignored.

        Raises:
            LimitExceeded: ``frame_bytes`` was passed; the frame was given up.
            InvalidRequest: too many frames are in pieces at once, and this one was given up; or the
                JSON text was cut inside a code point and the other half did not come.

        """
        if chunk.n > self._highest:
            self._highest = chunk.n
            self._open[chunk.n] = bytearray()
        joined = self._open.get(chunk.n)
        if joined is None:
            return None
        piece = chunk.piece
        # halves of a code point pass as surrogates in UTF-16, and are joined at the end
        data = piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogatepass")
        held = self._held + len(data)
        if held > self._limit:
            self._give_up(chunk.n)
            raise LimitExceeded(self._limit_name, self._limit, held)
        if len(self._open) > _OPEN:
            self._give_up(chunk.n)
            raise InvalidRequest("n", f"more than {_OPEN} frames are in pieces at once; finish one first")
        joined += data
        self._held = held
        if not chunk.last:
            return None
        self._give_up(chunk.n)
        return bytes(joined) if self._binary else _whole(bytes(joined))

    def _give_up(self, n: int) -> None:
        self._held -= len(self._open.pop(n))


def _whole(data: bytes) -> bytes:
    """Return the UTF-8 of text whose code points may be in two halves."""
    try:
        data.decode()
    except UnicodeDecodeError:
        halves = data.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
        try:
            return halves.decode("utf-16-le").encode()
        except UnicodeDecodeError:
            raise InvalidRequest("piece", NOT_UNICODE) from None
    return data
