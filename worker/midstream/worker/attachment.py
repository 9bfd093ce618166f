"""One worker's hold of one turn, over however many connections: what goes out, what came back (SPEC 14).

Pure. The owner says what the agent writes and what the connection brings; :meth:`Attachment.take` gives the
frames to send, and every method that hears of something returns what that means.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET

from midstream.protocol.agent_calls import AttachParams, AttachResult
from midstream.protocol.agents import NOTHING, EndText, Write, WriteResult, is_stored
from midstream.protocol.codec import Codec
from midstream.protocol.errors import (
    ErrorInfo,
    InvalidRequest,
    LimitExceeded,
    MidstreamError,
    error_from_info,
)
from midstream.protocol.frames import (
    Ack,
    Answered,
    Append,
    Detached,
    PartHandle,
    WriteFrame,
    WriteRefused,
    Wrote,
)
from midstream.protocol.limits import DEFAULT_LIMITS, Limits
from midstream.protocol.model import InteractionPart
from midstream.protocol.transitions import TERMINAL_INTERACTION
from midstream.protocol.values import MAX_VALUES, problem_in
from midstream.worker.ledger import Ledger, Piece

PIECE_CHARS = 8 * 1024
"""Characters of one append at most: 32 KiB of UTF-8, so that a window holds several."""

NUMBERS_BYTES = 32
"""What the numbers of a frame take at most."""

AttachmentFrame: TypeAlias = Ack | Wrote | WriteRefused | Answered | Detached
"""The frames that speak of an attachment, and mean something here."""


class Settled(msgspec.Struct, frozen=True):
    """A write that was waited for is done, or refused."""

    n: int
    result: WriteResult | MidstreamError


class Heard(msgspec.Struct, frozen=True):
    """An interaction that was waited for has its outcome."""

    interaction: InteractionPart


class Over(msgspec.Struct, frozen=True):
    """The turn is not this worker's any more, for good.

    ``ended``: it is over. ``fenced``: another process has it. ``lost``: what another process wrote
    before is gone, and this one cannot write it again.
    """

    why: Literal["ended", "fenced", "lost"]


class AttachAgain(msgspec.Struct, frozen=True):
    """The attachment is over, but the turn can be attached to again."""

    why: str


Event: TypeAlias = Settled | Heard | Over | AttachAgain


class Attachment:
    """The writes of one worker to one turn: each enters once, in order, whatever becomes of connections."""

    def __init__(
        self, codec: Codec, session_id: str, turn_id: str, *, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        """Hold nothing until :meth:`attached`."""
        self.session_id = session_id
        self.turn_id = turn_id
        self.channel: int | None = None
        """The attachment's number in the connection that there is; None without one."""
        self.limits = limits
        """What the server takes: the longest frame, and how much may be kept that is not on disk."""
        self.refusal: MidstreamError | None = None
        """Why a write was refused that nobody waited for; the owner raises it and sets None."""
        self._codec = codec
        self._generation: int | None = None
        self._ledger = Ledger()
        self._next = 1  # the next to be sent
        self._window = limits.agent_window_bytes
        self._in_flight: deque[tuple[int, int]] = deque()
        self._in_flight_bytes = 0
        self._unsent_bytes = 0
        self._acked = 0
        self._held_back: bytes | None = None
        self._handles: dict[str, int] = {}
        self._pending_part = ""
        self._pending: list[str] = []
        self._pending_chars = 0
        self._awaited: dict[int, None] = {}
        self._answered_n = 0  # what became of writes up to it was told, and nothing is told twice
        self._waiting: dict[str, None] = {}
        self._outcomes: dict[str, InteractionPart] = {}

    # What the agent does

    @property
    def has_room(self) -> bool:
        """Say whether the agent may go on: less is on its way, or waits for it, than the window."""
        return self._unsent_bytes + self._in_flight_bytes + self._pending_chars < self._window

    @property
    def kept_bytes(self) -> int:
        """About how many bytes are kept because the server has them not on disk."""
        return self._ledger.size + self._pending_chars

    def write(self, write: Write) -> int:
        """Take a write, and return its number. One that is stored is awaited: it will be settled.

        Raises:
            InvalidRequest: the server would not take it; nothing was written.
            LimitExceeded: likewise, and it is too long, or too much is not on disk.

        """
        payload = self._checked(write)
        if not is_stored(write) and not isinstance(write, EndText):
            self._check_kept(len(payload))
        self._flush()
        before = self._ledger.size
        n = self._ledger.add_write(write, len(payload))
        self._unsent_bytes += self._ledger.size - before
        if is_stored(write):
            self._awaited[n] = None
        return n

    def append(self, part_id: str, text: str) -> None:
        """Take text for a part. What is appended before anything can be sent goes as one.

        Raises:
            LimitExceeded: too much is not on disk; nothing was written.

        """
        self._check_kept(len(text))
        if part_id != self._pending_part:
            self._flush()
        self._pending_part = part_id
        for start in range(0, len(text), PIECE_CHARS):
            piece = text[start : start + PIECE_CHARS]
            if self._pending_chars + len(piece) > PIECE_CHARS:
                self._flush()
            self._pending.append(piece)
            self._pending_chars += len(piece)

    def await_all(self) -> int | None:
        """Await the newest write, and so all of them; return its number, or None where all are taken."""
        self._flush()
        if self._ledger.last <= self._acked:
            return None
        self._awaited[self._ledger.last] = None
        return self._ledger.last

    def await_outcome(self, interaction_id: str) -> InteractionPart | None:
        """Return the outcome of an interaction where it is known; else it will be heard."""
        outcome = self._outcomes.get(interaction_id)
        if outcome is None:
            self._waiting[interaction_id] = None
        return outcome

    def forget_outcome(self, interaction_id: str) -> None:
        """Wait for this outcome no longer."""
        self._waiting.pop(interaction_id, None)

    # What goes out

    def params(self) -> AttachParams:
        """Return with what to attach."""
        return AttachParams(
            session_id=self.session_id,
            turn_id=self.turn_id,
            generation=UNSET if self._generation is None else self._generation,
            waiting=list(self._waiting),
        )

    def take(self) -> bytes | None:
        """Return the next frame to send, encoded; None where nothing is to be sent now."""
        if self.channel is None:
            return None
        if self._next > self._ledger.last:
            if self._in_flight_bytes >= self._window:
                return None  # the text that waits may grow
            self._flush()
            if self._next > self._ledger.last:
                return None
        payload = self._held_back
        if payload is None:
            content = self._ledger.content(self._next)
            if isinstance(content, Piece):
                handle = self._handles.get(content.part_id)
                if handle is None:
                    return self._codec.encode(self._new_handle(self.channel, content.part_id))
                payload = self._codec.encode(Append(self.channel, self._next, handle, content.text))
            else:
                payload = self._codec.encode(WriteFrame(self.channel, self._next, content))
        if self._in_flight and self._in_flight_bytes + len(payload) > self._window:
            self._held_back = payload
            return None
        self._held_back = None
        self._in_flight.append((self._next, len(payload)))
        self._in_flight_bytes += len(payload)
        self._next += 1
        caught_up = self._next > self._ledger.last
        self._unsent_bytes = 0 if caught_up else max(0, self._unsent_bytes - len(payload))
        return payload

    def _new_handle(self, channel: int, part_id: str) -> PartHandle:
        if len(self._handles) == self.limits.parts:
            self._handles.clear()  # each will be given again, and stands for its new part from then on
        handle = self._handles[part_id] = len(self._handles)
        return PartHandle(channel, handle, part_id)

    # What comes back

    def attached(self, result: AttachResult) -> list[Event]:
        """Take the answer to ``agent.attach``: from where to go on."""
        if self._generation is None:
            self._ledger = Ledger(result.next_n - 1)
            self._answered_n = result.next_n - 1  # to whoever wrote before
        elif not self._ledger.durable < result.next_n <= self._ledger.last + 1:
            return [Over("lost")]
        self._generation = result.generation
        self._window = result.window_bytes
        self.channel = result.channel
        self._next = result.next_n
        self._ledger.stored(result.durable_n)
        self._unsent_bytes = self._ledger.size_from(result.next_n)
        events: list[Event] = []
        for n, answer in result.results:
            events += self._wrote(n, answer)
        for n, error in result.refused:
            events += self._refuse(n, error)
        events += self._ack(result.next_n - 1)
        for interaction in result.interactions:
            events += self._answered(interaction)
        return events

    def lost(self) -> None:
        """Learn that the attachment is gone, with its connection or without."""
        self.channel = None
        self._in_flight.clear()
        self._in_flight_bytes = 0
        self._held_back = None
        self._handles.clear()
        self._next = self._acked + 1
        self._unsent_bytes = self._ledger.size_from(self._next)

    def frame(self, frame: AttachmentFrame) -> list[Event]:
        """Take a frame of this attachment's channel."""
        match frame:
            case Ack():
                self._ledger.stored(frame.durable)
                return self._ack(frame.n)
            case Wrote():
                return self._wrote(frame.n, frame.result)
            case WriteRefused():
                return self._refuse(frame.n, frame.error)
            case Answered():
                return self._answered(frame.interaction)
            case Detached():
                self.lost()
                if frame.code in {"ended", "fenced", "forbidden"}:
                    # who may not any more is let go like one that was replaced: others write this turn
                    return [Over("ended" if frame.code == "ended" else "fenced")]
                return [AttachAgain(frame.code)]

    def _ack(self, n: int) -> list[Event]:
        self._acked = n
        self._answered_n = max(self._answered_n, n)
        while self._in_flight and self._in_flight[0][0] <= n:
            self._in_flight_bytes -= self._in_flight.popleft()[1]
        return [self._settled(one, NOTHING) for one in [one for one in self._awaited if one <= n]]

    def _wrote(self, n: int, result: WriteResult) -> list[Event]:
        return [self._settled(n, result)] if n in self._awaited else []

    def _settled(self, n: int, result: WriteResult | MidstreamError) -> Settled:
        del self._awaited[n]
        return Settled(n, result)

    def _refuse(self, n: int, info: ErrorInfo) -> list[Event]:
        error = error_from_info(info)
        if n in self._awaited:
            return [self._settled(n, error)]
        if n > self._answered_n:  # else it was sent again, or told again
            self._answered_n = n
            self.refusal = self.refusal or error
        return []

    def _answered(self, interaction: InteractionPart) -> list[Event]:
        if interaction.status not in TERMINAL_INTERACTION:
            return []
        self._outcomes[interaction.interaction_id] = interaction
        if interaction.interaction_id not in self._waiting:
            return []
        del self._waiting[interaction.interaction_id]
        return [Heard(interaction)]

    def _checked(self, write: Write) -> bytes:
        """Encode a write. What no server could read is refused here: it has no number to be refused by."""
        problem = problem_in(write, nesting=self.limits.nesting - 1, most=MAX_VALUES)
        if problem:
            raise InvalidRequest(problem[0] or "write", problem[1])
        payload = self._codec.encode(WriteFrame(0, 0, write))
        self._codec.decode_client_frame(payload)
        if len(payload) > self.limits.agent_frame_bytes - NUMBERS_BYTES:
            raise LimitExceeded("agent_frame_bytes", self.limits.agent_frame_bytes, len(payload))
        return payload

    def _flush(self) -> None:
        """Give the text that waits its number."""
        if not self._pending:
            return
        before = self._ledger.size
        self._ledger.add_text(self._pending_part, "".join(self._pending))
        self._unsent_bytes += self._ledger.size - before
        self._pending.clear()
        self._pending_chars = 0

    def _check_kept(self, more: int) -> None:
        if self.kept_bytes + more > self.limits.message_bytes:
            raise LimitExceeded("message_bytes", self.limits.message_bytes, self.kept_bytes + more)
