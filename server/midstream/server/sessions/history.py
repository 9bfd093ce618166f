"""The buffer of recent changes, from which a reader that missed a little is served (SPEC 5, replay).

What streams is kept as text: deltas to one part that follow each other are one record, so a byte
of text costs little more than a byte, however small the pieces were that it came in.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.frames import MessageEntry, SyncPayload
from midstream.protocol.model import Session, Turn
from midstream.server.sessions.entries import draft_entry
from midstream.server.sessions.replay import Fold
from midstream.server.storage import rows

if TYPE_CHECKING:
    from midstream.protocol.model import Message
    from midstream.server.sessions.projection import FinishedDraft

_RECORD_BYTES = 400
"""What a record costs beyond its text, at most: enough to bound a history of small changes."""
_DELTA_BYTES = 8
"""What one more delta of a record costs beyond its text."""
_RUN_BYTES = 64 * 1024
"""What one record of deltas may grow to: so much is forgotten at a time."""
_PIECES = 256
"""Pieces that are joined into one: each is an object of 50 bytes beside its text."""


class _Text:
    """Deltas to one part, under consecutive versions."""

    __slots__ = (
        "_joined", "_lengths", "_pieces", "first", "head", "part_count", "part_sequence", "sequence", "size",
        "version",
    )  # fmt: skip

    def __init__(self, head: Message, part_count: int, part_sequence: int) -> None:
        self.first = head.revision
        self.version = head.revision
        self.sequence = head.sequence
        self.head = head
        """The message after the last delta."""
        self.part_count = part_count
        self.part_sequence = part_sequence
        self.size = _RECORD_BYTES
        self._lengths = array("Q")
        self._joined: list[str] = []
        self._pieces: list[str] = []

    def goes_on(self, head: Message, part_sequence: int) -> bool:
        return (
            head.revision == self.version + 1
            and head.sequence == self.sequence
            and part_sequence == self.part_sequence
        )

    def add(self, head: Message, text: str, size: int) -> None:
        self.head = head
        self.version = head.revision
        self.size += size
        self._lengths.append(len(text))
        self._pieces.append(text)
        if len(self._pieces) >= _PIECES:
            self.settle()

    def settle(self) -> None:
        """Join the pieces, to hold nothing but their text."""
        self._joined.append("".join(self._pieces))
        self._pieces.clear()

    def after(self, version: int) -> str:
        """Return what was appended above a version."""
        text = "".join((*self._joined, *self._pieces))
        return text[sum(self._lengths[: max(0, version - self.first + 1)]) :]


class _Change(msgspec.Struct, frozen=True, array_like=True):
    """What changed, in the two views of a session."""

    session: Session | None
    turns: list[Turn]
    visible: list[MessageEntry]
    internal: list[MessageEntry]


_read_change = msgspec.msgpack.Decoder(_Change).decode


class _Changed:
    """One change, encoded: as objects, five of them for a short turn took 6 KB. It is seldom read.

    A text that only ended is no more in it than that.
    """

    __slots__ = ("_encoded", "size", "version")

    def __init__(self, finished: FinishedDraft) -> None:
        self.version = finished.version
        change = _Change(finished.session, finished.turns, [], [])
        for message in finished.messages:
            whole = draft_entry(message)
            entry = structs.replace(
                whole,
                revision=message.head.revision,
                parts=[part for part in whole.parts if part.sequence not in message.ended],
                ended=sorted(message.ended),
            )
            view = change.visible if message.head.visibility == "visible" else change.internal
            view.append(entry)
        self._encoded = rows.encode(change)
        # as long as it takes where it is read
        self.size = _RECORD_BYTES * (1 + len(finished.messages) + len(finished.turns)) + len(self._encoded)

    def read(self) -> _Change:
        return _read_change(self._encoded)


_Record: TypeAlias = _Text | _Changed


class History:
    """The changes in (:attr:`floor`, now] of the current epoch, bounded in bytes."""

    __slots__ = ("_bytes", "_max_bytes", "_records", "_run_bytes", "floor")

    def __init__(self, *, floor: int, max_bytes: int) -> None:
        """Start empty: a reader at ``floor`` has missed nothing."""
        self.floor = floor
        self._max_bytes = max_bytes
        self._run_bytes = min(_RUN_BYTES, max_bytes // 8)
        self._bytes = 0
        self._records: deque[_Record] | None = None  # an empty one would take 600 bytes

    def covers(self, version: int) -> bool:
        """Say whether everything above ``version`` is held."""
        return version >= self.floor

    def restart(self, floor: int) -> None:
        """Forget everything: an epoch begins."""
        self.floor = floor
        self._records = None
        self._bytes = 0

    def add_delta(self, head: Message, part_count: int, part_sequence: int, text: str, size: int) -> None:
        """Record a delta, of ``size`` bytes; ``head`` is the message after it. Costs about 1 µs."""
        size += _DELTA_BYTES
        last = self._records[-1] if self._records else None
        if (
            isinstance(last, _Text)
            and last.size + size <= self._run_bytes
            and last.goes_on(head, part_sequence)
        ):
            self._bytes += size
            last.add(head, text, size)
            self._forget()
            return
        run = _Text(head, part_count, part_sequence)
        run.add(head, text, size)
        self._add(run)

    def add_change(self, finished: FinishedDraft) -> None:
        """Record a change."""
        self._add(_Changed(finished))

    def replay(
        self, since: int, *, epoch: str, version: int, durable: int, include_internal: bool
    ) -> SyncPayload:
        """Return what a reader at ``since`` missed, joined."""
        fold = Fold(include_internal=include_internal)
        for record in self._missed(since):
            if isinstance(record, _Text):
                fold.append(record.head, record.part_count, record.part_sequence, record.after(since))
            else:
                change = record.read()
                fold.merge(change.session, change.turns, change.visible, change.internal)
        return SyncPayload(
            mode="replay",
            from_version=since,
            epoch=epoch,
            version=version,
            durable=UNSET if durable == version else durable,
            session=fold.session,
            turns=list(fold.turns.values()),
            messages=fold.entries(version),
        )

    def _missed(self, since: int) -> list[_Record]:
        missed: list[_Record] = []
        for record in reversed(self._records or ()):
            if record.version <= since:
                break
            missed.append(record)
        return missed[::-1]

    def _add(self, record: _Record) -> None:
        if self._records is None:
            self._records = deque()
        elif self._records and isinstance(last := self._records[-1], _Text):
            last.settle()
        self._records.append(record)
        self._bytes += record.size
        self._forget()

    def _forget(self) -> None:
        while self._records and self._bytes > self._max_bytes:
            oldest = self._records.popleft()
            self._bytes -= oldest.size
            self.floor = oldest.version
