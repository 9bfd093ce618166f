"""One connection and all that is read over it: frames, answers and news of the link go where they belong."""

from __future__ import annotations

import logging
from random import Random
from typing import Literal

from midstream.client.clock import Clock
from midstream.client.errors import ClientClosed, ClientError, MidstreamError
from midstream.client.exchange import Exchange
from midstream.client.link import Link, LinkOptions, LinkState
from midstream.client.sessions import SessionList
from midstream.client.streams import Fanout
from midstream.client.subscription import Subscription, Tools
from midstream.client.timers import Timers
from midstream.client.transport import Transport
from midstream.protocol.calls import UnwatchParams
from midstream.protocol.frames import (
    Change,
    Closed,
    Delta,
    ErrorFrame,
    Mark,
    Result,
    ServerFrame,
    SessionsChanged,
    ShortDelta,
    Signal,
    Skip,
    Sync,
    WelcomeInfo,
)

_LOG = logging.getLogger("midstream.client")


class Hub:
    """The inside of a client: its link, its calls and its subscriptions."""

    def __init__(
        self, options: LinkOptions, *, clock: Clock, random: Random, call_timeout: float | None
    ) -> None:
        """Do nothing until :meth:`begin`."""
        self.state: LinkState = "connecting"
        self.states: Fanout[LinkState] = Fanout(100)
        self.error: MidstreamError | None = None
        """Why it is closed, where nobody asked for it."""
        timers = Timers(self._fail)
        self.exchange = Exchange(options.codec, random, timers, timeout_s=call_timeout)
        self.tools = Tools(exchange=self.exchange, timers=timers, router=self, clock=clock, random=random)
        self._timers = timers
        self._link = Link(options, self, clock=clock, random=random, timers=timers)
        self._failure: Exception | None = None
        self._subscriptions: dict[str, Subscription] = {}
        self._channels: dict[int, Subscription] = {}
        self._lists: dict[SessionList, None] = {}

    def begin(self) -> None:
        """Connect, if that has not begun.

        Raises:
            MidstreamError: it is closed.

        """
        if self.state == "closed":
            raise self.error or ClientClosed()
        self._link.start()

    def add(self, subscription: Subscription) -> None:
        """Keep this subscription from now on, until :meth:`remove`."""
        self._subscriptions[subscription.session_id] = subscription
        if self.exchange.connected:
            subscription.connected()
        elif self.state == "offline":
            subscription.disconnected("offline")

    def remove(self, session_id: str) -> None:
        """Forget a subscription that is closed."""
        self._subscriptions.pop(session_id, None)

    def watch_sessions(self, *, limit: int, archived: bool) -> SessionList:
        """Return a list of sessions, which is kept until it is closed."""
        sessions = SessionList(self.exchange, self, limit=limit, archived=archived)
        self._lists[sessions] = None
        if self.exchange.connected:
            sessions.connected()
        elif self.state == "offline":
            sessions.disconnected("offline")
        return sessions

    def forget_list(self, sessions: SessionList) -> None:
        """Forget a list that is closed; the last one ends the connection's watch."""
        del self._lists[sessions]
        if not self._lists:
            self.exchange.start("sessions.unwatch", UnwatchParams(), lambda _: None, repeatable=False)

    async def close(self) -> None:
        """End, and return when nothing runs any more.

        Raises:
            Exception: the fault of its own by which it failed.

        """
        self._end(None)
        await self._link.close()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def listen(self, channel: int, subscription: Subscription) -> None:
        """Bring the frames of this channel to this subscription."""
        self._channels[channel] = subscription

    def mute(self, subscription: Subscription) -> None:
        """Bring it no frames any more."""
        for channel in [number for number, to in self._channels.items() if to is subscription]:
            del self._channels[channel]

    def link_opened(self, transport: Transport, welcome: WelcomeInfo) -> None:
        """Take a new connection: subscribe anew, then repeat what is safe to repeat."""
        self.exchange.problem = None
        self._enter("live")
        self.exchange.connect(transport, welcome.limits)
        for subscription in list(self._subscriptions.values()):
            subscription.connected()
        for sessions in list(self._lists):
            sessions.connected()
        self.exchange.send()

    def link_frame(self, frame: ServerFrame) -> None:
        """Bring a frame where it belongs; those of channels that are not ours any more are ignored."""
        if isinstance(frame, (ShortDelta, Delta, Change, Skip, Mark)):
            subscription = self._channels.get(frame.channel)
            if subscription is not None:
                subscription.frame(frame)
        elif isinstance(frame, ErrorFrame) and frame.id is None:
            # no call of ours is to blame for it, so there is nobody to raise it to
            _LOG.warning("the server refused a frame: %s", frame.error.message)
        elif isinstance(frame, (Result, ErrorFrame)):
            self.exchange.answered(frame)
        elif isinstance(frame, (Sync, Closed, Signal)):
            subscription = self._channels.get(frame.channel)
            if subscription is not None:
                _hand_over(frame, subscription)
        elif isinstance(frame, SessionsChanged):
            for sessions in list(self._lists):
                sessions.frame(frame.changes)

    def link_down(self, state: Literal["connecting", "offline"]) -> None:
        """Learn that there is no connection."""
        self.exchange.problem = self._link.problem
        self._channels.clear()  # at once: muting them one by one would look through all each time
        self.exchange.disconnect()
        self._enter(state)
        for subscription in list(self._subscriptions.values()):
            subscription.disconnected(state)
        for sessions in list(self._lists):
            sessions.disconnected(state)

    def link_ended(self, error: MidstreamError) -> None:
        """Learn that there will be no connection any more."""
        self._end(error)

    def _end(self, error: MidstreamError | None) -> None:
        """End all that needs no waiting; once."""
        if self.state == "closed":
            return
        self.error = error
        self._enter("closed")
        for subscription in list(self._subscriptions.values()):
            subscription.close(error)
        for sessions in list(self._lists):
            sessions.end(error)
        self.exchange.close(error or ClientClosed())
        self._timers.cancel_all()
        self._link.abort()
        self.states.end()

    def _fail(self, failure: Exception) -> None:
        """End because of a fault in this client, which :meth:`close` raises."""
        if self._failure is None:
            self._failure = failure
        error = ClientError(
            f"The client failed and is closed: {failure!r}. This is a fault of the client; please report it."
        )
        error.__cause__ = failure
        self._end(error)

    def _enter(self, state: LinkState) -> None:
        if state != self.state:
            self.state = state
            self.states.publish(state)


def _hand_over(frame: Sync | Closed | Signal, subscription: Subscription) -> None:
    if isinstance(frame, Sync):
        subscription.frame(frame)
    elif isinstance(frame, Closed):
        subscription.ended(frame)
    else:
        subscription.on_signal(frame)
