"""What a client's messages say after ``hello``: frames within limits, joined from chunks (SPEC 3.3). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.chunks import ChunkAssembler
from midstream.protocol.errors import InvalidRequest, LimitExceeded, MalformedFrame
from midstream.protocol.frames import Append, Call, Chunk, WriteFrame

if TYPE_CHECKING:
    from midstream.protocol.codec import Codec
    from midstream.protocol.frames import ClientFrame
    from midstream.protocol.limits import Limits


class Incoming:
    """Reads the messages of one connection."""

    __slots__ = ("_chunks", "_codec", "_limits", "_of_worker")

    def __init__(self, codec: Codec, limits: Limits) -> None:
        """Begin with those of a client."""
        self._codec = codec
        self._limits = limits
        self._of_worker = False
        self._chunks: ChunkAssembler | None = None

    def become_worker(self) -> None:
        """Take longer frames, as workers may send."""
        self._of_worker = True
        self._allow()

    def become_client(self) -> None:
        """Take no longer frames than those of a client."""
        self._of_worker = False
        self._allow()

    def _allow(self) -> None:
        if self._chunks is not None:
            self._chunks.allow(*self._most)

    def check_kind(self, *, binary: bool) -> None:
        """Check that a WebSocket message is of the kind that the subprotocol has.

        Raises:
            MalformedFrame: it is of the other kind.

        """
        codec = self._codec
        if binary != codec.binary:
            expected, got = ("binary", "text") if codec.binary else ("text", "binary")
            raise MalformedFrame(f"{codec.subprotocol} has {expected} messages, this is a {got} one")

    def read(self, data: bytes) -> tuple[ClientFrame, int] | None:
        """Return the frame and its bytes; None where more chunks of it are to come.

        Raises:
            LimitExceeded: it is too long.
            MidstreamError: it cannot be read, or may not come in chunks.

        """
        name, most = self._most
        if len(data) > most:
            raise LimitExceeded(name, most, len(data))
        frame = self._codec.decode_client_frame(data)
        if not isinstance(frame, Chunk):
            return frame, len(data)
        whole = self._assembler().feed(frame)
        if whole is None:
            return None
        frame = self._codec.decode_client_frame(whole)
        if not isinstance(frame, (Call, WriteFrame, Append)):
            raise InvalidRequest("tag", "only a call, a write or an append may come in chunks")
        return frame, len(whole)

    @property
    def _most(self) -> tuple[str, int]:
        """The limit of a frame, and its name."""
        if self._of_worker:
            return "agent_frame_bytes", self._limits.agent_frame_bytes
        return "frame_bytes", self._limits.frame_bytes

    def _assembler(self) -> ChunkAssembler:
        if self._chunks is None:
            self._chunks = ChunkAssembler(self._limits.frame_bytes, self._codec)
            self._chunks.allow(*self._most)
        return self._chunks
