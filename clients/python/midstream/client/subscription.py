"""Keeping one replica equal to the server's session, over whatever happens to the link (SPEC 4, 5).

One path for all: subscribe, apply the sync, apply what follows. A gap, a reload and a new connection
only lead back to its beginning. Nothing here awaits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec import UNSET

from midstream.client.calls import Answer
from midstream.client.clock import Clock
from midstream.client.errors import (
    AlreadyExists,
    ConnectionLost,
    IncompatibleServer,
    MidstreamError,
    NotFound,
    SessionClosed,
)
from midstream.client.exchange import Exchange
from midstream.client.reconnect import full_jitter
from midstream.client.replica import SessionReplica
from midstream.client.streams import Fanout
from midstream.client.timers import Timer, Timers
from midstream.client.waiting import Waiters
from midstream.protocol.calls import CreateParams, SubscribeParams, SubscribeResult, UnsubscribeParams
from midstream.protocol.frames import Closed, SessionFrame, Signal, Sync
from midstream.protocol.outcomes import Appended, Applied, Gap, Outcome

SessionState: TypeAlias = Literal["connecting", "syncing", "live", "offline", "closed"]

SECOND_GAP_S = 60.0
"""A second gap within this time is not repaired with the cursor again: the copy itself may be wrong."""
PATIENCE = 2
"""So many troubles in a row are met at once; further ones after growing pauses."""
DEFAULT_MAX_MESSAGES = 10_000
"""Messages of a window; when a replica has grown beyond, and to twice what it began with, it begins anew with
the newest."""


class Router(Protocol):
    """Who brings frames to subscriptions: by the channel that the answer to ``subscribe`` named."""

    def listen(self, channel: int, subscription: Subscription) -> None:
        """Bring the frames of this channel from now on."""
        ...

    def mute(self, subscription: Subscription) -> None:
        """Bring it no frames any more."""
        ...


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What all subscriptions of a client share."""

    exchange: Exchange
    timers: Timers
    router: Router
    clock: Clock
    random: Random


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is subscribed with."""

    limit: int = 50
    """Messages to begin with."""
    pace_ms: int | None = None
    """Syncs at this pace instead of every frame."""
    max_messages: int = DEFAULT_MAX_MESSAGES
    create: CreateParams | None = None
    """How to create the session where there is none."""


class Subscription:
    """The subscription to one session, from its first ``subscribe`` until it is closed."""

    def __init__(self, replica: SessionReplica, tools: Tools, wish: Wish) -> None:
        """Begin; :meth:`connected` says when there is a link."""
        self.replica = replica
        self.state: SessionState = "connecting"
        self.error: MidstreamError | None = None
        """Why it is closed, where nobody asked for it."""
        self.changed = Waiters()
        """Told of every frame and every state."""
        self.states: Fanout[SessionState] = Fanout(100)
        self.on_news: Callable[[bool], None] = lambda _: None
        """Called after a sync (True) and after a change that is more than text (False)."""
        self.on_signal: Callable[[Signal], None] = lambda _: None
        """Called with each signal."""
        self.on_closed: Callable[[MidstreamError], None] = lambda _: None
        """Called once."""
        self._tools = tools
        self._wish = wish
        self._create = wish.create
        self._creating = False
        self._generation = 0
        self._retry: Timer | None = None
        self._gap_at: float | None = None
        self._began_with = 0
        self._troubles = 0
        self._troubled_at = 0.0

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.replica.law.session_id

    def connected(self) -> None:
        """Learn that there is a link: subscribe, from where the replica stands."""
        if self.state != "closed" and not self._creating:
            self._subscribe()

    def disconnected(self, state: Literal["connecting", "offline"]) -> None:
        """Learn that there is no link, and whether one is being made."""
        if self.state == "closed":
            return
        self._begin_anew()
        self._enter(state)

    def frame(self, frame: SessionFrame) -> None:
        """Take a frame of this subscription."""
        outcome = self.replica.apply(frame)
        if isinstance(outcome, Gap):
            self._gap(outcome)
        elif isinstance(frame, Sync):
            self._news(synced=True)
        elif _is_news(outcome):
            self._news(synced=False)
        self.changed.notify()

    def shown(self, epoch: str, version: int) -> None:
        """Learn what an answer shows: all up to it was sent, so what is not here was lost (SPEC 3.7)."""
        law = self.replica.law
        if self.state == "live" and law.epoch == epoch and law.version < version:
            reason = f"an answer shows version {version}, and {law.version} was reached"
            self._gap(Gap(reason, keep_cursor=True))

    def ended(self, frame: Closed) -> None:
        """Learn that the server ended the subscription."""
        if frame.retryable:
            self._trouble(whole=False)
        else:
            self.close(SessionClosed(self.session_id, frame.code))

    def close(self, error: MidstreamError | None = None) -> None:
        """End, because of an error or because it was asked for."""
        if self.state == "closed":
            return
        if self.state in {"live", "syncing"} and error is None:
            params = UnsubscribeParams(session_id=self.session_id)
            exchange = self._tools.exchange
            exchange.start("unsubscribe", params, lambda _: None, lane=self.session_id, repeatable=False)
        self._begin_anew()
        self.error = error
        self._enter("closed")
        self.states.end()
        self.replica.end(error)
        self.on_closed(error or SessionClosed(self.session_id, "closed by this client"))

    def _begin_anew(self) -> None:
        """Let nothing that is under way have an effect any more: no frame, no answer, no retry."""
        self._generation += 1
        self._tools.router.mute(self)
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _subscribe(self, *, whole: bool = False) -> None:
        # from here to the answer, the session's frames belong to the subscription that ends
        self._begin_anew()
        self._enter("syncing")
        cursor = None if whole else self.replica.law.cursor()
        params = SubscribeParams(
            session_id=self.session_id,
            cursor=UNSET if cursor is None else cursor,
            limit=min(self._wish.limit, self._tools.exchange.limits.page_messages),
            include_internal=self.replica.law.include_internal,
            pace_ms=UNSET if self._wish.pace_ms is None else self._wish.pace_ms,
        )
        reply = partial(self._answered, self._generation)
        self._tools.exchange.start(
            "subscribe", params, reply, lane=self.session_id, repeatable=False, urgent=True
        )

    def _answered(self, generation: int, answer: Answer) -> None:
        if generation != self._generation or isinstance(answer, ConnectionLost):
            return
        if isinstance(answer, SubscribeResult):
            self._tools.router.listen(answer.channel, self)
            outcome = self.replica.apply_sync(answer.sync)
            if answer.sync.mode == "reset":
                self._began_with = self.replica.held
            if isinstance(outcome, Gap):
                self._gap(outcome)
            else:
                self._enter("live")
                self._news(synced=True)
        elif isinstance(answer, NotFound) and self._create is not None:
            self._create_it(self._create)
        elif isinstance(answer, MidstreamError) and answer.retryable:
            self._trouble(whole=False, patience=0)
        else:
            self.close(_problem("subscribe", answer))

    def _create_it(self, params: CreateParams) -> None:
        self._create = None
        self._creating = True
        self._tools.exchange.start(
            "sessions.create", params, self._created, lane=self.session_id, repeatable=True, urgent=True
        )

    def _created(self, answer: Answer) -> None:
        self._creating = False
        if self.state == "closed":
            return
        if isinstance(answer, MidstreamError) and not isinstance(answer, AlreadyExists):
            self.close(answer)
        else:
            self._subscribe()

    def _gap(self, gap: Gap) -> None:
        now = self._tools.clock.now()
        second = self._gap_at is not None and now - self._gap_at < SECOND_GAP_S
        self._gap_at = now
        self._trouble(whole=second or not gap.keep_cursor)

    def _trouble(self, *, whole: bool, patience: int = PATIENCE) -> None:
        """Subscribe again: at once, or later where that did not help just now."""
        now = self._tools.clock.now()
        if now - self._troubled_at > SECOND_GAP_S:
            self._troubles = 0
        self._troubled_at = now
        self._troubles += 1
        if self._troubles <= patience:
            self._subscribe(whole=whole)
            return
        self._begin_anew()
        self._enter("syncing")
        pause = full_jitter(self._tools.random, self._troubles - patience - 1)
        self._retry = self._tools.timers.later(pause, lambda: self._subscribe(whole=whole))

    def _news(self, *, synced: bool) -> None:
        self.on_news(synced)
        session = self.replica.session
        idle = session is not None and session.running_turn_id is UNSET
        # what a reset gave is no growth: it would give the same again, without end
        too_many = self.replica.held > max(self._wish.max_messages, 2 * self._began_with)
        if self.state == "live" and idle and too_many:
            self._subscribe(whole=True)

    def _enter(self, state: SessionState) -> None:
        if state != self.state:
            self.state = state
            self.states.publish(state)
        self.changed.notify()


def _is_news(outcome: Outcome) -> bool:
    """Say whether more than text changed; asked for every frame, so it looks at no more than it must."""
    changes = outcome.changes if isinstance(outcome, Applied) else ()
    return bool(changes) and not (len(changes) == 1 and isinstance(changes[0], Appended))


def _problem(method: str, answer: Answer) -> MidstreamError:
    if isinstance(answer, MidstreamError):
        return answer
    return IncompatibleServer(f"{method!r} was answered by a {type(answer).__name__}.")
