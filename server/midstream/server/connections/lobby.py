"""Connections that were accepted and not welcomed yet: few, short, and soon gone (SPEC 3.9, 13).

Nobody knows who they are, so all of them together may cost little. Where more are to say something than the
lobby has room for, the one that has been silent longest goes: who means well needs a round trip. Those
who have said what they want, and wait for the server, wait at the door.
"""

from __future__ import annotations

from typing import Final, Protocol

HANDSHAKE_BYTES: Final = 16 * 1024
"""What may come before the end of the HTTP handshake: the cookies of a browser fit in."""
HELLO_FACTOR: Final = 2
"""Times ``hello_bytes`` that a first message may declare to have: up to there it is refused in words."""


class Waiting(Protocol):
    """A connection in the lobby."""

    def turn_out(self) -> None:
        """Be cut."""
        ...


class Lobby:
    """Has room for so many connections."""

    def __init__(self, room: int) -> None:
        """Begin empty."""
        self._room = room
        self._waiting: dict[Waiting, None] = {}  # the longest there first
        self.turned_out = 0
        """How many had to go so that others could come."""

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def enter(self, connection: Waiting) -> None:
        """Let a connection wait; the one that waits longest goes where there is no room."""
        self._waiting[connection] = None
        if len(self._waiting) > self._room:
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            self.turned_out += 1
            longest.turn_out()

    def leave(self, connection: Waiting) -> None:
        """Let a connection go: it was welcomed, or is gone. Harmless for one that is not there."""
        self._waiting.pop(connection, None)
