"""Ids that the server gives: a word for the kind and 64 random bits."""

from __future__ import annotations

import base64
import secrets
from typing import Protocol


class Ids(Protocol):
    """Where ids come from; a simulation passes a seeded source."""

    def new(self, kind: str) -> str:
        """Return an id such as ``turn_4f2k6...``, never given before."""
        ...

    def epoch(self) -> str:
        """Return the name of a new epoch: 64 random bits as 16 hex digits (SPEC 2)."""
        ...


class RandomIds:
    """Ids from the operating system's randomness."""

    def new(self, kind: str) -> str:
        """Return ``kind``, an underscore, and 13 characters of base 32."""
        return f"{kind}_{encode(secrets.token_bytes(8))}"

    def epoch(self) -> str:
        """Return 16 hex digits."""
        return secrets.token_hex(8)


def encode(random: bytes) -> str:
    """Return bytes as lower-case base 32 without padding (RFC 4648, section 6)."""
    return base64.b32encode(random).decode().rstrip("=").lower()
