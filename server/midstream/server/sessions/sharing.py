"""Encoded frames that many are sent, alike but for their first bytes: what is made of the rest is made once.

The beginning of a frame has what is a connection's own: the id of a call, the number of a chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Rest: TypeAlias = "tuple[int, bytes]"
"""How many bytes at a frame's end it stands for, and what was made of them."""


class Forms:
    """What was made of the ends of frames, by what they have in common; holds ``max_bytes`` of it."""

    __slots__ = ("_made", "max_bytes", "size")

    def __init__(self, max_bytes: int) -> None:
        """Begin empty."""
        self.max_bytes = max_bytes
        self._made: dict[Hashable, Rest] = {}
        self.size = 0
        """Bytes that are held now."""

    def once(self, key: Hashable, make: Callable[[], Rest]) -> Rest:
        """Return what ``make`` returned the last time for a key."""
        found = self._made.get(key)
        if found is None:
            found = make()
            self.size += len(found[1])
            if self.size > self.max_bytes:
                self._made.clear()
                self.size = len(found[1])
            self._made[key] = found
        return found


class SharedFrame(bytes):
    """An encoded frame, whole or one chunk, whose end other frames have too.

    ``forms`` has what was made of that end. Under one ``key`` all ends are the same: the same number of bytes
    behind the same beginning, which may differ.
    """

    forms: Forms
    key: tuple[Hashable, ...]

    @classmethod
    def of(cls, data: bytes, forms: Forms, *key: Hashable) -> SharedFrame:
        """Return a frame whose end is that of all frames of this key that are as long."""
        made = cls(data)
        made.forms, made.key = forms, (*key, len(data))
        return made

    def chunk(self, data: bytes, index: int, chunk_bytes: int) -> SharedFrame:
        """Return the chunk frame ``data``, the one of this index of those that this frame is cut into."""
        made = SharedFrame(data)
        made.forms, made.key = self.forms, (*self.key, index, chunk_bytes)
        return made
