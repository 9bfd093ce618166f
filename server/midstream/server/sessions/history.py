"""The buffer of recent changes, from which a reader that missed a little is served (SPEC 5, replay).

A replay is the fold of what was missed: the last fields of each message, its changed parts, and
the text that was appended to the others. It needs nothing but the records, so it costs what was
missed, however long the conversation is.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType, structs

from midstream.protocol.frames import MessageEntry, SyncPayload
from midstream.protocol.live import appended
from midstream.server.sessions.entries import draft_entry, is_seen
from midstream.server.sessions.ticks import size_of
from midstream.server.storage import rows

if TYPE_CHECKING:
    from midstream.protocol.model import Message, Part, Session, Turn
    from midstream.server.sessions.projection import FinishedDraft

_RECORD_BYTES = 400
"""What a record costs beyond its text, roughly: enough to bound a history of tiny deltas."""


class _Delta:
    __slots__ = ("head", "part_count", "part_sequence", "text", "version")

    def __init__(self, head: Message, part_count: int, part_sequence: int, text: str) -> None:
        self.version = head.revision
        self.head = head
        self.part_count = part_count
        self.part_sequence = part_sequence
        self.text = text


class _Changed:
    __slots__ = ("internal", "session", "turns", "version", "visible")

    def __init__(self, finished: FinishedDraft) -> None:
        self.version = finished.version
        self.session = finished.session
        self.turns = finished.turns
        self.visible: list[MessageEntry] = []
        self.internal: list[MessageEntry] = []
        for message in finished.messages:
            view = self.visible if message.head.visibility == "visible" else self.internal
            view.append(draft_entry(message, in_sync=True))


class History:
    """The changes in (:attr:`floor`, now] of the current epoch, bounded in bytes."""

    def __init__(self, *, floor: int, max_bytes: int) -> None:
        """Start empty: a reader at ``floor`` has missed nothing."""
        self.floor = floor
        self._max_bytes = max_bytes
        self._bytes = 0
        self._records: deque[tuple[int, _Delta | _Changed]] = deque()

    def covers(self, version: int) -> bool:
        """Say whether everything above ``version`` is held."""
        return version >= self.floor

    def restart(self, floor: int) -> None:
        """Forget everything: an epoch begins."""
        self.floor = floor
        self._records.clear()
        self._bytes = 0

    def add_delta(self, head: Message, part_count: int, part_sequence: int, text: str) -> None:
        """Record a delta; ``head`` is the message after it."""
        self._add(_Delta(head, part_count, part_sequence, text), size_of(text))

    def add_change(self, finished: FinishedDraft) -> None:
        """Record a change."""
        size = sum(len(body) for message in finished.messages for body in message.bodies.values())
        if finished.session is not None:
            size += len(rows.encode(finished.session))
        entities = len(finished.messages) + len(finished.turns)
        self._add(_Changed(finished), size + _RECORD_BYTES * entities)

    def replay(
        self, since: int, *, epoch: str, version: int, durable: int, include_internal: bool
    ) -> SyncPayload:
        """Return what a reader at ``since`` missed, joined."""
        fold = _Fold(since, include_internal=include_internal)
        for _, record in self._missed(since):
            fold.take(record)
        return SyncPayload(
            mode="replay",
            from_version=since,
            epoch=epoch,
            version=version,
            durable=durable,
            session=fold.session,
            turns=list(fold.turns.values()),
            messages=[fold.messages[sequence].entry() for sequence in sorted(fold.messages)],
        )

    def _missed(self, since: int) -> list[tuple[int, _Delta | _Changed]]:
        missed: list[tuple[int, _Delta | _Changed]] = []
        for record in reversed(self._records):
            if record[1].version <= since:
                break
            missed.append(record)
        return missed[::-1]

    def _add(self, record: _Delta | _Changed, size: int) -> None:
        self._records.append((size + _RECORD_BYTES, record))
        self._bytes += size + _RECORD_BYTES
        while self._bytes > self._max_bytes:
            size, oldest = self._records.popleft()
            self._bytes -= size
            self.floor = oldest.version


class _Fold:
    """What several changes come to, for one view."""

    def __init__(self, since: int, *, include_internal: bool) -> None:
        self.session: Session | UnsetType = UNSET
        self.turns: dict[str, Turn] = {}
        self.messages: dict[int, _FoldedMessage] = {}
        self._since = since
        self._include_internal = include_internal

    def take(self, record: _Delta | _Changed) -> None:
        if isinstance(record, _Delta):
            if is_seen(record.head, include_internal=self._include_internal):
                self._message(record.head.sequence).append(record)
            return
        self.session = record.session or self.session
        for turn in record.turns:
            self.turns.pop(turn.turn_id, None)
            self.turns[turn.turn_id] = turn
        for entry in (*record.visible, *(record.internal if self._include_internal else ())):
            self._message(entry.sequence).merge(entry)

    def _message(self, sequence: int) -> _FoldedMessage:
        return self.messages.setdefault(sequence, _FoldedMessage())


class _FoldedMessage:
    """The changes of one message: an entry, and the text that comes after it."""

    __slots__ = ("_entry", "_parts", "_tails")

    def __init__(self) -> None:
        self._entry: MessageEntry | None = None
        self._parts: dict[int, Part] = {}
        self._tails: dict[int, list[str]] = {}

    def append(self, delta: _Delta) -> None:
        head = delta.head
        if self._entry is None:
            self._entry = MessageEntry(
                message_id=head.message_id,
                sequence=head.sequence,
                revision=head.revision,
                updated_at=head.updated_at,
                state=head.state,
                part_count=delta.part_count,
            )
        self._entry = structs.replace(self._entry, revision=head.revision, updated_at=head.updated_at)
        self._tails.setdefault(delta.part_sequence, []).append(delta.text)

    def merge(self, later: MessageEntry) -> None:
        is_new = self._entry is not None and self._entry.role is not UNSET
        if is_new and self._entry is not None:
            # the fields that never change came with the first entry; the later one has the rest
            self._entry = structs.replace(
                self._entry,
                revision=later.revision,
                updated_at=later.updated_at,
                state=later.state,
                part_count=later.part_count,
            )
        else:
            self._entry = later
        for part in later.parts:
            self._parts[part.sequence] = part
            self._tails.pop(part.sequence, None)
        for number in [number for number in {*self._parts, *self._tails} if number > later.part_count]:
            self._parts.pop(number, None)
            self._tails.pop(number, None)

    def entry(self) -> MessageEntry:
        if self._entry is None:
            message = "a folded message has at least one change"
            raise RuntimeError(message)
        parts = dict(self._parts)
        appends: list[tuple[int, str]] = []
        for number, tail in sorted(self._tails.items()):
            text = "".join(tail)
            if number in parts:
                parts[number] = appended(parts[number], text)
            else:
                appends.append((number, text))
        return structs.replace(
            self._entry, parts=[parts[number] for number in sorted(parts)], appends=appends
        )
