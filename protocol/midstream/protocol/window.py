"""The messages that a replica holds: one contiguous range, and how entries merge into it (SPEC 4.4).

Whatever changes several messages is planned first, which changes nothing, and then carried out
whole: so a reader never sees half of it, and a gap leaves everything as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.frames import ShortDelta
from midstream.protocol.live import LiveMessage
from midstream.protocol.model import Message, ToolPart
from midstream.protocol.outcomes import Appended, Gap, MessageChanged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.frames import Delta, MessageEntry

_REQUIRED = ("message_id", "session_id", "role", "visibility", "created_at")
_OWN_FIELDS = ("session_id", "turn_id", "role", "visibility", "created_at", "updated_at", "origin", "state")


class Step(msgspec.Struct, frozen=True):
    """What is to be done with one message: a whole new one, or an entry for one that is held."""

    message_id: str
    entry: MessageEntry
    revision: int
    live: LiveMessage | None


def complete(entry: MessageEntry, revision: int) -> Message | None:
    """Return the whole message that the entry gives, or None where it does not give all of it."""
    if any(getattr(entry, name) is UNSET for name in _REQUIRED) or entry.appends or entry.ended:
        return None
    parts = sorted(entry.parts, key=lambda part: part.sequence)
    if [part.sequence for part in parts] != list(range(1, entry.part_count + 1)):
        return None
    own = {name: getattr(entry, name) for name in (*_REQUIRED, *_OWN_FIELDS)}
    return Message(sequence=entry.sequence, revision=revision, parts=parts, **own)


class Window:
    """Messages by sequence, from ``first`` upward; with ``first`` None the window is not open yet.

    ``end`` is the sequence above the last, where the window is one that is to be joined to another.
    """

    def __init__(self, session_id: str, first: int | None = None, end: int | None = None) -> None:
        """Start without messages."""
        self.session_id = session_id
        self.first = first
        self._end = end
        self._live: dict[int, LiveMessage] = {}
        self._sequences: dict[str, int] = {}
        self._snapshot: list[Message] | None = None

    def __len__(self) -> int:
        return len(self._live)

    def turn_ids(self) -> set[str]:
        """Return the ids of the turns that the messages name."""
        named = {live.head.turn_id for live in self._live.values()}
        return {turn_id for turn_id in named if turn_id is not UNSET}

    def messages(self) -> list[Message]:
        """Return the messages, whole and ascending: the same list until something changes."""
        if self._snapshot is None:
            self._snapshot = [self._live[sequence].message() for sequence in sorted(self._live)]
        return self._snapshot

    def message(self, message_id: str) -> Message | None:
        """Return a message, whole, or None where it is not held."""
        sequence = self._sequences.get(message_id)
        return None if sequence is None else self._live[sequence].message()

    def covers(self, sequence: int) -> bool:
        """Say whether a message of this sequence, if there is one, must be held."""
        return (
            self.first is not None and self.first <= sequence and (self._end is None or sequence < self._end)
        )

    def add(self, messages: Iterable[Message]) -> None:
        """Hold these whole messages too."""
        for message in messages:
            self._live[message.sequence] = LiveMessage(message)
            self._sequences[message.message_id] = message.sequence
        self._snapshot = None

    def join(self, earlier: Window) -> None:
        """Take over the messages of the window that ends where this one begins, and its lower end."""
        self._live = earlier._live | self._live
        self._sequences = earlier._sequences | self._sequences
        self.first = earlier.first
        self._snapshot = None

    def drop_below(self, first: int) -> tuple[str, ...]:
        """Move the lower end up to ``first``, and return the ids of the messages that left."""
        gone = [sequence for sequence in self._live if sequence < first]
        ids = tuple(self._live.pop(sequence).head.message_id for sequence in sorted(gone))
        for message_id in ids:
            del self._sequences[message_id]
        if self.first is not None:
            self.first = max(self.first, first)
        if ids:
            self._snapshot = None
        return ids

    def append(self, delta: Delta | ShortDelta, last: int) -> Appended | Gap | None:
        """Apply a delta; None where the message is below the window or newer than the delta.

        ``last`` is the sequence of the session's last message, which a short one belongs to.
        """
        sequence = last if isinstance(delta, ShortDelta) else delta.message_sequence
        live = self._live.get(sequence)
        if live is None:
            return (
                Gap(f"a delta to message {sequence}, which is unknown", keep_cursor=False)
                if self.covers(sequence)
                else None
            )
        head, version, text = live.head, delta.version, delta.text
        if version <= head.revision:
            return None
        if isinstance(delta, ShortDelta):
            part, updated_at = live.part_count, head.updated_at + delta.step
        else:
            part, updated_at = delta.part_sequence, head.created_at + delta.elapsed
        if not live.accepts(part):
            return Gap(f"a delta to part {part} of message {sequence}, which cannot grow", keep_cursor=False)
        live.append(part, text, revision=version, updated_at=updated_at)
        self._snapshot = None
        return Appended(head.message_id, live.part_id(part), sequence, part, version, updated_at, text)

    def plan(
        self, entries: Iterable[MessageEntry], *, version: int, since: int | None, below: int
    ) -> list[Step] | Gap:
        """Find what the entries would do, or why they cannot be applied; changes nothing.

        ``version`` is that of the frame. ``since`` is the version that a sync starts from, whose
        entries may have a revision of their own; None for a change. Messages below ``below`` are
        ignored, as those below the window are.
        """
        steps: list[Step] = []
        seen: set[int] = set()
        for entry in entries:
            revision = version if since is None or entry.revision is UNSET else entry.revision
            if entry.sequence in seen:
                return Gap(f"message {entry.sequence} stands twice", keep_cursor=False)
            seen.add(entry.sequence)
            if not self.covers(entry.sequence) or entry.sequence < below:
                continue
            live = self._live.get(entry.sequence)
            if live is not None and revision <= live.head.revision:
                continue
            problem = self._misfit(entry, live, revision=revision, since=since)
            if problem:
                return problem
            message_id = live.head.message_id if live else entry.message_id
            steps.append(Step(message_id or "", entry, revision, live))
        return steps

    def carry_out(self, steps: list[Step], *, durable: int) -> list[Appended | MessageChanged]:
        """Do what was planned, and return what changed; ``durable`` is the last committed version."""
        changes: list[Appended | MessageChanged] = []
        for step in steps:
            if step.live is None:
                message = complete(step.entry, step.revision)
                if message is not None:  # the plan proved it
                    self.add([message])
                parts = tuple(range(1, step.entry.part_count + 1))
                changes.append(_changed(step, parts, new=True, durable=durable))
            else:
                changes.extend(_merge(step, step.live, durable=durable))
        if steps:
            self._snapshot = None
        return changes

    def _misfit(
        self, entry: MessageEntry, live: LiveMessage | None, *, revision: int, since: int | None
    ) -> Gap | None:
        name = f"message {entry.sequence}"
        if entry.session_id is not UNSET and entry.session_id != self.session_id:
            return Gap(f"{name} is of session {entry.session_id!r}", keep_cursor=False)
        if entry.message_id and self._sequences.get(entry.message_id, entry.sequence) != entry.sequence:
            return Gap(f"{name} has the id of another message", keep_cursor=False)
        if live is not None:
            return _misfit_of_parts(entry, live, name, since=since)
        whole = complete(entry, revision) is not None
        return None if whole else Gap(f"a part of {name}, which is unknown", keep_cursor=False)


def _misfit_of_parts(entry: MessageEntry, live: LiveMessage, name: str, *, since: int | None) -> Gap | None:
    if entry.message_id is not UNSET and live.head.message_id != entry.message_id:
        return Gap(f"{name} has another id", keep_cursor=False)
    if (entry.appends or entry.ended) and (since is None or live.head.revision > since):
        return Gap(f"text for {name} that begins below its revision", keep_cursor=True)
    whole = {part.sequence for part in entry.parts}
    for sequence in (*(sequence for sequence, _ in entry.appends), *entry.ended):
        if sequence in whole or sequence > entry.part_count or not live.accepts(sequence):
            return Gap(f"text for part {sequence} of {name}, which cannot grow", keep_cursor=False)
    if any(isinstance(live.part(sequence), ToolPart) for sequence in entry.ended):
        return Gap(f"a tool call of {name} that ends like a text", keep_cursor=False)
    problem = live.misfit(entry.parts, entry.part_count)
    return Gap(f"{name}: {problem}", keep_cursor=False) if problem else None


def _merge(step: Step, live: LiveMessage, *, durable: int) -> list[Appended | MessageChanged]:
    entry, before = step.entry, live.head
    own = {name: getattr(entry, name) for name in _OWN_FIELDS if getattr(entry, name) is not UNSET}
    head = structs.replace(before, revision=step.revision, **own)
    only_text = (
        len(entry.appends) > 0
        and not entry.parts
        and not entry.ended
        and entry.part_count == live.part_count
        and head == structs.replace(before, revision=head.revision, updated_at=head.updated_at)
    )
    lost = _loses(entry, live)
    live.put(entry.parts, part_count=entry.part_count, head=head)
    for sequence, text in entry.appends:
        live.append(sequence, text, revision=step.revision, updated_at=head.updated_at)
    live.end(entry.ended)
    if only_text:
        return [
            Appended(
                step.message_id,
                live.part_id(part),
                entry.sequence,
                part,
                step.revision,
                head.updated_at,
                text,
            )
            for part, text in entry.appends
        ]
    changed = {part.sequence for part in entry.parts} | {part for part, _ in entry.appends}
    parts = sorted(changed | set(entry.ended))
    kept = tuple(part for part in parts if part <= entry.part_count)
    return [_changed(step, kept, new=False, durable=durable, lost=lost)]


def _loses(entry: MessageEntry, live: LiveMessage) -> bool:
    """Say whether a part that is there will be gone, or another one will stand in its place."""
    known = live.part_count
    return entry.part_count < known or any(
        live.part_id(part.sequence) != part.part_id for part in entry.parts if part.sequence <= known
    )


def _changed(
    step: Step, parts: tuple[int, ...], *, new: bool, durable: int, lost: bool = False
) -> MessageChanged:
    entry = step.entry
    return MessageChanged(
        step.message_id,
        entry.sequence,
        step.revision,
        new,
        parts,
        durable=step.revision <= durable,
        lost=lost,
    )
