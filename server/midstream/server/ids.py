"""Ids that the server gives: a word for the kind and 64 random bits."""

from __future__ import annotations

import secrets
from array import array
from itertools import product
from typing import Final, Protocol

_DIGITS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS: Final = ["".join(pair) for pair in product(_DIGITS, repeat=2)]
_AT_ONCE: Final = 512
"""Words of randomness that are asked for at a time: a system call for each would cost more than all else."""


class Ids(Protocol):
    """Where ids come from; a simulation passes a seeded source. The database's threads may ask."""

    def new(self, kind: str) -> str:
        """Return an id such as ``turn_4f2k6...``, never given before."""
        ...

    def epoch(self) -> str:
        """Return the name of a new epoch: 64 random bits as 16 hex digits (SPEC 2)."""
        ...


class RandomIds:
    """Ids from the operating system's randomness. May be used by several threads."""

    def __init__(self) -> None:
        """Ask for nothing yet."""
        self._words: list[int] = []

    def new(self, kind: str) -> str:
        """Return ``kind``, an underscore, and 13 characters of base 32."""
        return f"{kind}_{encode(self._word())}"

    def epoch(self) -> str:
        """Return 16 hex digits."""
        return f"{self._word():016x}"

    def _word(self) -> int:
        while True:
            try:
                return self._words.pop()  # one thread gets it, whoever else asks meanwhile
            except IndexError:
                self._words.extend(array("Q", secrets.token_bytes(8 * _AT_ONCE)))


def encode(word: int) -> str:
    """Return 64 bits as lower-case base 32 without padding (RFC 4648, section 6)."""
    bits = word << 1  # 13 digits have room for 65
    return (
        f"{_PAIRS[bits >> 55]}{_PAIRS[bits >> 45 & 1023]}{_PAIRS[bits >> 35 & 1023]}"
        f"{_PAIRS[bits >> 25 & 1023]}{_PAIRS[bits >> 15 & 1023]}{_PAIRS[bits >> 5 & 1023]}"
        f"{_DIGITS[bits & 31]}"
    )
