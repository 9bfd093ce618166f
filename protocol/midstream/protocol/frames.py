"""The frames: arrays whose first element is the tag, but for the short delta, which has none (SPEC 3).

Integers are below 2^53. ``channel`` names one load of one session for the whole life of a server
process, so that a frame is encoded once for all its readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from midstream.protocol.agents import AgentId, Write, WriteResult
from midstream.protocol.errors import ErrorInfo
from midstream.protocol.limits import Limits
from midstream.protocol.lists import ListChanges
from midstream.protocol.model import (
    InteractionPart,
    Origin,
    Part,
    Role,
    Session,
    StreamState,
    Turn,
    Visibility,
)
from midstream.protocol.values import MAX_INTEGER, Value

Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
CallId: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
if TYPE_CHECKING:
    Piece: TypeAlias = bytes | str
    """A piece of a frame: bytes in msgpack, a slice of the text in JSON."""
else:
    Piece = Value  # msgspec decodes no union of the two; the codec checks which one it is


class Hello(msgspec.Struct, array_like=True, tag="hello", frozen=True):
    """→ The first frame of a client, within ``hello_seconds``."""

    version: Count
    token: str | None
    client: dict[str, Value]


class WelcomeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection is told about its server, and itself. ``time`` is ms since the epoch."""

    connection_id: str
    server: str
    time: int
    heartbeat_ms: int
    limits: Limits
    subject: str
    scopes: list[str]
    token_ms: Count | UnsetType = UNSET
    """In how many ms the token expires; absent where it never does."""


class Welcome(msgspec.Struct, array_like=True, tag="welcome", frozen=True):
    """← The answer to ``hello``."""

    info: WelcomeInfo


class Call(msgspec.Struct, array_like=True, tag="call", frozen=True):
    """→ A request. ``id`` is the client's own; it is answered once, by ``result`` or ``error``."""

    id: CallId
    method: str
    params: msgspec.Raw


class Result(msgspec.Struct, array_like=True, tag="result", frozen=True):
    """← The answer to the call with this id; its form depends on the method (SPEC 7)."""

    id: CallId
    result: msgspec.Raw


class ErrorFrame(msgspec.Struct, array_like=True, tag="error", frozen=True):
    """← The refusal of a call, or, with id ``null``, of a frame that was no call."""

    id: CallId | None
    error: ErrorInfo


class Ping(msgspec.Struct, array_like=True, tag="ping", frozen=True):
    """↔ Asks for a ``pong`` with the same nonce."""

    nonce: Count


class Pong(msgspec.Struct, array_like=True, tag="pong", frozen=True):
    """↔ Answers a ``ping``; ``time`` is the sender's, in ms since the epoch."""

    nonce: Count
    time: Count


class Delta(msgspec.Struct, array_like=True, tag="d", frozen=True):
    """← Text appended to a part, whichever it is."""

    channel: Count
    version: Count
    elapsed: Count
    message_sequence: Count
    part_sequence: Count
    text: str


class ShortDelta(msgspec.Struct, array_like=True, frozen=True):
    """← Text appended to the last part of the session's last message: the one hot frame.

    It has no tag, and is 11 bytes for four ASCII characters in msgpack. ``step`` is what the
    message's ``updated_at`` grows by, in ms.
    """

    channel: Count
    version: Count
    step: Count
    text: str


class MessageEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a change or a sync says of one message (SPEC 3.4).

    All of the message's own fields are there when it is new to the reader. ``parts`` are those
    that changed, each whole; parts above ``part_count`` are dropped. ``revision``, ``appends`` and
    ``ended`` are there in a sync only; ``revision`` only where it is not the sync's version.
    """

    message_id: str | UnsetType = UNSET
    sequence: Count
    revision: Count | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    turn_id: str | UnsetType = UNSET
    role: Role | UnsetType = UNSET
    visibility: Visibility | UnsetType = UNSET
    created_at: Count | UnsetType = UNSET
    updated_at: Count
    origin: Origin | UnsetType = UNSET
    state: StreamState | UnsetType = UNSET
    part_count: Count
    parts: list[Part] = []
    appends: list[tuple[Count, str]] = []
    ended: list[Count] = []
    """Texts and reasonings whose state became ``done``, and that changed otherwise by ``appends`` alone."""


class ChangeContent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Everything that one change touched; turns and the session are always whole."""

    messages: list[MessageEntry] = []
    turns: list[Turn] = []
    session: Session | UnsetType = UNSET


class Change(msgspec.Struct, array_like=True, tag="change", frozen=True):
    """← One change, applied as a whole. ``durable`` says that it was committed before it was sent."""

    channel: Count
    version: Count
    durable: bool
    content: ChangeContent


class Skip(msgspec.Struct, array_like=True, tag="skip", frozen=True):
    """← The versions in (``from_version``, ``version``] show nothing to this subscription."""

    channel: Count
    from_version: Count
    version: Count


class SyncPayload(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename={"from_version": "from"}
):
    """What brings a replica from ``from`` to ``version``, or replaces it (SPEC 5).

    ``durable`` is absent where it is ``version``: then everything is committed.
    """

    mode: Literal["replay", "catchup", "reset"]
    from_version: Count | UnsetType = UNSET
    epoch: str
    version: Count
    durable: Count | UnsetType = UNSET
    session: Session | UnsetType = UNSET
    turns: list[Turn] = []
    messages: list[MessageEntry] = []
    next_before_sequence: Count | UnsetType = UNSET
    has_more: bool | UnsetType = UNSET

    def committed(self) -> int:
        """Return the last durable version at or below ``version``."""
        return self.version if self.durable is UNSET else self.durable


class Sync(msgspec.Struct, array_like=True, tag="sync", frozen=True):
    """← A sync that was not asked for: the reader was behind, or a new epoch begins."""

    channel: Count
    payload: SyncPayload


class Mark(msgspec.Struct, array_like=True, tag="mark", frozen=True):
    """← Where the stream stands, so that a lost last frame is noticed."""

    channel: Count
    version: Count


class Closed(msgspec.Struct, array_like=True, tag="closed", frozen=True):
    """← The subscription ended: ``reload``, ``deleted`` or ``forbidden``."""

    channel: Count
    code: str
    retryable: bool


class Signal(msgspec.Struct, array_like=True, tag="signal", frozen=True):
    """← Something ephemeral (typing, presence): no version, never stored."""

    channel: Count
    sender: str
    name: str
    data: Value


class SessionsChanged(msgspec.Struct, array_like=True, tag="sessions", frozen=True):
    """← Sessions changed, or are gone: for connections that watch the list (SPEC 4.8)."""

    changes: ListChanges


class GoAway(msgspec.Struct, array_like=True, tag="goaway", frozen=True):
    """← The server drains: come back after this delay, which differs for each connection."""

    reason: str
    reconnect_after_ms: Count


class Chunk(msgspec.Struct, array_like=True, tag="chunk", frozen=True):
    """↔ A piece of frame ``n``: bytes in msgpack, a slice of the text in JSON."""

    n: Count
    last: bool
    piece: Piece


class PartHandle(msgspec.Struct, array_like=True, tag="part", frozen=True):
    """→ A number that a worker gives a part of its turn, for the deltas of this attachment (SPEC 14.4)."""

    channel: Count
    handle: Count
    part_id: AgentId


class Append(msgspec.Struct, array_like=True, tag="a", frozen=True):
    """→ The worker's hot frame: text appended to a part (11 bytes for four ASCII characters in msgpack)."""

    channel: Count
    n: Count
    handle: Count
    text: str


class WriteFrame(msgspec.Struct, array_like=True, tag="write", frozen=True):
    """→ A write of a remote agent; the ``n`` of an attachment's writes and appends are consecutive."""

    channel: Count
    n: Count
    write: Write


class Offer(msgspec.Struct, array_like=True, tag="offer", frozen=True):
    """← A turn that this worker may attach to; ``resumed`` where another one has begun it."""

    session_id: str
    turn_id: str
    resumed: bool


class Ack(msgspec.Struct, array_like=True, tag="ack", frozen=True):
    """← Writes up to ``n`` were taken, and up to ``durable`` they are on disk."""

    channel: Count
    n: Count
    durable: Count


class Wrote(msgspec.Struct, array_like=True, tag="wrote", frozen=True):
    """← What a write gave back."""

    channel: Count
    n: Count
    result: WriteResult


class WriteRefused(msgspec.Struct, array_like=True, tag="refused", frozen=True):
    """← A write or an append changed nothing; the next ones are taken all the same."""

    channel: Count
    n: Count
    error: ErrorInfo


class Answered(msgspec.Struct, array_like=True, tag="answered", frozen=True):
    """← An interaction of the turn has its outcome."""

    channel: Count
    interaction: InteractionPart


class InputsWaiting(msgspec.Struct, array_like=True, tag="inputs", frozen=True):
    """← How many inputs ``absorb_inputs`` would take now."""

    channel: Count
    count: Count


DetachCode: TypeAlias = Literal["ended", "fenced", "reload", "gap", "overloaded", "forbidden"]
"""Why an attachment is over. A worker attaches again for one that it does not know (SPEC 14.8)."""


class Detached(msgspec.Struct, array_like=True, tag="detached", frozen=True):
    """← The attachment is over, for the reason of a :data:`DetachCode`, or one of a newer server."""

    channel: Count
    code: str


ClientFrame: TypeAlias = Hello | Call | Ping | Pong | Chunk | PartHandle | Append | WriteFrame
"""What a client, or a worker, sends."""

WorkerFrame: TypeAlias = PartHandle | Append | WriteFrame
"""What a worker sends in an attachment."""

TaggedFrame: TypeAlias = (
    Welcome
    | Result
    | ErrorFrame
    | Ping
    | Pong
    | Delta
    | Change
    | Skip
    | Sync
    | Mark
    | Closed
    | Signal
    | SessionsChanged
    | GoAway
    | Chunk
    | Offer
    | Ack
    | Wrote
    | WriteRefused
    | Answered
    | InputsWaiting
    | Detached
)
"""What a server sends, and begins with a tag."""

ServerFrame: TypeAlias = TaggedFrame | ShortDelta
"""What a server sends."""

SessionFrame: TypeAlias = Delta | ShortDelta | Change | Skip | Sync | Mark
"""The frames that the merge law speaks of (SPEC 4)."""
