"""Subscribers of one session who are sent the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midstream.server.sessions.broadcast import Broadcast
    from midstream.server.sessions.commands import Subscriber


class Audience:
    """Hands broadcasts to each of its subscribers, in the order in which they came."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.members: dict[Subscriber, None] = {}

    def add(self, subscriber: Subscriber) -> None:
        """Take somebody in, who stands where the last broadcast ended."""
        self.members[subscriber] = None

    def discard(self, subscriber: Subscriber) -> None:
        """Let somebody go."""
        self.members.pop(subscriber, None)

    def publish(self, broadcast: Broadcast) -> None:
        """Hand a broadcast to everybody."""
        for subscriber in tuple(self.members):
            subscriber.publish(broadcast)
