"""What came of a turn's newest writes, for a worker that did not hear of it (SPEC 14.6). Pure.

Kept with the number of the last write, so that an answer that was given once stays true after a restart.
"""

from __future__ import annotations

from collections import deque

import msgspec

from midstream.protocol.errors import ErrorInfo

_MOST = 256
"""Outcomes that are kept at most. Nearly every write has none, and a worker waits for those that have."""


class Outcome(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What came of one write: messages that it wrote, as a range of sequences; or something else.

    They are stored by position: what is new goes to the end.
    """

    n: int
    first: int = 0
    count: int = 0
    undone: bool | None = None
    error: ErrorInfo | None = None
    through: int = 0
    """Of a summary: the message that it ends with, which names it."""


_decoder = msgspec.msgpack.Decoder(list[Outcome])


class Outcomes:
    """The outcomes of the newest writes, as many as a worker's window can leave unanswered."""

    def __init__(self, kept: bytes, *, window_bytes: int) -> None:
        """Start with what the store has."""
        self._window = window_bytes
        self._taken = 0
        self._found: deque[tuple[int, Outcome]] = deque(maxlen=_MOST)
        for outcome in _decoder.decode(kept) if kept else ():
            self._found.append((0, outcome))
        self._encoded: bytes | None = kept

    def took(self, size: int) -> None:
        """Note that a write of so many bytes was taken; what a whole window has passed is forgotten."""
        self._taken += size
        while self._found and self._found[0][0] < self._taken - self._window:
            self._found.popleft()
            self._encoded = None

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        self._found.append((self._taken, outcome))
        self._encoded = None

    def newest(self) -> list[Outcome]:
        """Return them, in the order of their writes."""
        return [outcome for _, outcome in self._found]

    def encoded(self) -> bytes:
        """Return them as they are stored: empty for none, which is what they nearly always are."""
        if self._encoded is None:
            self._encoded = msgspec.msgpack.encode(self.newest()) if self._found else b""
        return self._encoded
