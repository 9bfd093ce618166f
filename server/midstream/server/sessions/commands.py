"""What goes into a session's mailbox, and what its loop may ask of those who listen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from midstream.protocol.calls import Cursor
from midstream.protocol.errors import MidstreamError, Refused
from midstream.protocol.frames import SyncPayload, WorkerFrame
from midstream.protocol.values import Value
from midstream.server.sessions.access import NOBODY, Action, Identity, SessionRef
from midstream.server.sessions.audience import Audience
from midstream.server.sessions.broadcast import Broadcast
from midstream.server.sessions.bulletin import Bulletin

Answer: TypeAlias = msgspec.Struct | MidstreamError
"""A result of :data:`midstream.protocol.calls.RESULTS`, or why there is none. Parts in it may be
:class:`msgspec.Raw` msgpack, as they were stored."""


class Subscriber(Protocol):
    """One connection's subscription to one session, as the session's loop sees it.

    The loop calls it from its own task; none of these blocks or raises.
    """

    include_internal: bool
    kind: str
    """Subscribers of one kind are sent the same bytes."""
    limit: int
    """Messages that a ``reset`` shall hold; 0 for none."""

    def audience(self) -> Audience:
        """Return an audience, with nobody in it, for subscribers of this kind."""
        ...

    @property
    def cursor(self) -> Cursor | None:
        """What last entered the outbox of this subscription; None before its first sync."""
        ...

    @property
    def behind(self) -> bool:
        """True while broadcasts do not enter the outbox, and a sync is owed instead."""
        ...

    def publish(self, broadcast: Broadcast) -> None:
        """Take a broadcast; while behind it is dropped, because a sync will cover it."""
        ...

    def bring_up(self, payload: SyncPayload) -> None:
        """Take the sync that was owed, and be live again, or behind by choice (a pace)."""
        ...

    def signal(self, sender: str, name: str, data: Value) -> None:
        """Take something ephemeral; it may be dropped."""
        ...

    def close(self, code: str, *, retryable: bool) -> None:
        """Learn that the subscription ended; the loop has forgotten it already."""
        ...


def not_remote() -> Refused:
    """Return the refusal of a worker where the server runs its agent."""
    return Refused("not_remote", "This server runs its agent itself. Start it with `--agent remote`.")


class WorkerLink(Protocol):
    """One registered worker's connection, as turns see it. None of these blocks or raises."""

    name: str
    instance: str
    resumes: bool
    is_gone: bool
    """Whether the connection is gone: what is opened now is lost at once."""

    @property
    def is_behind(self) -> bool:
        """True while more waits to be sent than the worker reads."""
        ...

    def send_away(self) -> None:
        """Close the connection, because another process took the worker's name."""
        ...

    def may_run(self, session: SessionRef, /) -> bool:
        """Say whether the worker may run the turns of a session."""
        ...

    def open(self, attachment: TakesWrites) -> int:
        """Give an attachment its channel; what the worker sends there goes to it."""
        ...

    def send(self, session_id: str, frame: msgspec.Struct) -> None:
        """Send a frame after all that was sent, and answered, of this session."""
        ...

    def forget(self, channel: int) -> None:
        """Let an attachment go that is over."""
        ...


class BadWrite(msgspec.Struct, frozen=True):
    """A write that could not be read: it is refused when its turn comes, and uses up its number."""

    channel: int
    n: int
    error: MidstreamError


class TakesWrites(Protocol):
    """What a worker's frames of one channel go to."""

    @property
    def session_id(self) -> str:
        """The session whose turn is held."""
        ...

    def weigh(self) -> None:
        """End it, if the worker may not run the session's turns any more."""
        ...

    def take(self, frame: WorkerFrame | BadWrite, size: int) -> None:
        """Take a frame of ``size`` bytes."""
        ...

    def lost(self) -> None:
        """Learn that the connection is gone."""
        ...

    def give_up(self) -> None:
        """Learn that the worker gives the turn up to others."""
        ...


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls: the subject (SPEC 10), and the connection it came by."""

    subject: str
    connection_id: str
    scopes: frozenset[str] = frozenset()
    identity: Identity = NOBODY


class Watcher(Protocol):
    """One connection's watch. None of these blocks or raises."""

    caller: Caller

    def tell(self, news: Sequence[Bulletin]) -> bool:
        """Take news; False where there is no room for them: it is told nothing any more."""
        ...

    def cut(self) -> None:
        """Learn that something was left out: it is told nothing any more."""
        ...


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A call to one session.

    ``reply`` is called exactly once, from the loop's task, at the version that the answer shows:
    everything published before it entered the subscriber's outbox before it, everything after
    comes later (SPEC 3, "answers are part of the stream"). ``subscriber`` is the caller's
    subscription to this session, if it has one; for ``subscribe`` the one that begins. A
    subscriber that is behind is brought up directly before the reply.
    """

    method: str
    params: msgspec.Struct
    as_sent: Value
    caller: Caller
    reply: Callable[[Answer], None]
    action: Action | None = None
    """What the method does with the session. Without one it is let through to none where there are rights."""
    subscriber: Subscriber | None = None
    worker: WorkerLink | None = None
    """The caller as a registered worker, if it is one."""
    watcher: Watcher | None = None
    """For ``sessions.watch`` the watch that begins."""
