"""The buffer of recent changes, from which a reader that missed a little is served (SPEC 5, replay).

What streams is kept as text: deltas to one part that follow each other are one record, so a byte
of text costs little more than a byte, however small the pieces were that it came in.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.frames import MessageEntry, SyncPayload
from midstream.protocol.model import Session, Turn
from midstream.server.sessions.entries import draft_entry
from midstream.server.sessions.replay import Fold
from midstream.server.storage import rows

if TYPE_CHECKING:
    from midstream.protocol.live import LiveMessage
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
        "_first_head", "_joined", "_lengths", "first", "live", "part_count", "part_sequence", "pieces",
        "size", "updated_at", "version",
    )  # fmt: skip

    def __init__(self, live: LiveMessage, part_sequence: int, text: str, size: int) -> None:
        self.live: LiveMessage | None = live
        """The message that it goes on with; None once something else was published."""
        self._first_head = live.head
        self.first = self.version = live.revision
        self.updated_at = live.updated_at
        """The time of the last delta."""
        self.part_count = live.part_count
        self.part_sequence = part_sequence
        self.size = _RECORD_BYTES + size
        self.pieces = [text]
        """Those that are not joined."""
        self._lengths: array[int] | None = None
        self._joined = ""

    @property
    def head(self) -> Message:
        """The message after the last delta."""
        return structs.replace(self._first_head, revision=self.version, updated_at=self.updated_at)

    def settle(self) -> None:
        """Join the pieces, to hold nothing but their text."""
        lengths = map(len, self.pieces)
        if self._lengths is None:
            self._lengths = array("I", lengths)
        else:
            self._lengths.extend(lengths)
        self._joined += "".join(self.pieces)
        self.pieces.clear()

    def end(self) -> None:
        """Know that it does not go on."""
        self.live = None
        self.settle()

    def after(self, version: int) -> str:
        """Return what was appended above a version."""
        self.settle()
        lengths = self._lengths or ()
        return self._joined[sum(lengths[: max(0, version - self.first + 1)]) :]


class _Change(msgspec.Struct, frozen=True, array_like=True):
    """What changed of messages, in the two views of a session."""

    visible: list[MessageEntry]
    internal: list[MessageEntry]


_read_change = msgspec.msgpack.Decoder(_Change).decode


class _Changed:
    """One change, encoded: as objects, five of them for a short turn took 6 KB. It is seldom read.

    A text that only ended is no more in it than that.
    """

    __slots__ = ("_encoded", "_several", "version")

    def __init__(self, finished: FinishedDraft) -> None:
        self.version = finished.version
        change = _Change([], [])
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
        self._several = 1 + len(finished.messages) + len(finished.turns)

    @property
    def size(self) -> int:
        """As long as it takes where it is read."""
        return _RECORD_BYTES * self._several + len(self._encoded)

    def read(self) -> _Change:
        return _read_change(self._encoded)


_Record: TypeAlias = _Text | _Changed


class History:
    """The changes in (:attr:`floor`, now] of the current epoch, bounded in bytes."""

    __slots__ = ("_bytes", "_max_bytes", "_records", "_run", "_run_bytes", "_session", "_turns", "floor")

    def __init__(self, *, floor: int, max_bytes: int) -> None:
        """Start empty: a reader at ``floor`` has missed nothing."""
        self.floor = floor
        self._max_bytes = max_bytes
        self._run_bytes = min(_RUN_BYTES, max_bytes // 8)
        self._bytes = 0
        # a list: a deque takes 600 bytes at least, and of this one little is forgotten at a time
        self._records: list[_Record] = []
        self._session: Session | None = None
        """As it was changed last, for all who missed that: what it was before, nobody is told any more."""
        self._turns: list[Turn] = []
        """Likewise; one that was changed again after another one is in it twice."""
        self._run: _Text | None = None
        """The last record, where it is one that deltas may be added to."""

    def covers(self, version: int) -> bool:
        """Say whether everything above ``version`` is held."""
        return version >= self.floor

    def restart(self, floor: int) -> None:
        """Forget everything: an epoch begins."""
        self.floor = floor
        self._records, self._turns = [], []
        self._run = self._session = None
        self._bytes = 0

    def add_delta(self, live: LiveMessage, part_sequence: int, text: str, size: int) -> None:
        """Record a delta, of ``size`` bytes; ``live`` is the message after it. Costs about 0.3 µs."""
        size += _DELTA_BYTES
        run, version = self._run, live.revision
        if (
            run is None
            or run.live is not live
            or run.part_sequence != part_sequence
            or run.version + 1 != version
            or run.size + size > self._run_bytes
        ):
            self._add(run := _Text(live, part_sequence, text, size))
            self._run = run if self._records else None  # one that is longer than all may be is gone again
            return
        run.version = version
        run.updated_at = live.updated_at
        run.size += size
        run.pieces.append(text)
        if len(run.pieces) >= _PIECES:
            run.settle()
        self._bytes += size
        if self._bytes > self._max_bytes:
            self._forget()

    def add_change(self, finished: FinishedDraft) -> None:
        """Record a change."""
        self._session = finished.session or self._session
        for turn in finished.turns:
            if self._turns and self._turns[-1].turn_id == turn.turn_id:
                self._turns.pop()
            self._turns.append(turn)
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
                fold.merge(change.visible, change.internal)
        session = self._session
        turns: dict[str, Turn] = {}
        for turn in self._turns:
            if turn.revision > since:
                turns.pop(turn.turn_id, None)
                turns[turn.turn_id] = turn
        return SyncPayload(
            mode="replay",
            from_version=since,
            epoch=epoch,
            version=version,
            durable=UNSET if durable == version else durable,
            session=UNSET if session is None or session.revision <= since else session,
            turns=list(turns.values()),
            messages=fold.entries(version),
        )

    def _missed(self, since: int) -> list[_Record]:
        missed: list[_Record] = []
        for record in reversed(self._records):
            if record.version <= since:
                break
            missed.append(record)
        return missed[::-1]

    def _add(self, record: _Record) -> None:
        if self._run is not None:
            self._run.end()
            self._run = None
        self._records.append(record)
        self._bytes += record.size
        self._forget()

    def _forget(self) -> None:
        while self._records and self._bytes > self._max_bytes:
            oldest = self._records.pop(0)
            if oldest is self._run:
                self._run = None
            self._bytes -= oldest.size
            self.floor = oldest.version
        while self._turns and self._turns[0].revision <= self.floor:
            self._turns.pop(0)
