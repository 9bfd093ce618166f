"""What a worker wrote to its turn and the server has not on disk: kept, to be sent again as it was (SPEC 14).

Pure. Each write has a number ``n``, from 1 and without gaps, that it keeps for life; so does each piece
of text. Many small pieces of one part are kept as one long text and where each of them ends.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

import msgspec

from midstream.protocol.agents import Write

RUN_PIECES = 256
"""Pieces after which a run of text is joined: 256 of four letters are 3 KiB then, and 16 KiB before."""
ENTRY_BYTES = 300
"""What an entry costs beyond its content, about, in CPython."""
PIECE_BYTES = 8
"""What a piece of a joined run costs beyond its text."""


class Piece(msgspec.Struct, frozen=True):
    """Text that was appended to a part, under one ``n``."""

    part_id: str
    text: str


Content: TypeAlias = Write | Piece
"""What one ``n`` stands for."""


class _Run:
    """Consecutive pieces of one part."""

    __slots__ = ("_ends", "_joined", "_pieces", "part_id")

    def __init__(self, part_id: str) -> None:
        self.part_id = part_id
        self._pieces: list[str] = []
        self._joined = ""
        self._ends = array("I")

    def __len__(self) -> int:
        return len(self._ends) or len(self._pieces)

    @property
    def is_full(self) -> bool:
        return bool(self._ends)

    def add(self, text: str) -> None:
        self._pieces.append(text)
        if len(self._pieces) == RUN_PIECES:
            end = 0
            for piece in self._pieces:
                end += len(piece)
                self._ends.append(end)
            self._joined = "".join(self._pieces)
            self._pieces.clear()

    def piece(self, index: int) -> Piece:
        if not self._ends:
            return Piece(self.part_id, self._pieces[index])
        start = self._ends[index - 1] if index else 0
        return Piece(self.part_id, self._joined[start : self._ends[index]])


class _Entry:
    """A write, or a run of pieces, and the first of its numbers."""

    __slots__ = ("first", "size", "what")

    def __init__(self, first: int, what: Write | _Run, size: int) -> None:
        self.first = first
        self.what = what
        self.size = size

    @property
    def end(self) -> int:
        """The first number that is not its own."""
        return self.first + (len(self.what) if isinstance(self.what, _Run) else 1)


class Ledger:
    """The writes of one worker to one turn that are not on disk yet, in order."""

    def __init__(self, durable: int = 0) -> None:
        """Begin after the write ``durable``, which is somebody else's and on disk."""
        self.last = durable
        """The ``n`` of the newest write."""
        self.durable = durable
        """All up to this ``n`` are on the server's disk, and not kept here."""
        self.size = 0
        """About how many bytes are kept."""
        self._entries: dict[
            int, _Entry
        ] = {}  # numbered without gaps, so that both ends and the middle are near
        self._begin = self._end = 0
        self._found = 0

    def add_write(self, write: Write, size: int) -> int:
        """Keep a write of ``size`` encoded bytes, and return its ``n``."""
        return self._add(write, size + ENTRY_BYTES)

    def add_text(self, part_id: str, text: str) -> int:
        """Keep a piece of text, and return its ``n``."""
        size = len(text.encode()) + PIECE_BYTES
        newest = self._entries.get(self._end - 1)
        if newest is not None and isinstance(newest.what, _Run):
            run = newest.what
            if run.part_id == part_id and not run.is_full:
                run.add(text)
                newest.size += size
                self.size += size
                self.last += 1
                return self.last
        run = _Run(part_id)
        run.add(text)
        return self._add(run, size + ENTRY_BYTES)

    def stored(self, durable: int) -> None:
        """Forget the writes up to ``durable``, which are on disk.

        A run is forgotten when all of it is: a piece may be kept for as long as 255 others.
        """
        self.durable = max(self.durable, min(durable, self.last))
        while self._begin < self._end and self._entries[self._begin].end <= self.durable + 1:
            self.size -= self._entries.pop(self._begin).size
            self._begin += 1

    def content(self, n: int) -> Content:
        """Return what ``n`` stands for. Reading on from one number to the next is the quick way.

        Raises:
            KeyError: it is not kept: it is on disk, or was never written.

        """
        if not self.durable < n <= self.last:
            raise KeyError(n)
        entry = self._entries[self._find(n)]
        what = entry.what
        return what.piece(n - entry.first) if isinstance(what, _Run) else what

    def size_from(self, n: int) -> int:
        """Return about how many bytes the writes from ``n`` on are, runs counted whole."""
        if n > self.last:
            return 0
        first = self._find(max(n, self.durable + 1))
        return sum(self._entries[number].size for number in range(first, self._end))

    def _find(self, n: int) -> int:
        """Return the number of the entry that holds ``n``, mostly the one found last, or its next."""
        for guess in (self._found, self._found + 1):
            entry = self._entries.get(guess)
            if entry is not None and entry.first <= n < entry.end:
                self._found = guess
                return guess
        low, high = self._begin, self._end - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._entries[middle].first <= n:
                low = middle
            else:
                high = middle - 1
        self._found = low
        return low

    def _add(self, what: Write | _Run, size: int) -> int:
        self.last += 1
        self._entries[self._end] = _Entry(self.last, what, size)
        self._end += 1
        self.size += size
        return self.last
