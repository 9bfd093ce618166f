"""What is stored, as it goes in and comes out (SPEC 9)."""

from __future__ import annotations

from typing import TypeAlias, cast

import msgspec

from midstream.protocol.calls import Delivery, InputState
from midstream.protocol.model import Message, Part, Session, Summary, Turn


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session's version stands on disk.

    ``version`` is the last committed one. While ``dirty``, versions up to ``ceiling`` and times up to
    ``time_ceiling`` may have been published. ``generation`` is the owner under which ``epoch`` lives.
    """

    version: int
    ceiling: int
    epoch: str
    generation: int
    dirty: bool
    cleared_version: int
    last_time: int
    time_ceiling: int = 0


class EpochEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How far an epoch came: nothing above ``version`` was published, nothing above ``commit`` stored."""

    epoch: str
    version: int
    commit: int


class InputRow(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted input. ``parts`` are kept while it is queued."""

    message_id: str
    content_hash: str
    subject: str
    delivery: Delivery
    state: InputState
    turn_id: str | None
    accepted: int
    """The version that accepted it: the order of the queue."""
    parts: list[Part]


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as read.

    The parts of ``head`` are as they were encoded, :class:`msgspec.Raw` whatever their type says: encoding
    writes them as they are, so ``head`` is the message for the wire, and goes from the disk to the socket
    without being decoded.
    """

    head: Message
    created_version: int
    part_revisions: list[int]
    size: int
    """Bytes of the parts."""

    @property
    def parts(self) -> list[msgspec.Raw]:
        """The encoded parts."""
        return cast("list[msgspec.Raw]", self.head.parts)


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages of which session a reader sees. Those below ``first`` do not exist."""

    session_no: int
    session_id: str
    first: int = 1
    include_internal: bool = True


class MessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message as written. ``is_open``: it streams, or one of its parts is not ended."""

    head: Message
    created_version: int
    part_count: int
    is_open: bool
    drops: bool = True
    """Whether parts above ``part_count`` may be stored, which are to go."""
    changed_late: bool = True
    """Whether there was a newer message before this change, or may have been: False only where a catch-up
    finds the message by going down from the newest."""


PartRow: TypeAlias = tuple[int, int, int, bytes]
"""(message sequence, part sequence, revision, encoded part)."""


class AttachmentRow(msgspec.Struct, frozen=True, kw_only=True):
    """How far the remote agent of a session's running turn has come (SPEC 14)."""

    turn_id: str
    generation: int
    """How often the turn was attached to."""
    n: int
    """The last of its agent's writes that is on disk."""
    worker: str
    """The name of the worker that attached last."""
    instance: str = ""
    """The life of its process."""
    outcomes: bytes = b""
    """What came of its newest writes (:mod:`midstream.server.sessions.outcomes`)."""


class SessionWrite(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one commit stores of one session."""

    session_no: int
    ledger: LedgerRow
    epoch_end: EpochEnd | None = None
    session: Session | None = None
    messages: list[MessageRow] = []
    parts: list[PartRow] = []
    interactions: list[tuple[str, int, int]] = []
    """(interaction id, message sequence, part sequence) of interactions that may be new."""
    turns: list[Turn] = []
    inputs: list[InputRow] = []
    attachment: AttachmentRow | None = None
    summaries: list[Summary] = []
    deleted: bool = False


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions a list may show: all, or those of an owner, and those of these ids and beginnings."""

    everything: bool = False
    owner: str | None = None
    ids: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


EVERYTHING = Selection(everything=True)


class LoadedSession(msgspec.Struct, frozen=True, kw_only=True):
    """What a loop starts from: the session, and what of it may still change."""

    session_no: int
    session: Session
    ledger: LedgerRow
    turn: Turn | None
    open_messages: list[StoredMessage]
    queue: list[InputRow]
    attachment: AttachmentRow | None = None
    """That of the running turn, if a worker ever attached to it."""
    owner: str | None = None
    """The subject that made it, if it had a token."""
