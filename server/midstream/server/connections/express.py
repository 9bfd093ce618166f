"""Fan-out: one broadcast to the sockets of many readers (SPEC 3.3, 6).

A reader whose outbox and transport are empty is *clear*: what is written to its descriptor cannot overtake
anything, and needs nothing but that write. All others take the broadcast into their outbox.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from midstream.server.sessions.audience import Audience, Reader

if TYPE_CHECKING:
    from midstream.protocol.calls import Cursor
    from midstream.server.sessions.broadcast import Broadcast
    from midstream.server.tally import Tally

write: Callable[[int, bytes], int] = os.write
"""Writes to a descriptor, and returns how many bytes the kernel took."""


class Rider(Reader, Protocol):
    """A subscription, as its audience sees it."""

    def join(self, express: Express) -> None:
        """Learn in which audience it is."""
        ...

    def message_of(self, broadcast: Broadcast) -> bytes:
        """Return what all of its kind are sent; empty where each connection numbers its own chunks."""
        ...

    def slow_down(self, cursor: Cursor | None = None, rest: bytes = b"") -> None:
        """Be clear no more, standing at ``cursor``; ``rest`` of what was written is left."""
        ...


class Express(Audience):
    """An audience of subscriptions that knows the descriptors of those who are clear.

    ``cursor`` is where all who are clear stand.
    """

    def __init__(self, kind: str, tally: Tally) -> None:
        """Serve subscriptions of a kind; what reaches them at once is counted."""
        super().__init__()
        self._tally = tally
        self.cursor: Cursor | None = None
        self._kind = kind
        self._clear: dict[int, Rider] = {}

    def add(self, reader: Reader) -> None:
        """Take a subscription in; it is not clear."""
        super().add(reader)
        cast("Rider", reader).join(self)

    def discard(self, reader: Reader) -> None:
        """Let a subscription go."""
        cast("Rider", reader).slow_down()
        super().discard(reader)

    def expedite(self, descriptor: int, subscription: Rider, cursor: Cursor) -> None:
        """Note that a subscription is clear, and stands at ``cursor``, which is the session's."""
        self.members.pop(subscription, None)
        self._clear[descriptor] = subscription
        self.cursor = cursor

    def halt(self, descriptor: int) -> None:
        """Note that a subscription is not clear any more."""
        self.members[self._clear.pop(descriptor)] = None

    def publish(self, broadcast: Broadcast) -> None:
        """Write to all who are clear, and hand the broadcast to all others."""
        others = tuple(self.members)
        if self._clear:
            self._publish_to_clear(broadcast)
        for reader in others:
            reader.publish(broadcast)

    def _publish_to_clear(self, broadcast: Broadcast) -> None:
        someone = next(iter(self._clear.values()))
        message = broadcast.message(self._kind, someone.message_of)
        # as chunks it goes to nobody at once: each connection numbers its own
        stuck = self._write(message) if message else [(descriptor, 0) for descriptor in self._clear]
        stood, self.cursor = self.cursor, broadcast.cursor
        self._tally.deliveries += len(self._clear)
        for descriptor, taken in stuck:
            subscription = self._clear[descriptor]
            if taken:
                subscription.slow_down(broadcast.cursor, message[taken:])
            else:
                self._tally.deliveries -= 1
                subscription.slow_down(stood)
                subscription.publish(broadcast)

    def _write(self, message: bytes) -> list[tuple[int, int]]:
        """Write to all who are clear; return the descriptors that did not take all, and how much they did.

        The hot loop: for each reader, it touches nothing but a number and the kernel. A method call and the
        reader's own objects, which are not in the processor's cache, cost as much again as the kernel does.
        """
        stuck: list[tuple[int, int]] = []
        length, put = len(message), write
        for descriptor in self._clear:
            try:
                taken = put(descriptor, message)
            except OSError:  # full; or broken, which the transport finds out and deals with
                taken = 0
            if taken != length:
                stuck.append((descriptor, taken))
        return stuck
