"""The merge law: what a client makes of frames, syncs and pages (SPEC 4).

A :class:`Replica` is pure: it is given what came, in order, and says what came of it. Whatever
happens, it is at each moment exactly what the server's session was at one version, as far as its
window reaches. Network, time and retries belong to the client.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from midstream.protocol.calls import Cursor
from midstream.protocol.frames import (
    Change,
    Delta,
    Mark,
    SessionFrame,
    ShortDelta,
    Skip,
    Sync,
    SyncPayload,
)
from midstream.protocol.model import Message, Session, Turn
from midstream.protocol.outcomes import (
    Applied,
    Gap,
    Ignored,
    MessagesDropped,
    Outcome,
    PageOutcome,
    ReplicaChange,
    SessionChanged,
    WasReset,
)
from midstream.protocol.pages import AwaitedPages, earlier_messages
from midstream.protocol.turns import Turns
from midstream.protocol.window import Step, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from msgspec import UnsetType

    from midstream.protocol.calls import Page


class Stage(Enum):
    """How far a replica can be relied on."""

    NEW = "new"
    """No sync has come."""
    RESTORED = "restored"
    """It came from a cache, and counts only after a ``replay`` or ``catchup``."""
    LIVE = "live"
    """It is the session as it was at its version."""
    LOST = "lost"
    """Something is missing that only a ``reset`` can give."""


class SavedReplica(msgspec.Struct, frozen=True, kw_only=True):
    """Replica, window and cursor as one value, for a cache: store it in one write or not at all."""

    session_id: str
    include_internal: bool
    cursor: Cursor
    session: Session
    turns: list[Turn]
    messages: list[Message]
    from_sequence: int | None
    has_more: bool


class Replica:
    """A client's copy of one session, from ``from_sequence`` upward."""

    def __init__(self, session_id: str, *, include_internal: bool = False) -> None:
        """Start empty, before any sync; ``include_internal`` is that of the subscription."""
        self.session_id = session_id
        self.include_internal = include_internal
        self.stage = Stage.NEW
        self.session: Session | None = None
        self.epoch: str | None = None
        self.version = 0
        """The version reached (``last`` in SPEC.md)."""
        self.durable = 0
        """The last committed version at or below ``version``, as far as is known; too low is safe."""
        self.has_more = True
        """Whether there are messages below the window, to be read as pages."""
        self._window = Window(session_id)
        self._turns = Turns()
        self._pages = AwaitedPages()

    @property
    def from_sequence(self) -> int | None:
        """The lower end of the window; None while no messages were given, which a page then does."""
        return self._window.first

    @property
    def turns(self) -> Mapping[str, Turn]:
        """The turns by id: those of the messages, the running one, and the newest 32."""
        return self._turns.by_id

    @property
    def running_turn(self) -> Turn | None:
        """The turn that runs now."""
        running = UNSET if self.session is None else self.session.running_turn_id
        return None if running is UNSET else self._turns.by_id.get(running)

    def messages(self) -> list[Message]:
        """Return the messages of the window, whole, ascending by sequence.

        The same list until something changes; unchanged messages stay the same objects. Not to be
        changed by the caller.
        """
        return self._window.messages()

    def message(self, message_id: str) -> Message | None:
        """Return one message, whole; None where it is not in the window."""
        return self._window.message(message_id)

    def cursor(self) -> Cursor | None:
        """Return what to subscribe with; None before the first sync, and while something is missing."""
        if self.epoch is None or self.stage is Stage.LOST:
            return None
        return Cursor(epoch=self.epoch, version=self.version, durable=self.durable)

    def apply(self, frame: SessionFrame) -> Outcome:
        """Apply the next frame of the subscription.

        Gives :class:`Applied` with what changed, :class:`Ignored`, or a :class:`Gap`, which leaves
        the content as it was. Frames that come before the answer to ``subscribe`` are ignored.
        """
        if isinstance(frame, Sync):
            return self.apply_sync(frame.payload)
        if self.stage is not Stage.LIVE:
            return self._missing() if self.stage is Stage.LOST else Ignored()
        misplaced = self._misplaced(frame)
        if misplaced:
            return misplaced
        if isinstance(frame, (Delta, ShortDelta)):
            return self._apply_delta(frame)
        if isinstance(frame, Change):
            return self._apply_change(frame)
        self.version = frame.version
        return Applied()

    def apply_sync(self, payload: SyncPayload) -> Outcome:
        """Apply a sync: the answer to ``subscribe``, or one that came as a frame."""
        if payload.mode == "reset":
            return self._reset(payload)
        if self.stage in {Stage.NEW, Stage.LOST} or self._is_foreign(payload.session):
            return self._lose(self._missing())
        if payload.version <= self.version:
            self.stage = Stage.LIVE
            return Ignored()
        since = payload.from_version
        if since is UNSET or since > self.version:
            return self._gap(payload.version if since is UNSET else since)
        below = self._first_sequence(payload.session)
        steps = self._window.plan(payload.messages, version=payload.version, since=since, below=below)
        if isinstance(steps, Gap):
            return self._lose(steps)
        self.stage = Stage.LIVE
        self.epoch, self.version, self.durable = payload.epoch, payload.version, payload.committed()
        self._pages.restart(payload.version)
        return self._carry_out(steps, payload.turns, payload.session, durable=self.durable)

    def expect_page(self) -> None:
        """Keep single frames from here on, for a page that is asked for now; then :meth:`merge_page`."""
        self._pages.expect(self.version)

    def forget_page(self) -> None:
        """Say that a page that was expected will not come."""
        self._pages.forget()

    def merge_page(self, page: Page) -> PageOutcome:
        """Merge the answer of ``messages`` (never of ``stored``); nothing changes unless it is MERGED."""
        outcome = self._merge_page(page)
        self._pages.forget()
        return outcome

    def save(self) -> SavedReplica | None:
        """Return everything as one value for a cache; None where there is no cursor."""
        cursor = self.cursor()
        if cursor is None or self.session is None:
            return None
        return SavedReplica(
            session_id=self.session_id,
            include_internal=self.include_internal,
            cursor=cursor,
            session=self.session,
            turns=list(self._turns.by_id.values()),
            messages=self.messages(),
            from_sequence=self.from_sequence,
            has_more=self.has_more,
        )

    @classmethod
    def restore(cls, saved: SavedReplica) -> Replica:
        """Return the replica that was saved; it counts only after a ``replay`` or ``catchup``."""
        replica = cls(saved.session_id, include_internal=saved.include_internal)
        replica.stage = Stage.RESTORED
        replica.session = saved.session
        replica.epoch = saved.cursor.epoch
        replica.version, replica.durable = saved.cursor.version, saved.cursor.durable
        replica.has_more = saved.has_more
        replica._window = Window(saved.session_id, saved.from_sequence)
        replica._window.add(saved.messages)
        replica._turns = Turns(saved.turns)
        return replica

    def _apply_delta(self, frame: Delta | ShortDelta) -> Outcome:
        last = 0 if self.session is None else self.session.message_count
        change = self._window.append(frame, last)
        if isinstance(change, Gap):
            return self._lose(change)
        self.version = frame.version
        self._pages.keep(frame, last)
        return Applied((change,) if change else ())

    def _apply_change(self, frame: Change) -> Outcome:
        content = frame.content
        if self._is_foreign(content.session):
            return self._lose(self._missing())
        below = self._first_sequence(content.session)
        steps = self._window.plan(content.messages, version=frame.version, since=None, below=below)
        if isinstance(steps, Gap):
            return self._lose(steps)
        self.version = frame.version
        if frame.durable:
            self.durable = frame.version
        self._pages.keep(frame, 0)
        return self._carry_out(steps, content.turns, content.session, durable=self.durable)

    def _carry_out(
        self, steps: list[Step], turns: Iterable[Turn], session: Session | UnsetType, *, durable: int
    ) -> Applied:
        changes: list[ReplicaChange] = []
        newer = session is not UNSET and (self.session is None or session.revision > self.session.revision)
        if newer and session is not UNSET:
            self.session = session
            dropped = self._window.drop_below(session.first_sequence)
            if dropped:
                changes.append(MessagesDropped(dropped))
            self._end_of_history(session)
        changes += self._window.carry_out(steps, durable=durable)
        changes += self._turns.take(turns)
        self._turns.drop_old(len(self._window), self._named_turns)
        if newer and session is not UNSET:
            changes.append(SessionChanged(session.revision))
        return Applied(tuple(changes))

    def _reset(self, payload: SyncPayload) -> Outcome:
        session = payload.session
        if session is UNSET or self._is_foreign(session):
            return self._lose(self._missing())
        window = Window(self.session_id, 0)
        steps = window.plan(payload.messages, version=payload.version, since=0, below=session.first_sequence)
        if isinstance(steps, Gap):
            return self._lose(steps)
        window.carry_out(steps, durable=payload.committed())
        self.stage = Stage.LIVE
        self.session = session
        self.epoch, self.version, self.durable = payload.epoch, payload.version, payload.committed()
        self.has_more = payload.has_more is True
        lowest = min((step.entry.sequence for step in steps), default=None)
        window.first = lowest if self.has_more else session.first_sequence
        self._window = window
        self._end_of_history(session)
        self._turns = Turns(payload.turns)
        self._pages.restart(payload.version)
        return Applied((WasReset(),))

    def _merge_page(self, page: Page) -> PageOutcome:
        if self.session is None or self.stage is not Stage.LIVE:
            return PageOutcome.REREAD
        if page.epoch != self.epoch or page.include_internal != self.include_internal:
            return PageOutcome.REREAD
        frames = [] if page.version == self.version else self._pages.above(page.version)
        if frames is None or page.version > self.version:
            return PageOutcome.REREAD
        earlier = earlier_messages(page, self._window, frames, first_sequence=self.session.first_sequence)
        if isinstance(earlier, PageOutcome):
            return earlier
        self._window.join(earlier)
        self.has_more = page.has_more
        self._end_of_history(self.session)
        self._turns.take(page.turns)
        return PageOutcome.MERGED

    def _end_of_history(self, session: Session) -> None:
        """Note where nothing is below the window any more, or nothing is left at all."""
        if self._window.first is None and session.first_sequence > session.message_count:
            self._window.first = session.first_sequence
        if self._window.first is not None and self._window.first <= session.first_sequence:
            self.has_more = False

    def _named_turns(self) -> set[str]:
        running = UNSET if self.session is None else self.session.running_turn_id
        return self._window.turn_ids() | ({running} if running is not UNSET else set())

    def _first_sequence(self, session: Session | UnsetType) -> int:
        """Return below which there is nothing once this session, if it is newer, is taken."""
        held = 0 if self.session is None else self.session.first_sequence
        return held if session is UNSET else max(held, session.first_sequence)

    def _is_foreign(self, session: Session | UnsetType) -> bool:
        return session is not UNSET and session.session_id != self.session_id

    def _misplaced(self, frame: Delta | ShortDelta | Change | Skip | Mark) -> Ignored | Gap | None:
        """Hold the frame against the version reached; None where it is the next."""
        if frame.version <= self.version:
            return Ignored()
        if isinstance(frame, Skip):
            since = frame.from_version
        else:
            since = frame.version - (not isinstance(frame, Mark))
        return self._gap(since) if since > self.version else None

    def _gap(self, reached: int) -> Gap:
        return Gap(f"nothing was received for versions {self.version + 1} to {reached}", keep_cursor=True)

    def _missing(self) -> Gap:
        return Gap("there is nothing to go on from; only a reset helps", keep_cursor=False)

    def _lose(self, gap: Gap) -> Gap:
        if not gap.keep_cursor:
            self.stage = Stage.LOST
        return gap
