"""What waits to be sent on one connection: bounded in bytes, fair between sessions (SPEC 3.3, 6).

Pure: it holds complete WebSocket messages and knows no socket. A frame that is longer than a chunk
is held once, as it was encoded, and cut into ``chunk`` frames only as they are taken.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from midstream.protocol.chunks import chunks
from midstream.server.sessions.sharing import SharedFrame
from midstream.server.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from midstream.protocol.codec import Codec
    from midstream.server.connections.backlog import Backlog

CONTROL_BYTES: Final = 256 * 1024
"""What may wait in the control lane. It holds small frames that a healthy peer takes at once; one that makes
more of them wait, by asking without reading, is not served any longer."""


class Expedited(Protocol):
    """What is written past an outbox."""

    def slow_down(self) -> None:
        """Enter the outbox from now on."""
        ...


class _Long:
    """A frame that goes as chunks; the next one is encoded when the one before is taken."""

    __slots__ = ("_ahead", "_chunks", "_index", "_payload", "size")

    def __init__(self, payload: bytes) -> None:
        self.size = len(payload)
        self._payload = payload
        self._ahead: bytes | None = None
        self._chunks: Iterator[bytes] | None = None
        self._index = 0

    def take(self, cut: Callable[[bytes], Iterator[bytes]], chunk_bytes: int) -> tuple[bytes, bool]:
        """Return the next chunk frame, and whether it was the last; ``cut`` is asked once, at the first."""
        if self._chunks is None:
            self._chunks = cut(self._payload)
        chunk = self._ahead or next(self._chunks)
        self._ahead = next(self._chunks, None)
        if isinstance(self._payload, SharedFrame):
            chunk = self._payload.chunk(chunk, self._index, chunk_bytes)
            self._index += 1
        return chunk, self._ahead is None


class _Lane:
    """The frames of one session, in order."""

    __slots__ = ("frames", "key", "turn")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.frames: deque[bytes | _Long] = deque()
        self.turn = 0
        """Bytes taken in this turn."""


class Outbox:
    """One control lane, which passes first, and one lane a session, served in turns of a chunk's length.

    ``size`` is what is held in memory, a long frame counting whole until its last chunk is taken. A
    frame is admitted while ``size`` is not above the mark. So that the one longest frame does not
    hold up other sessions, short frames are also admitted while all but that one are not above
    the mark. What respects :meth:`admits` is therefore never more than mark, longest frame and one chunk.

    Most are empty most of the time, and so they hold nothing then that would be made for what waits.
    """

    __slots__ = (
        "_awake", "_backlog", "_control", "_control_size", "_lanes", "_long", "_longest", "_n", "_spill",
        "_wake", "chunk_bytes", "codec", "express", "kind", "seal", "size", "tally",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - what a connection is made of
        self,
        codec: Codec,
        *,
        seal: Callable[[bytes], bytes],
        wake: Callable[[], None],
        spill: Callable[[bytes], None],
        chunk_bytes: int,
        backlog: Backlog,
        deflates: bool = False,
        tally: Tally | None = None,
    ) -> None:
        """Hold frames of this codec, up to the mark that ``backlog`` sets.

        ``seal`` makes a WebSocket message of an encoded frame, and ``deflates`` says whether it compresses
        long ones. ``wake`` is called when something
        entered that the caller of :meth:`take` may not know of; once, until the next ``take``.
        ``spill`` writes bytes behind what was taken.
        """
        self.codec = codec
        self.seal = seal
        self.kind = sys.intern(f"{codec.name} {chunk_bytes}{' deflate' if deflates else ''}")
        """Outboxes of one kind take the same messages: what goes to many is made once for each kind."""
        self.chunk_bytes = chunk_bytes
        self._backlog = backlog
        self.size = 0
        self.tally = tally or Tally()
        """Where those count who write into it."""
        self.express: Expedited | None = None
        """What is written past the outbox, while nothing waits in it or behind it."""
        self._wake = wake
        self._spill = spill
        self._awake = False
        self._control: deque[bytes] | None = None
        self._control_size = 0
        self._lanes: dict[Hashable, _Lane] = {}  # in the order of their turns
        self._long: dict[_Long, None] = {}
        self._longest = 0
        self._n = 0

    @property
    def mark_bytes(self) -> int:
        """Bytes above which it admits no more, for now."""
        return self._backlog.mark_bytes

    @property
    def above_mark(self) -> bool:
        """Whether not even a short frame is admitted: channels fall behind, calls are refused (SPEC 6)."""
        return self.size - self._longest > self._backlog.mark_bytes

    def waits_above(self, marks: int) -> bool:
        """Say whether so many times the mark waits, the longest frame not counted."""
        return self.size - self._longest > marks * self._backlog.mark_bytes

    @property
    def control_full(self) -> bool:
        """Whether more waits in the control lane than a healthy peer ever makes wait."""
        return self._control_size > CONTROL_BYTES

    def admits(self, length: int) -> bool:
        """Say whether a frame of so many bytes may enter now."""
        return self.size <= self._backlog.mark_bytes or (length <= self.chunk_bytes and not self.above_mark)

    def put_control(self, frame: object) -> None:
        """Encode a frame that belongs to no session, and let it pass before all that do."""
        message = self.seal(self.codec.encode(frame))
        if self._control is None:
            self._control = deque()
        self._control.append(message)
        self._control_size += len(message)
        self.size += len(message)
        self._rouse()

    def put(self, lane: Hashable, payload: bytes) -> None:
        """Put an encoded frame at the end of a lane, to go in chunks if it is longer than one."""
        if len(payload) <= self.chunk_bytes:
            self.put_sealed(lane, self.seal(payload))
            return
        frame = _Long(payload)
        self._long[frame] = None
        self._longest = max(self._longest, frame.size)
        self._append(lane, frame, frame.size)

    def put_sealed(self, lane: Hashable, message: bytes) -> None:
        """Put a complete WebSocket message at the end of a lane; it may be shared with other outboxes."""
        self._append(lane, message, len(message))

    def halt_express(self) -> None:
        """Have nothing written past the outbox: something waits in it, or behind it."""
        if self.express is not None:
            self.express.slow_down()

    def overflow(self, rest: bytes) -> None:
        """Put what is left of a message, a part of which was written past the outbox, before everything."""
        self._spill(rest)
        self._rouse()

    def take(self, max_bytes: int) -> list[bytes]:
        """Remove and return the next WebSocket messages, up to ``max_bytes`` and at most one message more.

        A chunk counts with its length before it was compressed: that is what takes time.
        """
        taken: list[bytes] = []
        self._awake = False
        while max_bytes > 0:
            if self._control is not None:
                message = self._control.popleft()
                self._control = self._control or None
                length = len(message)
                self._control_size -= length
                self.size -= length
            elif self._lanes:
                message, length = self._take_in_turn()
            else:
                break
            taken.append(message)
            max_bytes -= length
        return taken

    def _take_in_turn(self) -> tuple[bytes, int]:
        """Return a message and the length that it counts with."""
        lane = next(iter(self._lanes.values()))
        frame = lane.frames[0]
        if isinstance(frame, bytes):
            lane.frames.popleft()
            message = frame
            length = len(frame)
            self.size -= length
        else:
            chunk, last = frame.take(self._cut, self.chunk_bytes)
            message = self.seal(chunk)
            length = max(len(chunk), len(message))
            if last:
                lane.frames.popleft()
                self._forget(frame)
        lane.turn += length
        if not lane.frames:
            del self._lanes[lane.key]
        elif lane.turn >= self.chunk_bytes:
            lane.turn = 0
            self._lanes[lane.key] = self._lanes.pop(lane.key)  # behind the others
        return message, length

    def _cut(self, payload: bytes) -> Iterator[bytes]:
        # numbered as it starts, not as it enters: other lanes may overtake it meanwhile, and a reader
        # takes the chunks of a number below the highest so far for those of a frame that it gave up
        self._n += 1
        return chunks(payload, n=self._n, chunk_bytes=self.chunk_bytes, codec=self.codec)

    def _append(self, key: Hashable, frame: bytes | _Long, size: int) -> None:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key)
        lane.frames.append(frame)
        self.size += size
        self._rouse()

    def _forget(self, frame: _Long) -> None:
        self.size -= frame.size
        del self._long[frame]
        self._longest = max((other.size for other in self._long), default=0)

    def _rouse(self) -> None:
        self.halt_express()
        if not self._awake:
            self._awake = True
            self._wake()
