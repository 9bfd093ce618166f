"""Joins the chunks of a server, and watches that it keeps to the rules of SPEC 3.3."""

from __future__ import annotations

from collections.abc import Callable

from midstream.conformance.outcome import Failed
from midstream.conformance.servers.frame import Frame, Plain, read
from midstream.protocol.codec import Codec
from midstream.protocol.frames import Chunk


class Pieces:
    """The long frames that are on their way."""

    def __init__(self, codec: Codec) -> None:
        """Join pieces of a codec."""
        self._codec = codec
        self._open: dict[int, list[bytes | str]] = {}
        self._between: dict[int, list[Plain]] = {}
        self._highest = -1
        self.joined = 0

    def feed(self, frame: Frame, session_of: Callable[[Plain], str | None]) -> Frame | None:
        """Take a frame; return it, or the one whose last piece it is, or None."""
        chunk = frame.typed
        if not isinstance(chunk, Chunk):
            for between in self._between.values():
                between.append(frame.plain)
            return frame
        if chunk.n not in self._open:
            if chunk.n <= self._highest:
                raise Failed(
                    "the numbers of chunks count up (3.3)", expected=f"above {self._highest}", seen=chunk.n
                )
            self._highest = chunk.n
            self._open[chunk.n] = []
            self._between[chunk.n] = []
        if not chunk.piece:
            raise Failed("no piece is empty (3.3)", expected="bytes or text", seen=frame.plain)
        self._open[chunk.n].append(chunk.piece)
        if not chunk.last:
            return None
        pieces, between = self._open.pop(chunk.n), self._between.pop(chunk.n)
        data = b"".join(
            one if isinstance(one, bytes) else one.encode("utf-8", "surrogatepass") for one in pieces
        )
        whole = read(data, self._codec)
        self.joined += 1
        for other in self._between.values():
            other.append(whole.plain)
        session = session_of(whole.plain)
        mixed = [one for one in between if session is not None and session_of(one) == session]
        if mixed:
            raise Failed(
                "between the pieces of a frame no other frame of its session is sent (3.3)",
                expected="none",
                seen=mixed[0],
            )
        return whole
