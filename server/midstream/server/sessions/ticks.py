"""Text that waits for its tick: merged by part, in the order in which the parts began to wait (SPEC 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITING_BYTES = 64 * 1024
"""Bytes of text that may wait before a producer does. One tick publishes them all."""


def size_of(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


class WaitingText:
    """The deltas of one tick. What several deltas append to one part becomes one frame."""

    __slots__ = ("_pieces", "_sizes", "size")

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self._pieces: dict[tuple[int, int], list[str]] = {}
        self._sizes: dict[tuple[int, int], int] = {}
        self.size = 0
        """Bytes that wait."""

    def __bool__(self) -> bool:
        """Say whether anything waits."""
        return bool(self._pieces)

    @property
    def is_full(self) -> bool:
        """Whether producers are to wait."""
        return self.size >= WAITING_BYTES

    def bytes_of(self, sequence: int, part_sequence: int) -> int:
        """Return how many bytes wait for a part."""
        return self._sizes.get((sequence, part_sequence), 0)

    def add(self, sequence: int, part_sequence: int, text: str, size: int) -> None:
        """Append text, of ``size`` bytes, to what waits for a part."""
        key = (sequence, part_sequence)
        self._pieces.setdefault(key, []).append(text)
        self._sizes[key] = self._sizes.get(key, 0) + size
        self.size += size

    def take(self) -> Iterator[tuple[int, int, str]]:
        """Give out what waits, part by part; what is not taken goes on waiting."""
        while self._pieces:
            key = next(iter(self._pieces))
            text = "".join(self._pieces.pop(key))
            self.size -= self._sizes.pop(key)
            yield (*key, text)

    def clear(self) -> None:
        """Drop everything: the turn it belonged to has ended."""
        self._pieces.clear()
        self._sizes.clear()
        self.size = 0
