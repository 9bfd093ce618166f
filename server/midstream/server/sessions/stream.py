"""The stream of one loaded session: what is published, in which order, and to whom (SPEC 3, 6).

Nothing here awaits, so a change is applied, recorded and handed to every subscriber as one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.calls import Cursor
from midstream.protocol.frames import Delta, SessionFrame, ShortDelta, Skip, Sync, SyncPayload
from midstream.server.sessions.broadcast import Broadcast
from midstream.server.sessions.entries import change_frame, epoch_sync, has_internal
from midstream.server.sessions.history import History

if TYPE_CHECKING:
    from midstream.protocol.values import Value
    from midstream.server.sessions.audience import Audience
    from midstream.server.sessions.commands import Subscriber
    from midstream.server.sessions.projection import FinishedDraft, Projection
    from midstream.server.sessions.ticks import GrowingPart
    from midstream.server.sessions.versions import Versions


class Stream:
    """The projection, its versions, its recent history, and its subscribers."""

    __slots__ = (
        "_audiences", "_full", "_visible", "channel", "history", "projection", "subscribers",
        "versions",
    )  # fmt: skip

    def __init__(
        self, channel: int, projection: Projection, versions: Versions, *, history_bytes: int
    ) -> None:
        """Begin a load's stream; ``channel`` is its name on the wire."""
        self.channel = channel
        self.projection = projection
        self.versions = versions
        self.history = History(floor=versions.published, max_bytes=history_bytes)
        self.subscribers: dict[Subscriber, None] = {}
        """Who gets what is published, in the order in which they came."""
        self._audiences: dict[str, Audience] = {}
        self._full: list[SessionFrame] = []
        self._visible: list[SessionFrame] | None = None  # the same, as long as nothing was hidden

    def add(self, subscriber: Subscriber) -> None:
        """Take in a subscriber that stands at the version published last."""
        self.subscribers[subscriber] = None
        audience = self._audiences.get(subscriber.kind)
        if audience is None:
            audience = self._audiences[subscriber.kind] = subscriber.audience()
        audience.add(subscriber)

    def remove(self, subscriber: Subscriber) -> None:
        """Let a subscriber go, if it is one."""
        if subscriber in self.subscribers:
            del self.subscribers[subscriber]
            self._audiences[subscriber.kind].discard(subscriber)

    def publish_delta(self, part: GrowingPart, text: str, size: int, now: int) -> None:
        """Append text, of ``size`` bytes, to a part that accepts it, under the next version. Needs room.

        It is sent with what is published directly after it, by :meth:`send` at the latest.
        """
        version = self.versions.take()
        before, live = self.projection.append(part, text, size, version=version, now=now)
        self.history.add_delta(live, part.part_sequence, text, size)
        if not self.subscribers:
            return
        frame: SessionFrame
        if part.is_last:
            frame = ShortDelta(self.channel, version, now - before, text)
        else:
            since = now - part.created_at
            frame = Delta(self.channel, version, since, part.sequence, part.part_sequence, text)
        if part.is_internal:
            self._publish(frame, Skip(self.channel, version - 1, version))
        else:
            self._full.append(frame)
            if self._visible is not None:
                self._visible.append(frame)

    def publish_live(self, finished: FinishedDraft) -> None:
        """Publish a change that the store does not have yet; its version was taken from the versions."""
        self.projection.install(finished, stored=False)
        self._publish_change(finished, durable=False)

    def publish_stored(self, finished: FinishedDraft, *, begins_epoch: bool, before: int) -> None:
        """Publish a change that was committed.

        Where it begins a new epoch (``before`` is the version that the old one stood at), those who
        are subscribed already get it as a sync, which names the epoch.
        """
        self.projection.install(finished, stored=True)
        if not begins_epoch:
            self._publish_change(finished, durable=True)
            return
        self.history.restart(before)
        self.history.add_change(finished)
        if not self.subscribers:
            return

        def frame(*, include_internal: bool) -> SessionFrame:
            payload = epoch_sync(
                finished, self.versions.epoch, before=before, include_internal=include_internal
            )
            return Sync(self.channel, payload)

        full = frame(include_internal=True)
        self._publish(full, frame(include_internal=False) if has_internal(finished) else full)
        self.send()

    def send(self) -> None:
        """Hand what was published since the last time to every subscriber, in one piece.

        Whoever publishes does so before it awaits anything, so that an answer, or a subscriber that
        comes, finds all that was published sent.
        """
        full = self._full
        if not full:
            return
        visible = self._visible
        self._full, self._visible = [], None
        versions = self.versions
        broadcast = Broadcast((versions.epoch, versions.published, versions.durable), full, visible)
        for audience in tuple(self._audiences.values()):
            audience.publish(broadcast)

    def forget_cleared(self) -> None:
        """Drop what a clear removed; who was not there for it starts anew (SPEC 10)."""
        first = self.projection.session.first_sequence
        self.projection.forget([sequence for sequence in self.projection.open if sequence < first])
        self.history.restart(self.versions.published)

    def replay(self, cursor: Cursor, *, include_internal: bool) -> SyncPayload | None:
        """Return what a reader at ``cursor`` missed, or None where the history does not say."""
        versions = self.versions
        known = (
            cursor.epoch == versions.epoch
            and cursor.version <= versions.published
            and cursor.durable <= versions.durable
        )
        if not known or not self.history.covers(cursor.version):
            return None
        return self.history.replay(
            cursor.version,
            epoch=versions.epoch,
            version=versions.published,
            durable=versions.durable,
            include_internal=include_internal,
        )

    def signal(self, sender: str, name: str, data: Value) -> None:
        """Pass something ephemeral on to everyone."""
        for subscriber in tuple(self.subscribers):
            subscriber.signal(sender, name, data)

    def close(self, code: str, *, retryable: bool) -> None:
        """End every subscription."""
        subscribers, self.subscribers, self._audiences = self.subscribers, {}, {}
        for subscriber in subscribers:
            subscriber.close(code, retryable=retryable)

    def _publish_change(self, finished: FinishedDraft, *, durable: bool) -> None:
        self.history.add_change(finished)
        if not self.subscribers:
            return
        full = change_frame(finished, self.channel, durable=durable, include_internal=True)
        visible = full
        if has_internal(finished):
            visible = change_frame(finished, self.channel, durable=durable, include_internal=False)
        self._publish(full, visible)
        self.send()

    def _publish(self, full: SessionFrame, visible: SessionFrame) -> None:
        if self.subscribers:
            if self._visible is None and visible is not full:
                self._visible = self._full.copy()
            self._full.append(full)
            if self._visible is not None:
                self._visible.append(visible)
