"""A server as simple as can be: a list of what was taken, and how much of it is on disk."""

from __future__ import annotations

from collections import deque

import msgspec

from midstream.protocol.agent_calls import AttachParams, AttachResult
from midstream.protocol.agents import AbsorbInputs, AddPart, EndText, Write, WriteResult
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import IllegalTransition
from midstream.protocol.frames import Ack, Append, Detached, PartHandle, WriteFrame, WriteRefused, Wrote
from midstream.protocol.model import Message, TextPart, Turn
from midstream.worker.attachment import AttachmentFrame
from midstream.worker.ledger import Piece

BAD = "bad"
"""Writes about a part of this id are refused, each time they come."""
PROMPT = Message(
    message_id="m",
    session_id="s",
    turn_id="t",
    sequence=1,
    revision=1,
    role="user",
    visibility="visible",
    created_at=1,
    updated_at=1,
    parts=[TextPart(part_id="p", sequence=1, text="Go on")],
)
TURN = Turn(turn_id="t", revision=1, state="running", phase="starting", phase_since=1, started_at=1)


class Oracle:
    """One turn, at the server.

    Attributes:
        taken: every write that was taken, refused ones included, in order.
        durable: how many of them are on disk.
        news: the frames for the worker, which a cut loses.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.taken: list[Write | Piece] = []
        self.durable = 0
        self.generation = 0
        self.channel: int | None = None
        self.news: deque[AttachmentFrame] = deque()
        self._handles: dict[int, str] = {}
        self._outcomes: list[tuple[int, WriteResult | IllegalTransition]] = []
        self._channels = 0
        self._told = 0
        self._on_way: deque[tuple[int, int]] = deque()

    def attach(self, params: AttachParams) -> AttachResult:
        """Let the worker in."""
        assert params.generation in {msgspec.UNSET, self.generation}
        self.generation += 1
        self._channels += 1
        self.channel = self._channels
        self.news.clear()
        self._handles.clear()
        self._on_way.clear()
        self._told = len(self.taken)
        return AttachResult(
            channel=self.channel,
            generation=self.generation,
            next_n=len(self.taken) + 1,
            durable_n=self.durable,
            lease_ms=30_000,
            window_bytes=self.window,
            turn=TURN,
            prompt=PROMPT,
            results=[(n, one) for n, one in self._outcomes if isinstance(one, WriteResult)],
            refused=[(n, one.info()) for n, one in self._outcomes if not isinstance(one, WriteResult)],
        )

    def sent(self, payload: bytes) -> None:
        """Learn of a frame when it goes out: the window is never passed but by one frame alone."""
        frame = MSGPACK.decode_client_frame(payload)
        if isinstance(frame, (Append, WriteFrame)):
            self._on_way.append((frame.n, len(payload)))
            assert len(self._on_way) == 1 or sum(size for _, size in self._on_way) <= self.window

    def take(self, payload: bytes) -> None:
        """Take a frame of the connection that there is."""
        frame = MSGPACK.decode_client_frame(payload)
        assert isinstance(frame, (PartHandle, Append, WriteFrame))
        assert frame.channel == self.channel
        if isinstance(frame, PartHandle):
            assert frame.handle not in self._handles
            self._handles[frame.handle] = frame.part_id
            return
        assert frame.n == len(self.taken) + 1, "every number comes once, and none is left out"
        if isinstance(frame, WriteFrame):
            self.taken.append(frame.write)
            self._answer(frame.n, frame.write)
        else:
            self.taken.append(Piece(self._handles[frame.handle], frame.text))
            if self._handles[frame.handle] == BAD:
                self._refuse(frame.n)

    def acknowledge(self) -> None:
        """Tell how far it has come."""
        assert self.channel is not None
        self._told = len(self.taken)
        self.news.append(Ack(self.channel, self._told, self.durable))

    def heard(self, frame: AttachmentFrame) -> None:
        """Learn that the worker got a frame."""
        if isinstance(frame, Ack):
            while self._on_way and self._on_way[0][0] <= frame.n:
                self._on_way.popleft()

    def commit(self) -> None:
        """Have all of it on disk."""
        self.durable = len(self.taken)

    def restart(self) -> None:
        """Lose what is not on disk, and the connection."""
        del self.taken[self.durable :]
        self._outcomes = [(n, one) for n, one in self._outcomes if n <= self.durable]
        self.cut()

    def cut(self) -> None:
        """Lose the connection, and what is on its way in it."""
        self.channel = None
        self.news.clear()

    def detach(self, code: str) -> None:
        """End the attachment, and say so."""
        assert self.channel is not None
        self.news.append(Detached(self.channel, code))
        self.channel = None

    def _answer(self, n: int, write: Write) -> None:
        assert self.channel is not None
        if isinstance(write, AbsorbInputs):
            result = WriteResult(messages=[msgspec.structs.replace(PROMPT, sequence=n)])
            self._outcomes.append((n, result))
            self.news.append(Wrote(self.channel, n, result))
        elif is_bad(write):
            self._refuse(n)

    def _refuse(self, n: int) -> None:
        assert self.channel is not None
        error = IllegalTransition("part", BAD, "gone", "open")
        self._outcomes.append((n, error))
        self.news.append(WriteRefused(self.channel, n, error.info()))


def is_bad(write: Write | Piece) -> bool:
    """Say whether the oracle refuses it."""
    match write:
        case AddPart():
            return write.part.part_id == BAD
        case EndText() | Piece():
            return write.part_id == BAD
        case _:
            return False


def joined(writes: list[Write | Piece]) -> list[Write | Piece]:
    """Return the writes with the neighbouring texts of one part joined, because how text is cut is free."""
    result: list[Write | Piece] = []
    for write in writes:
        last = result[-1] if result else None
        if isinstance(write, Piece) and isinstance(last, Piece) and last.part_id == write.part_id:
            result[-1] = Piece(write.part_id, last.text + write.text)
        else:
            result.append(write)
    return result
