"""The replica of a session, and the mutations that tell how it changes (SPEC 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from midstream.client.mutations import Mutation, Payload, ReplicaReset, ResetReason, TextAppended, Variant
from midstream.client.streams import Fanout, Stream
from midstream.protocol.calls import Page
from midstream.protocol.frames import SessionFrame, SyncPayload
from midstream.protocol.merge import Replica
from midstream.protocol.model import Message, Session, Turn
from midstream.protocol.outcomes import (
    Appended,
    Applied,
    MessageChanged,
    MessagesDropped,
    Outcome,
    PageOutcome,
    ReplicaChange,
    SessionChanged,
    TurnChanged,
    WasReset,
)

DEFAULT_MUTATION_LIMIT = 10_000
"""Mutations that wait for one reader: a minute of fast streaming."""


class _Told(NamedTuple):
    """A mutation without what all of a version share."""

    variant: Variant
    created_at: int
    revision: int
    payload: Payload
    message_id: str | None = None
    part_id: str | None = None


class SessionReplica:
    """A replica that tells its readers what changed, after it changed.

    Mutations are made only while somebody reads them.
    """

    def __init__(self, session_id: str, *, include_internal: bool = False) -> None:
        """Begin empty."""
        self.law = Replica(session_id, include_internal=include_internal)
        """The replica itself, by the merge law."""
        self._readers: Fanout[Mutation] = Fanout(DEFAULT_MUTATION_LIMIT)

    @property
    def messages(self) -> list[Message]:
        """The messages of the window, whole, ascending; not to be changed."""
        return self.law.messages()

    @property
    def session(self) -> Session | None:
        """The session's own state; None before the first sync."""
        return self.law.session

    @property
    def held(self) -> int:
        """How many messages the window spans at most: removed and internal ones count too."""
        if self.law.session is None or self.law.from_sequence is None:
            return 0
        return self.law.session.message_count - self.law.from_sequence + 1

    def mutations(self, *, limit: int = DEFAULT_MUTATION_LIMIT) -> Stream[Mutation]:
        """Return a stream of all mutations from now on, of which at most ``limit`` wait."""
        return self._readers.reader(limit=limit, overflow=lambda: self._reset("slow"))

    def apply(self, frame: SessionFrame) -> Outcome:
        """Apply a frame of the subscription."""
        return self._tell(self.law.apply(frame))

    def apply_sync(self, payload: SyncPayload) -> Outcome:
        """Apply the answer to ``subscribe``."""
        return self._tell(self.law.apply_sync(payload))

    def merge_page(self, page: Page) -> PageOutcome:
        """Merge a page that :meth:`Replica.expect_page` announced."""
        outcome = self.law.merge_page(page)
        if outcome is PageOutcome.MERGED and page.items and self._readers:
            self._readers.publish(self._reset("loaded"))
        return outcome

    def end(self, error: Exception | None) -> None:
        """End all streams of mutations."""
        self._readers.end(error)

    def _tell(self, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Applied) and outcome.changes and self._readers:
            told = [mutation for change in outcome.changes for mutation in self._told(change)]
            for index, item in enumerate(told):
                self._readers.publish(self._mutation(item, index if len(told) > 1 else None))
        return outcome

    def _told(self, change: ReplicaChange) -> Iterator[_Told]:
        if isinstance(change, Appended):
            payload = TextAppended(text=change.text)
            place = change.message_id, change.part_id
            yield _Told("delta", change.updated_at, change.revision, payload, *place)
        elif isinstance(change, MessageChanged):
            yield from self._told_of_message(change)
        elif isinstance(change, TurnChanged):
            turn = self.law.turns.get(change.turn_id)
            if turn is not None:  # a sync with many old turns keeps the newest alone
                yield _Told("turn", _time_of(turn), change.revision, turn)
        elif isinstance(change, SessionChanged) and self.session is not None:
            yield _Told("session", self.session.updated_at, change.revision, self.session)
        elif isinstance(change, (WasReset, MessagesDropped)):
            reason: ResetReason = "synced" if isinstance(change, WasReset) else "cleared"
            yield _Told("reset", self._now(), self.law.version, ReplicaReset(reason=reason))

    def _told_of_message(self, change: MessageChanged) -> Iterator[_Told]:
        message = self.law.message(change.message_id)
        if message is None:
            return
        if change.new or change.durable or change.lost or not change.parts:
            yield _Told("message", message.updated_at, change.revision, message, change.message_id)
            return
        for sequence in change.parts:
            part = message.parts[sequence - 1]
            yield _Told("part", message.updated_at, change.revision, part, change.message_id, part.part_id)

    def _reset(self, reason: ResetReason) -> Mutation:
        # no version made it, so its id must not be that of one
        return self._mutation(
            _Told("reset", self._now(), self.law.version, ReplicaReset(reason=reason)), reason
        )

    def _mutation(self, told: _Told, suffix: str | int | None) -> Mutation:
        place = f"{self.law.epoch}:{self.law.version}"
        return Mutation(
            mutation_id=place if suffix is None else f"{place}:{suffix}",
            session_id=self.law.session_id,
            created_at=told.created_at,
            variant=told.variant,
            message_id=told.message_id,
            part_id=told.part_id,
            revision=told.revision,
            payload=told.payload,
        )

    def _now(self) -> int:
        return 0 if self.session is None else self.session.updated_at


def _time_of(turn: Turn) -> int:
    return turn.phase_since if turn.finished_at is UNSET else turn.finished_at
