"""All subscriptions of one connection: which there are, who owes a sync, whose pace is due (SPEC 5, 6).

Pure: it is told the time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from midstream.protocol.errors import LimitExceeded
from midstream.server.connections.subscription import State, Subscription

if TYPE_CHECKING:
    from midstream.protocol.calls import SubscribeParams, SubscribeResult
    from midstream.server.connections.outbox import Outbox

ASKED_AT_ONCE: Final = 8
"""Syncs that are asked for at a time. The first of them may fill the outbox, and the others were built for
nothing then: at most so many, not one for each of a thousand channels."""


class Subscriptions:
    """At most one subscription a session.

    A channel that fell behind is asked for its sync when the outbox is empty, the one that waits
    longest first. A paced one that lacks something is asked for at its beat, or, where the outbox is
    not empty then, as one that fell behind at that moment.
    """

    __slots__ = ("_asked", "_by_session", "_limit", "_outbox", "_owed", "_paced", "_sync_seconds")

    def __init__(self, outbox: Outbox, *, limit: int, sync_seconds: float) -> None:
        """Hold at most ``limit`` subscriptions, none of which should owe a sync for ``sync_seconds``."""
        self._outbox = outbox
        self._limit = limit
        self._sync_seconds = sync_seconds
        self._by_session: dict[str, Subscription] = {}
        self._owed: dict[
            Subscription, float
        ] = {}  # since when, oldest first; NaN until the next look at a clock
        self._asked: dict[Subscription, None] = {}
        self._paced: dict[Subscription, float] = {}  # when the next sync is due

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_session)

    def get(self, session_id: str) -> Subscription | None:
        """Return the subscription to a session, started or not."""
        return self._by_session.get(session_id)

    def all(self) -> list[Subscription]:
        """Return all, in the order in which they began."""
        return list(self._by_session.values())

    def begin(self, params: SubscribeParams) -> tuple[Subscription, Subscription | None]:
        """Make a subscription, not started yet; return it and the one to the same session that it replaces.

        The replaced one is over; the session has to be told.

        Raises:
            LimitExceeded: there are too many; nothing was changed.

        """
        if params.session_id not in self._by_session and len(self._by_session) >= self._limit:
            raise LimitExceeded("subscriptions", self._limit, len(self._by_session) + 1)
        replaced = self.end(params.session_id)
        begun = self._by_session[params.session_id] = Subscription(
            params.session_id,
            self._outbox,
            self,
            include_internal=params.include_internal,
            limit=0 if params.limit is UNSET else params.limit,
            pace_ms=0 if params.pace_ms is UNSET else params.pace_ms,
        )
        return begun, replaced

    def start(self, subscription: Subscription, result: SubscribeResult, now: float) -> bool:
        """Start what ``subscribe`` began, behind its answer. False: it was replaced or left meanwhile."""
        if subscription.state is not State.STARTING:
            return False
        subscription.start(result.channel, result.sync)
        if subscription.pace_ms:
            self._paced[subscription] = now + subscription.pace_ms / 1000
        return True

    def end(self, session_id: str) -> Subscription | None:
        """Forget a subscription and return it; the session has to be told. None: there was none."""
        subscription = self._by_session.pop(session_id, None)
        if subscription is not None:
            subscription.leave()
            self._forget(subscription)
        return subscription

    def expedite(self, descriptor: int) -> None:
        """Have broadcasts written to a descriptor: nothing waits in the outbox or behind it."""
        for subscription in self._by_session.values():
            subscription.expedite(descriptor)

    def marks(self) -> None:
        """Put a mark behind every live stream that moved since its last one."""
        for subscription in self._by_session.values():
            subscription.mark()

    def to_sync(self, now: float, *, empty: bool) -> list[Subscription]:
        """Return those whose sync is to be asked for now; ``empty`` says that nothing waits to be sent."""
        self._stamp(now)
        due = [subscription for subscription, at in self._paced.items() if at <= now]
        for subscription in due:
            self._paced[subscription] = now + subscription.pace_ms / 1000
        lacking = [subscription for subscription in due if subscription.lacks]
        if not empty:
            for subscription in lacking:
                self._owed.setdefault(subscription, now)
            return []
        asked = [subscription for subscription in lacking if subscription not in self._owed]
        for subscription in list(self._owed):
            if subscription.pace_ms:
                # the session does not answer where nothing is newer, so nothing may wait for its answer
                del self._owed[subscription]
            elif subscription in self._asked:
                continue
            elif len(self._asked) < ASKED_AT_ONCE:
                self._asked[subscription] = None
            else:
                continue
            asked.append(subscription)
        return asked

    def next_pace(self) -> float:
        """Return when a paced sync is due next; infinity for never."""
        return min(self._paced.values(), default=math.inf)

    def overdue_at(self, now: float) -> float:
        """Return when the oldest owed sync will have been owed for too long; infinity where none is."""
        self._stamp(now)
        return next(iter(self._owed.values()), math.inf) + self._sync_seconds

    # Owner: what a subscription tells of itself

    def fell_behind(self, subscription: Subscription) -> None:
        """Note that a sync is owed."""
        self._owed.setdefault(subscription, math.nan)

    def caught_up(self, subscription: Subscription) -> None:
        """Note that it is owed no more."""
        self._owed.pop(subscription, None)
        self._asked.pop(subscription, None)

    def missed(self, subscription: Subscription) -> None:
        """Note that it has to be asked for again."""
        self._asked.pop(subscription, None)

    def closed(self, subscription: Subscription) -> None:
        """Forget a subscription that the session ended."""
        if self._by_session.get(subscription.session_id) is subscription:
            del self._by_session[subscription.session_id]
        self._forget(subscription)

    def _forget(self, subscription: Subscription) -> None:
        self._owed.pop(subscription, None)
        self._asked.pop(subscription, None)
        self._paced.pop(subscription, None)

    def _stamp(self, now: float) -> None:
        # who fell behind did so without a clock at hand; newcomers are the last
        for subscription in reversed(self._owed):
            if not math.isnan(self._owed[subscription]):
                break
            self._owed[subscription] = now
