"""The fold of what a reader missed: what many changes come to, for one view (SPEC 5, replay).

The last fields of each message, its changed parts, and the text that was appended to the others. It
needs nothing but what was missed, so it costs that, however long the conversation is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.frames import MessageEntry
from midstream.protocol.live import appended
from midstream.server.sessions.entries import entry, is_seen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.model import Message, Part


class Fold:
    """What was missed, taken in the order in which it was published."""

    def __init__(self, *, include_internal: bool) -> None:
        """Begin with nothing missed, for readers who see internal messages or not."""
        self._messages: dict[int, _FoldedMessage] = {}
        self._include_internal = include_internal

    def append(self, head: Message, part_count: int, part_sequence: int, text: str) -> None:
        """Take text that was appended to a part; ``head`` is the message after it."""
        if is_seen(head, include_internal=self._include_internal):
            self._message(head.sequence).append(head, part_count, part_sequence, text)

    def merge(
        self,
        visible: Iterable[MessageEntry],
        internal: Iterable[MessageEntry],
    ) -> None:
        """Take a change. Its entries have their revisions."""
        for changed in (*visible, *(internal if self._include_internal else ())):
            self._message(changed.sequence).merge(changed)

    def entries(self, version: int) -> list[MessageEntry]:
        """Return what became of each message, for a sync of this version."""
        return [self._messages[sequence].entry(version) for sequence in sorted(self._messages)]

    def _message(self, sequence: int) -> _FoldedMessage:
        return self._messages.setdefault(sequence, _FoldedMessage())


class _FoldedMessage:
    """The changes of one message: its fields, whole parts, and of other parts their new text and end."""

    __slots__ = ("_ended", "_entry", "_parts", "_tails")

    def __init__(self) -> None:
        self._entry: MessageEntry | None = None
        self._parts: dict[int, Part] = {}
        self._tails: dict[int, list[str]] = {}
        self._ended: set[int] = set()

    def append(self, head: Message, part_count: int, part_sequence: int, text: str) -> None:
        if self._entry is None:
            self._entry = entry(head, [], part_count=part_count, is_new=False, version=0)
        self._entry = structs.replace(self._entry, revision=head.revision, updated_at=head.updated_at)
        self._tails.setdefault(part_sequence, []).append(text)

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
            self._forget(part.sequence)
            self._parts[part.sequence] = part
        self._ended.update(later.ended)
        known = {*self._parts, *self._tails, *self._ended}
        for number in [number for number in known if number > later.part_count]:
            self._forget(number)

    def _forget(self, number: int) -> None:
        self._parts.pop(number, None)
        self._tails.pop(number, None)
        self._ended.discard(number)

    def entry(self, version: int) -> MessageEntry:
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
        for number in self._ended & parts.keys():
            parts[number] = structs.replace(parts[number], state="done")
        return structs.replace(
            self._entry,
            revision=UNSET if self._entry.revision == version else self._entry.revision,
            parts=[parts[number] for number in sorted(parts)],
            appends=appends,
            ended=sorted(self._ended - parts.keys()),
        )
