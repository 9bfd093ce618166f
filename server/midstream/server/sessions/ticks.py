"""Text that waits for its tick: merged by part, in the order in which the parts began to wait (SPEC 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITING_BYTES = 64 * 1024
"""Characters that may wait before a producer does. One tick publishes them all."""


class WaitingText:
    """The deltas of one tick. What several deltas append to one part becomes one frame."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self._pieces: dict[tuple[int, int], list[str]] = {}
        self.size = 0

    def __bool__(self) -> bool:
        """Say whether anything waits."""
        return bool(self._pieces)

    @property
    def is_full(self) -> bool:
        """Whether producers are to wait."""
        return self.size >= WAITING_BYTES

    def add(self, sequence: int, part_sequence: int, text: str) -> None:
        """Append text to what waits for a part."""
        self._pieces.setdefault((sequence, part_sequence), []).append(text)
        self.size += len(text)

    def take(self) -> Iterator[tuple[int, int, str]]:
        """Give out what waits, part by part; what is not taken goes on waiting."""
        while self._pieces:
            key = next(iter(self._pieces))
            text = "".join(self._pieces.pop(key))
            self.size -= len(text)
            yield (*key, text)

    def clear(self) -> None:
        """Drop everything: the turn it belonged to has ended."""
        self._pieces.clear()
        self.size = 0
