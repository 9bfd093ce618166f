"""One message of a draft: the parts that it sets lie over those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from midstream.protocol.live import can_append
from midstream.protocol.model import ReasoningPart, TextPart

if TYPE_CHECKING:
    from midstream.protocol.model import Message, Part
    from midstream.server.sessions.projection import OpenMessage


class DraftMessage:
    """One message of a draft: the parts it sets lie over those that are there."""

    __slots__ = ("_base", "_kept", "bodies", "count", "head", "parts", "size")

    def __init__(self, head: Message, base: OpenMessage | None) -> None:
        """Start from what is there, or from nothing."""
        self.head = head
        self.count = base.live.part_count if base else 0
        self.parts: dict[int, Part] = {}
        self.bodies: dict[int, bytes] = {}
        self.size = sum(base.sizes) if base else 0
        self._base = base
        self._kept = self.count
        """Parts of ``base`` that have not been dropped; a later one of the same place is another part."""

    @property
    def created_version(self) -> int | None:
        """The version that created the message; None for a new one."""
        return self._base.created_version if self._base else None

    def part(self, sequence: int) -> Part:
        """Return a part as the draft has it. Raises IndexError where there is none."""
        if sequence in self.parts:
            return self.parts[sequence]
        if self._base is None or not 1 <= sequence <= self._kept:
            raise IndexError(sequence)
        return self._base.live.part(sequence)

    def all_parts(self) -> list[Part]:
        """Return all parts as the draft has them."""
        return [self.part(sequence) for sequence in range(1, self.count + 1)]

    def set_part(self, part: Part, body: bytes) -> None:
        """Take a part and its encoded form."""
        self.size += len(body) - self._size_of(part.sequence)
        self.parts[part.sequence] = part
        self.bodies[part.sequence] = body

    def ended(self) -> frozenset[int]:
        """Return the places of the texts and reasonings that changed in nothing but that they ended."""
        base = self._base
        if base is None:
            return frozenset()
        return frozenset(
            sequence
            for sequence, part in self.parts.items()
            if sequence <= self._kept
            and isinstance(part, (TextPart, ReasoningPart))
            and part.state == "done"
            and can_append(before := base.live.part(sequence))
            and structs.replace(before, state="done") == part
        )

    def truncate(self, count: int) -> None:
        """Drop the parts above ``count``."""
        for sequence in range(count + 1, self.count + 1):
            self.size -= self._size_of(sequence)
            self.parts.pop(sequence, None)
            self.bodies.pop(sequence, None)
        self.count = count
        self._kept = min(self._kept, count)

    def _size_of(self, sequence: int) -> int:
        if sequence in self.bodies:
            return len(self.bodies[sequence])
        return self._base.sizes[sequence - 1] if self._base and sequence <= self._kept else 0
