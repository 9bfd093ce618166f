"""A session's server, reduced to what a reader can see: the oracle of the merge law's tests.

It remembers the whole state at every version, so what a replica must hold at a version is looked
up, not computed; and it makes frames and syncs by comparing two remembered states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, structs

from midstream.protocol.calls import Cursor, Page
from midstream.protocol.frames import (
    Change,
    ChangeContent,
    Delta,
    MessageEntry,
    SessionFrame,
    ShortDelta,
    Skip,
    SyncPayload,
)
from midstream.protocol.live import can_append
from midstream.protocol.model import (
    ErrorPart,
    Message,
    Part,
    ReasoningPart,
    Session,
    TextPart,
    ToolPart,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.model import Visibility

CHANNEL = 7
NAME = "s"
_OWN = ("message_id", "session_id", "turn_id", "role", "visibility", "created_at", "origin", "state")


class State(NamedTuple):
    """Everything at one version."""

    epoch: str
    session: Session
    messages: dict[int, Message]
    turns: dict[str, Turn]

    def seen(self, *, internal: bool, first: int = 0) -> list[Message]:
        """The messages that a reader may see, from a sequence upward."""
        shown = (self.messages[sequence] for sequence in sorted(self.messages) if sequence >= first)
        return [message for message in shown if internal or message.visibility == "visible"]


def text_of(part: Part) -> str | None:
    """The text that deltas grow; None where they cannot."""
    if isinstance(part, (TextPart, ReasoningPart)):
        return part.text
    return (part.input_text or "") if isinstance(part, ToolPart) else None


def with_text(part: Part, text: str) -> Part:
    """The part with another text."""
    return structs.replace(part, **{"input_text" if isinstance(part, ToolPart) else "text": text})


def entry(
    old: Message | None, new: Message, *, sync: int | None = None, joined: bool = False
) -> MessageEntry:
    """What a frame says of a message that was ``old`` to its reader.

    ``sync`` is the version of a sync; ``joined`` sends grown text as text, and a text's end as such.
    """
    own = {name: getattr(new, name) for name in _OWN if old is None or name == "state"}
    made = MessageEntry(
        sequence=new.sequence,
        updated_at=new.updated_at,
        part_count=len(new.parts),
        **own,
    )
    parts: list[Part] = []
    appends: list[tuple[int, str]] = []
    ended: list[int] = []
    before = {} if old is None else {part.sequence: part for part in old.parts}
    for part in new.parts:
        was = before.get(part.sequence)
        if was == part:
            continue
        unended = (
            structs.replace(part, state="streaming") if isinstance(part, (TextPart, ReasoningPart)) else part
        )
        grown = None if was is None or not joined or not can_append(was) else _growth(was, unended)
        if grown is None:
            parts.append(part)
            continue
        if grown:
            appends.append((part.sequence, grown))
        if unended != part:
            ended.append(part.sequence)
    revision = UNSET if sync is None or new.revision == sync else new.revision
    return structs.replace(made, parts=parts, appends=appends, ended=ended, revision=revision)


def _growth(was: Part, part: Part) -> str | None:
    before, after = text_of(was), text_of(part)
    if before is None or after is None or type(was) is not type(part) or not after.startswith(before):
        return None
    return after[len(before) :] if with_text(was, after) == part else None


class SessionModel:
    """One session and all its past."""

    def __init__(self) -> None:
        self.epoch, self.version, self.durable, self.now = "e1", 1, 1, 1_000
        session = Session(
            session_id=NAME,
            revision=1,
            metadata={},
            created_at=1_000,
            updated_at=1_000,
            first_sequence=1,
            message_count=0,
            queue=[],
            pending_interactions=0,
        )
        self.state = State("e1", session, {}, {})
        self.stored = self.state
        self.states = {1: self.state}
        self.frames: dict[bool, list[SessionFrame]] = {False: [], True: []}
        """What each kind of reader is sent: without internal messages, and with them."""

    def publish(
        self,
        *,
        messages: Iterable[Message] = (),
        turns: Iterable[Turn] = (),
        session: Session | None = None,
        durable: bool = True,
        delta: tuple[int, int, str] | None = None,
    ) -> None:
        """Make one change: the next version, its state, and its frames."""
        self.version += 1
        self.now += self.version % 3
        old = self.state
        changed = {
            m.sequence: structs.replace(m, revision=self.version, updated_at=self.now) for m in messages
        }
        now = session and structs.replace(session, revision=self.version)
        first = (now or old.session).first_sequence
        kept = {sequence: m for sequence, m in (old.messages | changed).items() if sequence >= first}
        new_turns = {turn.turn_id: structs.replace(turn, revision=self.version) for turn in turns}
        self.state = State(self.epoch, now or old.session, kept, old.turns | new_turns)
        self.states[self.version] = self.state
        if durable:
            self.stored, self.durable = self.state, self.version
        for internal in (False, True):
            shown = [m for m in changed.values() if internal or m.visibility == "visible"]
            self.frames[internal].append(
                self._frame(old, shown, new_turns, now, durable=durable, delta=delta)
            )

    def _frame(
        self,
        old: State,
        shown: list[Message],
        turns: dict[str, Turn],
        session: Session | None,
        *,
        durable: bool,
        delta: tuple[int, int, str] | None,
    ) -> SessionFrame:
        if delta and shown:
            sequence, part, text = delta
            is_last = (sequence, part) == (old.session.message_count, len(shown[0].parts))
            if is_last and self.version % 4:  # the long form is as good
                return ShortDelta(CHANNEL, self.version, self.now - old.messages[sequence].updated_at, text)
            elapsed = self.now - shown[0].created_at
            return Delta(CHANNEL, self.version, elapsed, sequence, part, text)
        if not shown and not turns and session is None:
            return Skip(CHANNEL, self.version - 1, self.version)
        content = ChangeContent(
            messages=[entry(old.messages.get(m.sequence), m) for m in shown],
            turns=list(turns.values()),
            session=session or UNSET,
        )
        return Change(CHANNEL, self.version, durable, content)

    def add(self, role: str, visibility: Visibility, parts: list[Part], turn_id: str | None = None) -> int:
        """Write a new message and return its sequence."""
        sequence = self.state.session.message_count + 1
        message = Message(
            message_id=f"m{sequence}",
            session_id=NAME,
            turn_id=turn_id or UNSET,
            sequence=sequence,
            revision=0,
            role="user" if role == "user" else "agent",
            visibility=visibility,
            created_at=self.now,
            updated_at=self.now,
            state=UNSET if role == "user" else "streaming",
            parts=parts,
        )
        count = structs.replace(self.state.session, message_count=sequence)
        self.publish(messages=[message], session=count)
        return sequence

    def grow(self, sequence: int, part_sequence: int, text: str) -> None:
        """Stream text into a part."""
        message = self.state.messages[sequence]
        part = message.parts[part_sequence - 1]
        longer = with_text(part, (text_of(part) or "") + text)
        parts = [longer if p.sequence == part_sequence else p for p in message.parts]
        self.publish(
            messages=[structs.replace(message, parts=parts)],
            durable=False,
            delta=(sequence, part_sequence, text),
        )

    def restart(self, *, clean: bool) -> None:
        """End the epoch, frames not yet sent included, and begin the next with a change.

        After a crash only what was committed is left. The messages that streamed are closed, and
        those that lost something get the new revision.
        """
        live = self.state.messages
        if clean:
            self.stored, self.durable = self.state, self.version
        else:
            self.version += 100
        self.state = self.stored
        self.epoch = f"e{int(self.epoch[1:]) + 1}"
        changed = [
            self._closed(m) if m.state == "streaming" else m
            for m in self.stored.messages.values()
            if m.state == "streaming" or m.revision != live[m.sequence].revision
        ]
        self.publish(messages=changed, session=self.stored.session)
        self.frames = {False: [], True: []}

    def _closed(self, message: Message) -> Message:
        failure = ErrorPart(
            part_id=f"x{self.version}",
            sequence=len(message.parts) + 1,
            scope="turn",
            code="runtime_interrupted",
            message="The server stopped.",
            recoverable=True,
        )
        parts = [structs.replace(p, state="done") if isinstance(p, TextPart) else p for p in message.parts]
        return structs.replace(message, state="done", parts=[*parts, failure])

    def sync(self, cursor: Cursor, *, internal: bool) -> SyncPayload:
        """Say what is new since a cursor: joined in the same epoch, else as changed parts."""
        then, now = self.states[cursor.version], self.state
        same = then.epoch == now.epoch
        old = {m.sequence: m for m in then.seen(internal=internal)}
        return SyncPayload(
            mode="replay" if same else "catchup",
            from_version=cursor.version,
            epoch=self.epoch,
            version=self.version,
            durable=UNSET if self.durable == self.version else self.durable,
            session=now.session if now.session.revision > cursor.version else UNSET,
            turns=[turn for turn in now.turns.values() if turn.revision > cursor.version],
            messages=[
                entry(old.get(m.sequence), m, sync=self.version, joined=same)
                for m in now.seen(internal=internal)
                if m.revision > cursor.version
            ],
        )

    def reset(self, *, internal: bool, limit: int) -> SyncPayload:
        """Give the newest messages, or none."""
        shown = self.state.seen(internal=internal)
        newest = shown[-limit:] if limit else []
        return SyncPayload(
            mode="reset",
            epoch=self.epoch,
            version=self.version,
            durable=self.durable,
            session=self.state.session,
            turns=list(self.state.turns.values()),
            messages=[entry(None, m, sync=self.version) for m in newest],
            has_more=len(newest) < len(shown),
        )

    def page(self, before: int | None, *, internal: bool, limit: int) -> Page:
        """Read a page of whole messages."""
        shown = [m for m in self.state.seen(internal=internal) if before is None or m.sequence < before]
        items = shown[-limit:]
        return Page(
            items=items,
            total=self.state.session.message_count,
            start_sequence=items[0].sequence if items else UNSET,
            end_sequence=items[-1].sequence if items else UNSET,
            has_more=len(items) < len(shown),
            include_internal=internal,
            before_sequence=before or UNSET,
            turns=list(self.state.turns.values()),
            epoch=self.epoch,
            version=self.version,
        )
