"""Readers of one session who are sent the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from midstream.server.sessions.broadcast import Broadcast


class Reader(Protocol):
    """Somebody whom broadcasts are handed to."""

    def publish(self, broadcast: Broadcast) -> None:
        """Take a broadcast."""
        ...


class Audience:
    """Hands broadcasts to each of its readers, in the order in which they came."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        """Begin with nobody."""
        self.members: dict[Reader, None] = {}

    def add(self, reader: Reader) -> None:
        """Take somebody in, who stands where the last broadcast ended."""
        self.members[reader] = None

    def discard(self, reader: Reader) -> None:
        """Let somebody go."""
        self.members.pop(reader, None)

    def publish(self, broadcast: Broadcast) -> None:
        """Hand a broadcast to everybody."""
        for reader in tuple(self.members):
            reader.publish(broadcast)
