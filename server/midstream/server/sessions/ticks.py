"""Text that waits for its tick: merged by part, in the order in which the parts began to wait (SPEC 2)."""

from __future__ import annotations

WAITING_BYTES = 64 * 1024
"""Bytes of text that may wait before a producer does. One tick publishes them all."""


def size_of(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


class _Waiting:
    """What waits for one part."""

    __slots__ = ("pieces", "size")

    def __init__(self, text: str, size: int) -> None:
        self.pieces = [text]
        self.size = size


class WaitingText:
    """The deltas of one tick. What several deltas append to one part becomes one frame."""

    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self._parts: dict[tuple[int, int], _Waiting] = {}
        self.size = 0
        """Bytes that wait."""

    def __bool__(self) -> bool:
        """Say whether anything waits."""
        return bool(self._parts)

    @property
    def is_full(self) -> bool:
        """Whether producers are to wait."""
        return self.size >= WAITING_BYTES

    def bytes_of(self, sequence: int, part_sequence: int) -> int:
        """Return how many bytes wait for a part."""
        waiting = self._parts.get((sequence, part_sequence))
        return 0 if waiting is None else waiting.size

    def add(self, sequence: int, part_sequence: int, text: str, size: int) -> None:
        """Append text, of ``size`` bytes, to what waits for a part."""
        self.size += size
        key = sequence, part_sequence
        waiting = self._parts.get(key)
        if waiting is None:
            self._parts[key] = _Waiting(text, size)
        else:
            waiting.pieces.append(text)
            waiting.size += size

    def take(self) -> tuple[int, int, str, int]:
        """Return what waits for the part that waits longest: its place, the text, and its bytes.

        Raises:
            StopIteration: nothing waits.

        """
        key = next(iter(self._parts))
        waiting = self._parts.pop(key)
        self.size -= waiting.size
        return (*key, "".join(waiting.pieces), waiting.size)

    def clear(self) -> None:
        """Drop everything: the turn it belonged to has ended."""
        self._parts.clear()
        self.size = 0
