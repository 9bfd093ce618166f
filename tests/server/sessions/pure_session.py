"""A session without store, loop and time: what the pure modules decide, carried out in memory.

The "store" is what a commit would write, kept in dictionaries, so that a crash is a fresh start from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.limits import DEFAULT_LIMITS, Limits
from midstream.protocol.model import Message, Part, Session, TextPart, Turn
from midstream.server.sessions.draft import Draft
from midstream.server.sessions.projection import FinishedDraft, Place, Projection
from midstream.server.sessions.stream import Stream
from midstream.server.sessions.ticks import GrowingPart, size_of
from midstream.server.sessions.versions import Versions
from midstream.server.sessions.writes import session_write
from midstream.server.storage.records import (
    InputRow,
    LedgerRow,
    LoadedSession,
    MessageRow,
    PartRow,
    SessionWrite,
    StoredMessage,
)

if TYPE_CHECKING:
    from midstream.protocol.calls import Delivery

NOW = 1_700_000_000_000
SESSION_ID = "s"
CHANNEL = 5


class CountedIds:
    """Ids that count up, so that a test can tell them: ``turn_1``, ``msg_2``, epoch ``…0003``."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, kind: str) -> str:
        """The kind and the next number."""
        self._count += 1
        return f"{kind}_{self._count}"

    def epoch(self) -> str:
        """The next number as 16 hex digits."""
        self._count += 1
        return f"{self._count:016x}"


def new_ledger(*, generation: int = 1) -> LedgerRow:
    """The ledger of a session that was made by the owner ``generation`` and not touched since."""
    return LedgerRow(
        version=1,
        ceiling=1,
        epoch="first",
        generation=generation,
        dirty=False,
        cleared_version=0,
        last_time=NOW,
    )


def new_session() -> Session:
    """A session without messages, at version 1."""
    return Session(
        session_id=SESSION_ID,
        revision=1,
        metadata={},
        created_at=NOW,
        updated_at=NOW,
        first_sequence=1,
        message_count=0,
        queue=[],
        pending_interactions=0,
    )


def new_input(
    message_id: str = "m", *, delivery: Delivery = "auto", subject: str = "ann", order: int = 1
) -> InputRow:
    """An accepted input that waits, with one text."""
    return InputRow(
        message_id=message_id,
        content_hash=f"hash of {message_id}",
        subject=subject,
        delivery=delivery,
        state="queued",
        turn_id=None,
        accepted=order,
        parts=[TextPart(text=f"text of {message_id}")],
    )


class PureStore:
    """What commits wrote, by key."""

    def __init__(self) -> None:
        self.ledger = new_ledger()
        self.session = new_session()
        self.messages: dict[int, MessageRow] = {}
        self.parts: dict[tuple[int, int], PartRow] = {}
        self.turns: dict[str, Turn] = {}
        self.inputs: dict[str, InputRow] = {}

    def write(self, write: SessionWrite) -> None:
        """Take one commit."""
        self.ledger = write.ledger
        self.session = write.session or self.session
        for row in write.messages:
            self.messages[row.head.sequence] = row
            gone = [key for key in self.parts if key[0] == row.head.sequence and key[1] > row.part_count]
            for key in gone:
                del self.parts[key]
        self.parts |= {part[:2]: part for part in write.parts}
        self.turns |= {turn.turn_id: turn for turn in write.turns}
        self.inputs |= {item.message_id: item for item in write.inputs}

    def stored_message(self, sequence: int) -> StoredMessage:
        """One message as it would be read."""
        row = self.messages[sequence]
        parts = [self.parts[sequence, number] for number in range(1, row.part_count + 1)]
        return StoredMessage(
            head=structs.replace(
                row.head, parts=cast("list[Part]", [msgspec.Raw(part[3]) for part in parts])
            ),
            created_version=row.created_version,
            part_revisions=[part[2] for part in parts],
            size=sum(len(part[3]) for part in parts),
        )

    def load(self) -> LoadedSession:
        """What a loop would start from."""
        queue = sorted(
            (item for item in self.inputs.values() if item.state == "queued"),
            key=lambda item: item.accepted,
        )
        running = self.session.running_turn_id
        return LoadedSession(
            session_no=1,
            session=structs.replace(self.session, queue=[item.message_id for item in queue]),
            ledger=self.ledger,
            turn=None if running is UNSET else self.turns[running],
            open_messages=[
                self.stored_message(number) for number, row in sorted(self.messages.items()) if row.is_open
            ],
            queue=queue,
        )


class PureSession:
    """One load of one session."""

    def __init__(
        self,
        store: PureStore | None = None,
        *,
        ids: CountedIds | None = None,
        generation: int = 1,
        limits: Limits = DEFAULT_LIMITS,
        history_bytes: int = 1024 * 1024,
    ) -> None:
        self.store = store or PureStore()
        self.ids = ids or CountedIds()
        self.limits = limits
        self.now = NOW
        loaded = self.store.load()
        self.versions = Versions(loaded.ledger, generation=generation, new_epoch=self.ids.epoch())
        self.projection = Projection(loaded)
        self.stream = Stream(CHANNEL, self.projection, self.versions, history_bytes=history_bytes)

    def draft(self) -> Draft:
        """Begin a change, a millisecond after the last one."""
        self.now = self.versions.stamp(self.now + 1)
        return Draft(self.projection, now=self.now, ids=self.ids, limits=self.limits)

    def commit(self, draft: Draft) -> FinishedDraft:
        """Store a change, then publish it."""
        before, begins = self.versions.published, self.versions.begins_epoch
        ledger, ended = self.versions.next_row(clear=draft.clears)
        finished = draft.finish(ledger.version)
        self.store.write(session_write(1, self.projection, finished, ledger=ledger, epoch_end=ended))
        self.versions.committed(ledger)
        self.stream.publish_stored(finished, begins_epoch=begins, before=before)
        return finished

    def show(self, draft: Draft) -> FinishedDraft:
        """Publish a change that the next commit of its message stores."""
        finished = draft.finish(self.versions.take())
        self.stream.publish_live(finished)
        return finished

    def growing(self, sequence: int, part_sequence: int) -> GrowingPart:
        """A part that takes text."""
        part_id = self.projection.open[sequence].live.part_id(part_sequence)
        part = GrowingPart(Place(sequence, part_sequence, part_id))
        assert self.projection.accepts(part)
        return part

    def say(self, sequence: int, part_sequence: int, text: str) -> None:
        """Publish a delta."""
        self.now = self.versions.stamp(self.now + 1)
        self.stream.publish_delta(self.growing(sequence, part_sequence), text, size_of(text), self.now)
        self.stream.send()

    def message(self, sequence: int) -> Message:
        """One message as clients see it."""
        opened = self.projection.open.get(sequence)
        if opened is not None:
            return opened.live.message()
        stored = self.store.stored_message(sequence)
        parts = [msgspec.msgpack.decode(part, type=Part) for part in stored.parts]
        return structs.replace(stored.head, parts=parts)

    def messages(self) -> list[Message]:
        """All messages as clients see them."""
        first, last = self.projection.session.first_sequence, self.projection.session.message_count
        return [self.message(sequence) for sequence in range(first, last + 1)]


def streaming_text(text: str = "") -> TextPart:
    """A text that grows."""
    return TextPart(text=text, state="streaming")


def with_open_message(*, limits: Limits = DEFAULT_LIMITS) -> tuple[PureSession, int]:
    """A session whose agent message streams, with one open text, all stored."""
    session = PureSession(limits=limits)
    draft = session.draft()
    sequence = draft.start_message("agent", turn_id="turn")
    draft.add_part(sequence, streaming_text())
    session.commit(draft)
    return session, sequence


def snapshot(session: PureSession) -> bytes:
    """All that anybody could see, as bytes."""
    projection = session.projection
    seen = (
        projection.session,
        projection.turn,
        [item.message_id for item in projection.queue],
        session.messages(),
        session.versions.published,
    )
    return msgspec.msgpack.encode(seen)
