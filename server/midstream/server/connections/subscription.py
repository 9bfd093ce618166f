"""One connection's subscription to one session (SPEC 5, 6).

Pure. It is the session loop's :class:`~midstream.server.sessions.commands.Subscriber`: it takes
broadcasts into the outbox while that has room, and owes a sync from where it stood when it has not.
"""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from midstream.protocol.frames import Closed, Mark, Signal
from midstream.server.connections.answers import sync_frame
from midstream.server.connections.express import Express, Form
from midstream.server.sessions.broadcast import cursor_of

if TYPE_CHECKING:
    from midstream.protocol.calls import Cursor
    from midstream.protocol.frames import SyncPayload
    from midstream.protocol.values import Value
    from midstream.server.connections.outbox import Outbox
    from midstream.server.sessions.broadcast import Broadcast, Standing


class State(Enum):
    """Where a subscription is."""

    STARTING = "starting"
    """Its ``subscribe`` is not answered yet."""
    LIVE = "live"
    """Every broadcast enters the outbox."""
    BEHIND = "behind"
    """Nothing enters the outbox until it is empty; then one sync."""
    PACED = "paced"
    """Behind by choice: one sync at each beat of the pace that the client asked for."""
    CLOSED = "closed"
    """Over; whatever comes is dropped."""


class Owner(Protocol):
    """Who is told when a subscription changes its state by itself."""

    def fell_behind(self, subscription: Subscription) -> None:
        """Learn that a sync is owed."""
        ...

    def caught_up(self, subscription: Subscription) -> None:
        """Learn that the owed sync entered the outbox."""
        ...

    def missed(self, subscription: Subscription) -> None:
        """Learn that a sync came when the outbox had no room for it; it is still owed."""
        ...

    def closed(self, subscription: Subscription) -> None:
        """Learn that the session ended the subscription."""
        ...


class Subscription:
    """A :class:`~midstream.server.sessions.commands.Subscriber` that writes into an outbox.

    The cursor is chained: it always is what last entered the outbox, so whatever comes next, a
    broadcast or a sync, continues there.
    """

    __slots__ = (
        "_channel", "_descriptor", "_express", "_marked", "_outbox", "_owner", "_standing",
        "answers_due", "include_internal", "kind", "lacks", "limit", "pace_ms", "session_id", "state",
    )  # fmt: skip

    def __init__(
        self,
        session_id: str,
        outbox: Outbox,
        owner: Owner,
        *,
        include_internal: bool = False,
        limit: int = 0,
        pace_ms: int = 0,
    ) -> None:
        """Make a subscription that is not started; ``pace_ms`` 0 is none."""
        self.session_id = session_id
        self.include_internal = include_internal
        self.limit = limit
        self.pace_ms = pace_ms
        self.state = State.STARTING
        self.answers_due = 0
        """Unanswered calls that change the session; a sync that comes before such an answer always enters."""
        self.lacks = False
        """Whether a broadcast was dropped since the last sync because of the pace."""
        self._outbox = outbox
        self._owner = owner
        self._channel = 0
        self._standing: Standing | None = None
        self._marked: Cursor | None = None
        self.kind = sys.intern(f"{outbox.kind} {include_internal}")
        """Those of one kind are sent the same bytes."""
        self._express: Express | None = None
        self._descriptor = -1

    @property
    def cursor(self) -> Cursor | None:
        """What last entered the outbox, or passed it; None before the first sync."""
        express = self._express
        standing = self._standing if express is None or self._descriptor < 0 else express.standing
        return None if standing is None else cursor_of(standing)

    @property
    def behind(self) -> bool:
        """Whether broadcasts are dropped and a sync is owed, or, with a pace, sent when it is due."""
        return self.state in (State.BEHIND, State.PACED)

    def start(self, channel: int, sync: SyncPayload) -> None:
        """Go on from the sync that the answer to ``subscribe`` carries, which is in the outbox already."""
        if self.state is State.STARTING:
            self._channel = channel
            self._stand_at(sync)
            self.state = State.PACED if self.pace_ms else State.LIVE

    def audience(self) -> Express:
        """Return an audience for subscriptions of this kind."""
        return Express(self.kind, self._form(), self._outbox.tally)

    def join(self, express: Express) -> None:
        """Learn in which audience it is."""
        self._express = express

    def expedite(self, descriptor: int) -> None:
        """Have broadcasts written to a descriptor, while nothing waits in the outbox or behind it.

        Whoever is told of something that waits calls :meth:`slow_down`.
        """
        standing = self._standing
        if self._express is not None and self._descriptor < 0 and self.state is State.LIVE and standing:
            self._express.expedite(descriptor, self, standing)
            self._descriptor = descriptor
            self._outbox.express = self

    def slow_down(self, standing: Standing | None = None, rest: bytes = b"") -> None:
        """Take broadcasts into the outbox again; ``rest`` of the last one was not written."""
        if self._express is not None and self._descriptor >= 0:
            self._standing = standing or self._express.standing
            self._express.halt(self._descriptor)
            self._descriptor = -1
            self._outbox.express = None
            if rest:
                self._outbox.overflow(rest)

    def publish(self, broadcast: Broadcast) -> None:
        """Take a broadcast into the outbox, or fall behind."""
        if self.state is not State.LIVE:
            self.lacks = self.state is State.PACED
        elif self._enter(broadcast):
            self._standing = broadcast.standing
            self._outbox.tally.deliveries += 1
        else:
            self.state = State.BEHIND
            self._owner.fell_behind(self)

    def bring_up(self, payload: SyncPayload) -> None:
        """Take the owed sync; with no room for it, go on owing it."""
        if not self.behind:
            return  # it got one meanwhile, or is closed
        data = sync_frame(self._outbox.codec, self._channel, payload)
        if not self.answers_due and not self._outbox.admits(len(data)):
            self._owner.missed(self)
            return
        self._outbox.put(self.session_id, data)
        self._outbox.tally.sync(payload.mode, len(data))
        if self.state is State.BEHIND:
            self._outbox.tally.conflations += 1
        self._stand_at(payload)
        self.state = State.PACED if self.pace_ms else State.LIVE
        self._owner.caught_up(self)

    def signal(self, sender: str, name: str, data: Value) -> None:
        """Take something ephemeral, if there is room."""
        if self.state is State.LIVE:
            payload = self._outbox.codec.encode(Signal(self._channel, sender, name, data))
            if self._outbox.admits(len(payload)):
                self._outbox.put(self.session_id, payload)

    def mark(self) -> None:
        """Say where the stream stands, if it moved since the last mark and there is room (SPEC 3)."""
        cursor = self.cursor
        if cursor is not None and cursor != self._marked and self.state in (State.LIVE, State.PACED):
            payload = self._outbox.codec.encode(Mark(self._channel, cursor.version))
            if self._outbox.admits(len(payload)):
                self._outbox.put(self.session_id, payload)
                self._marked = cursor

    def close(self, code: str, *, retryable: bool) -> None:
        """End, and say so behind what is in the outbox already, however full it is (SPEC 3)."""
        if self.state is State.CLOSED:
            return
        self.slow_down()
        if self.state is not State.STARTING:
            closed = Closed(self._channel, code, retryable)
            self._outbox.put(self.session_id, self._outbox.codec.encode(closed))
        self.state = State.CLOSED
        self._owner.closed(self)

    def leave(self) -> None:
        """End without a word: the client asked for it, replaced it, or is gone."""
        self.slow_down()
        self.state = State.CLOSED

    def _stand_at(self, sync: SyncPayload) -> None:
        self._standing = sync.epoch, sync.version, sync.committed()
        self.lacks = False

    def _enter(self, broadcast: Broadcast) -> bool:
        """Put a broadcast into the outbox, if there is room for all of it."""
        outbox = self._outbox
        message = broadcast.message(self.kind, self._message_of)
        if message:
            if outbox.admits(len(message)):
                outbox.put_sealed(self.session_id, message)
                return True
            return False
        payloads = broadcast.payloads(outbox.codec, include_internal=self.include_internal)
        if not outbox.admits(sum(map(len, payloads))):
            return False
        for payload in payloads:
            outbox.put(self.session_id, payload)
        return True

    def _message_of(self, broadcast: Broadcast) -> bytes:
        return self._form().message(broadcast)

    def _form(self) -> Form:
        outbox = self._outbox
        internal = self.include_internal
        return Form(outbox.codec, outbox.seal, outbox.chunk_bytes, include_internal=internal)
