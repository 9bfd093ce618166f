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
    from midstream.protocol.codec import Codec
    from midstream.server.sessions.broadcast import Broadcast, Standing
    from midstream.server.tally import Tally

write: Callable[[int, bytes], int] = os.write
"""Writes to a descriptor, and returns how many bytes the kernel took."""


class Rider(Reader, Protocol):
    """A subscription, as its audience sees it."""

    def join(self, express: Express) -> None:
        """Learn in which audience it is."""
        ...

    def slow_down(self, standing: Standing | None = None, rest: bytes = b"") -> None:
        """Be clear no more, standing there; ``rest`` of what was written is left."""
        ...


class Form:
    """How subscriptions of one kind are sent broadcasts."""

    __slots__ = ("_chunk_bytes", "_codec", "_include_internal", "_seal")

    def __init__(
        self, codec: Codec, seal: Callable[[bytes], bytes], chunk_bytes: int, *, include_internal: bool
    ) -> None:
        """Encode with a codec and seal each frame, where none is longer than a chunk."""
        self._codec = codec
        self._seal = seal
        self._chunk_bytes = chunk_bytes
        self._include_internal = include_internal

    def message(self, broadcast: Broadcast) -> bytes:
        """Return what all are sent; empty where it goes as chunks, which each connection numbers."""
        payloads = broadcast.payloads(self._codec, include_internal=self._include_internal)
        most, seal = self._chunk_bytes, self._seal
        # as plain bytes: what is sealed once for all is compressed from its first byte on
        if len(payloads) == 1:
            return seal(bytes(payloads[0])) if len(payloads[0]) <= most else b""
        if any(len(payload) > most for payload in payloads):
            return b""
        return b"".join([seal(bytes(payload)) for payload in payloads])


class Express(Audience):
    """An audience of subscriptions that knows the descriptors of those who are clear.

    ``standing`` is where all who are clear stand.
    """

    __slots__ = ("_clear", "_form", "_kind", "_tally", "standing")

    def __init__(self, kind: str, form: Form, tally: Tally) -> None:
        """Serve subscriptions of a kind in their form; what reaches them at once is counted."""
        super().__init__()
        self._tally = tally
        self.standing: Standing | None = None
        self._kind = kind
        self._form = form
        self._clear: dict[int, Rider] = {}

    def add(self, reader: Reader) -> None:
        """Take a subscription in; it is not clear."""
        super().add(reader)
        cast("Rider", reader).join(self)

    def discard(self, reader: Reader) -> None:
        """Let a subscription go."""
        cast("Rider", reader).slow_down()
        super().discard(reader)

    def expedite(self, descriptor: int, subscription: Rider, standing: Standing) -> None:
        """Note that a subscription is clear, and stands where the session does."""
        self.members.pop(subscription, None)
        self._clear[descriptor] = subscription
        self.standing = standing

    def halt(self, descriptor: int) -> None:
        """Note that a subscription is not clear any more."""
        self.members[self._clear.pop(descriptor)] = None

    def publish(self, broadcast: Broadcast) -> None:
        """Write to all who are clear, and hand the broadcast to all others."""
        others = tuple(self.members) if self.members else ()
        if self._clear:
            self._publish_to_clear(broadcast)
        for reader in others:
            reader.publish(broadcast)

    def _publish_to_clear(self, broadcast: Broadcast) -> None:
        message = broadcast.message(self._kind, self._form.message)
        # as chunks it goes to nobody at once: each connection numbers its own
        stuck = self._write(message) if message else [(descriptor, 0) for descriptor in self._clear]
        stood, self.standing = self.standing, broadcast.standing
        self._tally.deliveries += len(self._clear)
        for descriptor, taken in stuck:
            subscription = self._clear[descriptor]
            if taken:
                subscription.slow_down(broadcast.standing, message[taken:])
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
