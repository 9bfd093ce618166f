"""permessage-deflate (RFC 7692): long messages go compressed to those who offered it.

Neither end keeps a context between messages. So a message that goes to many is compressed once, and nobody
has a window of his own in memory. What is short goes as it is: deltas gain nothing.
"""

from __future__ import annotations

import zlib
from functools import cache
from struct import pack
from typing import TYPE_CHECKING, Final

from websockets.exceptions import NegotiationError
from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory

from midstream.server.connections.websocket import sealer
from midstream.server.sessions.sharing import SharedFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from websockets.extensions import Extension
    from websockets.frames import Frame
    from websockets.typing import ExtensionParameter

    from midstream.protocol.codec import Codec
    from midstream.server.sessions.sharing import Rest

LEAST_BYTES: Final = 1_024
"""Up to this length a frame goes as it is: the most that it could save is less than a packet."""
LEVEL: Final = 1
"""zlib's fastest. A page of 50 messages, 110 KB, becomes 34 to 46 KB in 0.7 to 1 ms; level 6 makes 31 to 37
KB of it, in 2 to 4 ms in which nobody else is served."""
APART_BYTES: Final = 128
"""What is a connection's own lies within so many bytes at the beginning of a shared frame, in both codecs:
the number of a chunk, and in the first chunk the id of a call. They go uncompressed, in their own block."""
_WINDOW_BITS: Final = 15
_FLUSHED: Final = b"\x00\x00\xff\xff"
"""What a sync flush ends with, and a message leaves out (RFC 7692, 7.2.1)."""


def deflated(data: bytes) -> bytes:
    """Return a message's compressed payload: raw DEFLATE that refers to nothing before it."""
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, -_WINDOW_BITS)
    return (compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)).removesuffix(_FLUSHED)


def stored(data: bytes) -> bytes:
    """Return a block that is not compressed, after which another may follow (RFC 1951, 3.2.4)."""
    return pack("<BHH", 0, len(data), 0xFFFF ^ len(data)) + data


@cache
def deflating_sealer(codec: Codec) -> Callable[[bytes], bytes]:
    """Return the function that makes a WebSocket message of an encoded frame, compressed if that pays.

    The end of a :class:`~midstream.server.sessions.sharing.SharedFrame` is compressed once. So is what is
    sealed several times in a row: a signal, say, that each subscriber is told of.
    """
    plain, marked = sealer(codec), sealer(codec, compressed=True)
    last = last_sealed = b""

    def seal(payload: bytes) -> bytes:
        nonlocal last, last_sealed
        if len(payload) <= LEAST_BYTES:
            return plain(payload)
        if payload != last:
            short = _rest_once(payload) if isinstance(payload, SharedFrame) else deflated(payload)
            last, last_sealed = payload, marked(short) if len(short) < len(payload) else plain(payload)
        return last_sealed

    return seal


def _rest_once(frame: SharedFrame) -> bytes:
    def make() -> Rest:
        return len(frame) - APART_BYTES, deflated(frame[APART_BYTES:])

    length, rest = frame.forms.once(frame.key, make)
    return stored(frame[:-length]) + rest


class Inflating(PerMessageDeflate):
    """Inflates what comes, each message by itself; compresses nothing, which is done where it is shared.

    What is the same for all stands here and not in each: it is one a connection.
    """

    remote_no_context_takeover = True
    remote_max_window_bits = _WINDOW_BITS
    decode_cont_data = False

    def __init__(self) -> None:  # pyright: ignore[reportMissingSuperCall]  # it would fill the instance
        """Be ready for a message."""

    def encode(self, frame: Frame) -> Frame:
        """Leave what websockets itself sends as it is."""
        return frame


class Deflate(ServerPerMessageDeflateFactory):
    """Accepts permessage-deflate without context takeover in either direction."""

    def __init__(self) -> None:
        """Have no context kept, whatever the client offers."""
        super().__init__(server_no_context_takeover=True, client_no_context_takeover=True)

    def process_request_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> tuple[list[ExtensionParameter], PerMessageDeflate]:
        """Accept an offer; not one of a smaller window, for which messages could not be shared.

        Raises:
            NegotiationError: this offer is not accepted.

        """
        answer, agreed = super().process_request_params(params, accepted_extensions)
        if agreed.local_max_window_bits != _WINDOW_BITS:
            raise NegotiationError("compressed messages need a window of 15 bits")
        return answer, Inflating()
