"""The session of the scripted server: what it was at each version, and the frames that say so (SPEC 2, 3).

Pure. Each change is made by giving whole new values; the frame is what differs. All that ever was is kept, so
that a replica can be held against the version that it says it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import UNSET, structs

from midstream.conformance.clients.differences import entries
from midstream.conformance.clients.endings import done, interrupted
from midstream.conformance.clients.snapshot import Snapshot
from midstream.protocol.calls import Cursor, Page
from midstream.protocol.frames import (
    Change,
    ChangeContent,
    Delta,
    ShortDelta,
    Skip,
    Sync,
    SyncPayload,
)
from midstream.protocol.live import appended
from midstream.protocol.model import (
    Message,
    Part,
    Session,
    StreamState,
    TextPart,
    Turn,
    TurnFailure,
    Visibility,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Mode: TypeAlias = Literal["replay", "catchup", "reset"]
BEGAN: Final = 1_700_000_000_000
"""The server's clock begins here; each version is 7 ms later."""
TICK_MS: Final = 7
_LOST: Final = 100
"""Versions that are left out after a crash: as many may have been published and not stored."""


class Conversation:
    """One session, which changes version by version."""

    def __init__(self, session_id: str = "s1", *, internal: bool = False, channel: int = 1) -> None:
        """Begin with an empty session at version 1; ``internal``: as seen with internal messages."""
        self.session_id = session_id
        self.internal = internal
        self.channel = channel
        self._epochs = 1
        epoch = _epoch(self._epochs)
        session = Session(
            session_id=session_id, revision=1, created_at=BEGAN, updated_at=BEGAN, message_count=0
        )
        self._now = Snapshot(epoch=epoch, version=1, durable=1, session=session, turns={}, messages={})
        self._past = {1: self._now}

    @property
    def now(self) -> Snapshot:
        """The session as it is."""
        return self._now

    @property
    def version(self) -> int:
        """The present version."""
        return self._now.version

    @property
    def last(self) -> Message:
        """The message with the highest sequence."""
        return self._now.messages[max(self._now.messages)]

    def at(self, version: int) -> Snapshot | None:
        """Return what the session was at a version; None where nobody was ever shown it."""
        return self._past.get(version)

    def time(self, version: int | None = None) -> int:
        """Return the server's clock at a version."""
        return BEGAN + TICK_MS * (self._now.version if version is None else version)

    # Changes: each takes a version, and returns the frame that tells it

    def change(
        self,
        *messages: Message,
        turns: Sequence[Turn] = (),
        session: Session | None = None,
        durable: bool = True,
    ) -> Change:
        """Put whole messages, turns and the session's fields; revisions and times are set here."""
        before, version = self._now, self._now.version + 1
        at = self.time(version)
        held = dict(before.messages)
        for message in messages:
            held[message.sequence] = structs.replace(message, revision=version, updated_at=at)
        count = max([before.session.message_count, *held])
        if session is None and count != before.session.message_count:
            session = before.session
        entity = before.session
        if session is not None:
            entity = structs.replace(session, revision=version, updated_at=at, message_count=count)
        named = {turn.turn_id: structs.replace(turn, revision=version) for turn in turns}
        self._enter(
            structs.replace(
                before,
                version=version,
                durable=version if durable else before.durable,
                session=entity,
                turns={**before.turns, **named},
                messages={n: m for n, m in held.items() if n >= entity.first_sequence},
            )
        )
        content = ChangeContent(
            messages=entries(before.messages, self._now.messages, above=before.version, version=version),
            turns=list(named.values()),
            session=UNSET if session is None else entity,
        )
        return Change(self.channel, version, durable, content)

    def user(self, text: str, *, message_id: str | None = None, turn_id: str | None = None) -> Change:
        """Add a user's message."""
        return self.change(
            self.new_message("user", TextPart(text=text), message_id=message_id, turn_id=turn_id)
        )

    def agent(self, *parts: Part, state: StreamState = "streaming", turn_id: str | None = None) -> Change:
        """Add an agent's message, which streams."""
        return self.change(self.new_message("agent", *parts, state=state, turn_id=turn_id))

    def new_message(
        self,
        role: Literal["user", "agent"],
        *parts: Part,
        state: StreamState = "streaming",
        visibility: Visibility = "visible",
        message_id: str | None = None,
        turn_id: str | None = None,
        place: int = 1,
    ) -> Message:
        """Return a message that would be the next, or a later one by ``place``; it is not added."""
        sequence, version = self._now.session.message_count + place, self._now.version + 1
        return Message(
            message_id=message_id or f"{self.session_id}_m{sequence}",
            session_id=self.session_id,
            turn_id=UNSET if turn_id is None else turn_id,
            sequence=sequence,
            revision=version,
            role=role,
            visibility=visibility,
            created_at=self.time(version),
            updated_at=self.time(version),
            state=state if role == "agent" else UNSET,
            parts=[
                structs.replace(part, part_id=part.part_id or f"m{sequence}_p{number}", sequence=number)
                for number, part in enumerate(parts, 1)
            ],
        )

    def put(self, *parts: Part, sequence: int | None = None, durable: bool = False) -> Change:
        """Add parts to a message, or replace those of the same ``sequence``."""
        message = self.message(sequence)
        held = list(message.parts)
        for part in parts:
            number = part.sequence or len(held) + 1
            part_id = part.part_id or f"m{message.sequence}_p{number}"
            held[number - 1 : number] = [structs.replace(part, part_id=part_id, sequence=number)]
        return self.change(structs.replace(message, parts=held), durable=durable)

    def trim(self, part_count: int, *, sequence: int | None = None) -> Change:
        """Drop the parts above ``part_count``, as an abandoned step does (SPEC 8.3)."""
        message = self.message(sequence)
        return self.change(structs.replace(message, parts=message.parts[:part_count]))

    def finish(self, sequence: int | None = None) -> Change:
        """End a message and its open texts."""
        return self.change(done(self.message(sequence)))

    def title(self, title: str) -> Change:
        """Give the session a title: the smallest change that is seen."""
        return self.change(session=structs.replace(self._now.session, title=title))

    def begin_turn(self, turn_id: str, *messages: Message) -> Change:
        """Begin a turn, with the message that starts it."""
        at = self.time(self._now.version + 1)
        turn = Turn(
            turn_id=turn_id, revision=0, state="running", phase="starting", phase_since=at, started_at=at
        )
        starts = {message.message_id for message in messages}
        queue = [waiting for waiting in self._now.session.queue if waiting not in starts]
        session = structs.replace(self._now.session, running_turn_id=turn_id, queue=queue)
        return self.change(*messages, turns=[turn], session=session)

    def end_turn(self, turn_id: str, state: Literal["completed", "stopped"] = "completed") -> Change:
        """End a turn, and the messages that stream."""
        at = self.time(self._now.version + 1)
        turn = structs.replace(self._now.turns[turn_id], state=state, finished_at=at)
        session = structs.replace(self._now.session, running_turn_id=UNSET)
        open_ones = [done(message) for message in self._now.messages.values() if message.state == "streaming"]
        return self.change(*open_ones, turns=[turn], session=session)

    def clear(self) -> Change:
        """Remove all messages (SPEC 10.1)."""
        session = self._now.session
        return self.change(session=structs.replace(session, first_sequence=session.message_count + 1))

    def append(self, text: str, *, sequence: int | None = None, part: int | None = None) -> Delta:
        """Append text to a part, by default the last of the last message; tell it by ``d``."""
        message = self.message(sequence)
        number = part or len(message.parts)
        grown = self._grow(message, number, text)
        return Delta(
            self.channel, grown.revision, grown.updated_at - grown.created_at, grown.sequence, number, text
        )

    def short(self, text: str) -> ShortDelta:
        """Append text to the last part of the last message; tell it by a short delta."""
        before = self.last
        grown = self._grow(before, len(before.parts), text)
        return ShortDelta(self.channel, grown.revision, grown.updated_at - before.updated_at, text)

    def skip(self, versions: int = 1) -> Skip:
        """Let versions pass that show nothing in this view."""
        before = self._now.version
        for version in range(before + 1, before + versions + 1):
            self._enter(structs.replace(self._now, version=version, durable=version))
        return Skip(self.channel, before, before + versions)

    def internal_message(self, text: str) -> Change:
        """Add an internal message; a view without it is told of the session alone (SPEC 8.7)."""
        message = self.new_message("user", TextPart(text=text), visibility="internal")
        change = self.change(message)
        if self.internal:
            return change
        seen = {n: m for n, m in self._now.messages.items() if n != message.sequence}
        self._enter(structs.replace(self._now, messages=seen))
        content = ChangeContent(session=self._now.session)
        return Change(self.channel, change.version, change.durable, content)

    # What ends an epoch

    def crash(self) -> None:
        """Lose what was not committed, and repair what was cut off, as after ``kill -9`` (SPEC 9)."""
        stored = self._past[self._now.durable]
        version = self._now.version + _LOST
        self._epochs += 1
        at = self.time(version)
        cut = {n for n, message in stored.messages.items() if message.state == "streaming"}
        messages = {
            n: structs.replace(interrupted(message), revision=version, updated_at=at) if n in cut else message
            for n, message in stored.messages.items()
        }
        failure = TurnFailure(code="runtime_interrupted", message="The server ended.")
        turns = {
            name: structs.replace(turn, state="failed", finished_at=at, error=failure, revision=version)
            if turn.state == "running"
            else turn
            for name, turn in stored.turns.items()
        }
        session = structs.replace(stored.session, revision=version, updated_at=at, running_turn_id=UNSET)
        self._enter(
            Snapshot(
                epoch=_epoch(self._epochs),
                version=version,
                durable=version,
                session=session,
                turns=turns,
                messages=messages,
            )
        )

    def restore(self, version: int) -> None:
        """Become what it was at ``version``, under another epoch: a backup was restored (SPEC 5.3)."""
        self._epochs += 1
        old = self._past[version]
        self._past = {number: held for number, held in self._past.items() if number <= version}
        self._enter(structs.replace(old, epoch=_epoch(self._epochs), durable=version))

    def new_epoch(self, title: str) -> Sync:
        """Begin an epoch with a change that is told as a sync (SPEC 5.4)."""
        before = self._now.version
        self._epochs += 1
        self._now = structs.replace(self._now, epoch=_epoch(self._epochs))
        self.title(title)
        return Sync(self.channel, self.payload("catchup", before))

    # What is shown when it is asked for

    def sync(self, cursor: Cursor | None, *, limit: int = 50, mode: Mode | None = None) -> SyncPayload:
        """Return the sync for a cursor, in the mode of SPEC 5.1 or in ``mode``."""
        if cursor is None or cursor.version not in self._past:
            return self.payload("reset", limit=limit)
        same = cursor.epoch == self._now.epoch
        return self.payload(mode or ("replay" if same else "catchup"), cursor.version, limit=limit)

    def payload(self, mode: Mode, since: int = 0, *, limit: int = 50) -> SyncPayload:
        """Return a sync of this mode, from the version ``since`` to the present one."""
        now = self._now
        if mode == "reset":
            return self._reset(limit)
        before = self._past[since]
        floor = now.session.first_sequence
        held = {n: m for n, m in before.messages.items() if n >= floor}
        return SyncPayload(
            mode=mode,
            from_version=since,
            epoch=now.epoch,
            version=now.version,
            durable=UNSET if now.durable == now.version else now.durable,
            session=now.session if now.session.revision > since else UNSET,
            turns=[turn for turn in now.turns.values() if turn.revision > since],
            messages=entries(
                held, now.messages, above=since, version=now.version, grown=mode == "replay", sync=True
            ),
        )

    def page(self, limit: int, before: int | None, *, version: int | None = None) -> Page:
        """Return a page as ``messages`` does, now or as it was at ``version``."""
        shown = self._now if version is None else self._past[version]
        below = [m for n, m in sorted(shown.messages.items()) if before is None or n < before]
        items = below[-limit:]
        has_more = len(below) > limit
        names = {message.turn_id for message in items} | {shown.session.running_turn_id}
        return Page(
            items=items,
            total=shown.session.message_count,
            start_sequence=items[0].sequence if items else UNSET,
            end_sequence=items[-1].sequence if items else UNSET,
            next_before_sequence=items[0].sequence if has_more else UNSET,
            has_more=has_more,
            include_internal=self.internal,
            before_sequence=UNSET if before is None else before,
            turns=[turn for name, turn in shown.turns.items() if name in names],
            epoch=shown.epoch,
            version=shown.version,
        )

    def message(self, sequence: int | None = None) -> Message:
        """Return a message as it is now, by default the last."""
        return self.last if sequence is None else self._now.messages[sequence]

    def _reset(self, limit: int) -> SyncPayload:
        now = self._now
        shown = [message for _, message in sorted(now.messages.items())]
        given = shown[-limit:] if limit else []
        has_more = len(shown) > len(given)
        names = {message.turn_id for message in given} | {now.session.running_turn_id}
        return SyncPayload(
            mode="reset",
            epoch=now.epoch,
            version=now.version,
            durable=UNSET if now.durable == now.version else now.durable,
            session=now.session,
            turns=[turn for name, turn in now.turns.items() if name in names],
            messages=entries({}, {m.sequence: m for m in given}, above=0, version=now.version, sync=True),
            next_before_sequence=given[0].sequence if given and has_more else UNSET,
            has_more=has_more,
        )

    def _grow(self, message: Message, number: int, text: str) -> Message:
        version = self._now.version + 1
        parts = list(message.parts)
        parts[number - 1] = appended(parts[number - 1], text)
        grown = structs.replace(message, parts=parts, revision=version, updated_at=self.time(version))
        messages = {**self._now.messages, message.sequence: grown}
        self._enter(structs.replace(self._now, version=version, messages=messages))
        return grown

    def _enter(self, snapshot: Snapshot) -> None:
        self._now = snapshot
        self._past[snapshot.version] = snapshot


def _epoch(number: int) -> str:
    return f"{0xE000000000000000 + number:016x}"
