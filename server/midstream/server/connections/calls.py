"""From a call's bytes to the session that carries it out (SPEC 7)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import structlog

from midstream.protocol.agent_calls import (
    DeclineParams,
    DetachParams,
    RegisterParams,
    RegisterResult,
    UnregisterParams,
)
from midstream.protocol.calls import EmptyResult, SubscribeParams, UnwatchParams, WatchParams
from midstream.protocol.errors import Forbidden, InternalError, MidstreamError, Refused, UnknownMethod
from midstream.server.connections import bounds
from midstream.server.connections.subscription import State
from midstream.server.connections.worker import Worker
from midstream.server.sessions.commands import Command, not_remote

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from midstream.protocol.frames import Call
    from midstream.protocol.limits import Limits
    from midstream.server.connections.connection import Connection
    from midstream.server.connections.subscription import Subscription
    from midstream.server.sessions.access import Action, SessionRef
    from midstream.server.sessions.commands import Answer, Caller, Subscriber, Watcher, WorkerLink

_log = structlog.stdlib.get_logger(__name__)


class Registry(Protocol):
    """All sessions of the server, as connections see them. No method waits."""

    def post(self, session_id: str, command: Command) -> None:
        """Put a command into a session's mailbox; the answer comes by ``command.reply``.

        Raises:
            MidstreamError: it was not taken (the mailbox is full, the server stops).

        """
        ...

    def post_global(self, command: Command) -> None:
        """Take a command that belongs to no session yet. Raises like :meth:`post`."""
        ...

    def resync(self, session_id: str, subscriber: Subscriber) -> None:
        """Ask for the sync that a subscriber is owed; it comes by ``subscriber.bring_up``."""
        ...

    def leave(self, session_id: str, subscriber: Subscriber) -> None:
        """Let a subscriber go, at once; harmless for one that the session does not know."""
        ...

    def allows(self, caller: Caller, action: Action, session_id: str) -> bool:
        """Say whether a caller may do something with a session that is loaded."""
        ...

    def may_run(self, caller: Caller, session: SessionRef) -> bool:
        """Say whether a caller may run the turns of a session."""
        ...

    def sees_alike(self, one: Caller, other: Caller) -> bool:
        """Say whether two callers may read the same sessions."""
        ...

    def watch(self, watcher: Watcher) -> None:
        """Tell somebody what becomes of sessions: the ``sessions.watch`` that it came with was answered."""
        ...

    def unwatch(self, watcher: Watcher) -> None:
        """Tell somebody nothing any more, at once; harmless for one that is not there."""
        ...


class Pool(Protocol):
    """Who offers turns to workers, as connections see it."""

    lease_seconds: float

    def register(self, link: WorkerLink, concurrency: int) -> WorkerLink | None:
        """Take a worker in; return the one that had its name before, which is to be sent away."""
        ...

    def unregister(self, link: WorkerLink) -> None:
        """Offer nothing more to a worker."""
        ...

    def decline(self, link: WorkerLink, turn_id: str) -> None:
        """Learn that a worker does not want a turn that it was offered."""
        ...


class Route(NamedTuple):
    """Where a method goes, and what its caller needs. Nothing has a default: what is not said is refused."""

    scope: Literal["read", "write", "agent", "none"]
    """A method with scope ``read`` changes nothing: its answer may be refused, and it asked again."""
    to: Literal["session", "registry", "connection", "worker"]
    action: Action | None
    """What it does with the session that it names; None for one that names none, or looks at none."""


ROUTES: Final[dict[str, Route]] = {
    "subscribe": Route("read", "session", "read"),
    "unsubscribe": Route("read", "connection", None),
    "messages": Route("read", "session", "read"),
    "message": Route("read", "session", "read"),
    "turn": Route("read", "session", "read"),
    "prompt": Route("write", "session", "write"),
    "stop": Route("write", "session", "write"),
    "respond": Route("write", "session", "write"),
    "interactions": Route("read", "session", "read"),
    "cancel_input": Route("write", "session", "write"),
    "compact": Route("write", "session", "write"),
    "verify": Route("read", "session", "read"),
    "signal": Route("write", "session", "write"),
    "sessions.create": Route("write", "registry", None),
    "sessions.get": Route("read", "session", "read"),
    "sessions.list": Route("read", "registry", None),
    "sessions.watch": Route("read", "registry", None),
    "sessions.unwatch": Route("read", "connection", None),
    "sessions.update": Route("write", "session", "write"),
    "sessions.clear": Route("write", "session", "write"),
    "sessions.archive": Route("write", "session", "write"),
    "sessions.approval_mode": Route("write", "session", "write"),
    "sessions.delete": Route("write", "session", "delete"),
    "sessions.fork": Route("write", "registry", None),
    "auth": Route("none", "connection", None),
    "agent.register": Route("agent", "worker", None),
    "agent.unregister": Route("agent", "worker", None),
    "agent.attach": Route("agent", "session", "agent"),
    "agent.detach": Route("agent", "worker", None),
    "agent.decline": Route("agent", "worker", None),
}
"""Every method of :data:`midstream.protocol.calls.PARAMS`."""


READ_BY_WORKERS: Final = frozenset({"messages", "message", "turn"})
"""What a worker may read of the sessions whose turns it holds (SPEC 10.5)."""


class Calls:
    """Carries dispatched calls to the registry."""

    def __init__(self, registry: Registry, limits: Limits, pool: Pool | None) -> None:
        """Hold calls to these limits; without a pool, workers are refused."""
        self._registry = registry
        self._pool = pool
        self._limits = limits

    def begin(
        self,
        connection: Connection,
        call: Call,
        answer: Callable[[Answer], None],
        send_away: Callable[[], None],
    ) -> None:
        """Carry out a call that the connection has let in; ``answer`` is called once, now or later.

        ``send_away`` closes the connection of a worker whose name another one takes.
        """
        try:
            self._begin(connection, call, answer, send_away)
        except MidstreamError as error:
            if call.method == "subscribe":
                self._give_up(connection, call)
            answer(error)
        except Exception:  # noqa: BLE001 - one call must not end a connection
            _log.exception("call_failed", method=call.method)
            answer(failure())

    def gone(self, worker: Worker) -> None:
        """Tell those who offer turns, and the turns that it holds, that a worker is gone."""
        if self._pool is not None:
            self._pool.unregister(worker)
        worker.gone()

    def _begin(
        self,
        connection: Connection,
        call: Call,
        answer: Callable[[Answer], None],
        send_away: Callable[[], None],
    ) -> None:
        route = ROUTES.get(call.method)
        if route is None:
            raise UnknownMethod(call.method)
        scopes = connection.caller.scopes
        if route.scope != "none" and route.scope not in scopes:
            raise Forbidden(route.scope, call.method)
        nesting = self._limits.nesting
        params, as_sent = connection.codec.decode_params(call.method, call.params, nesting=nesting)
        if getattr(params, "include_internal", False) and "internal" not in scopes:
            raise Forbidden("internal", "include_internal")
        bounds.check(params, self._limits)
        session_id = "" if route.to == "registry" else str(getattr(params, "session_id", ""))
        if route.to == "connection":
            if isinstance(params, UnwatchParams):
                for effect in connection.watching.end():
                    self._registry.unwatch(effect.watcher)
            else:
                self._leave(connection.subscriptions.end(session_id))
            answer(EmptyResult())
            return
        if route.to == "worker":
            answer(self._to_pool(connection, params, send_away))
            return
        if isinstance(params, SubscribeParams):
            self._leave(connection.subscribe(call.id, params))
        command = Command(
            method=call.method,
            params=params,
            as_sent=as_sent,
            caller=connection.caller,
            reply=answer,
            action=_action(route, call.method, session_id, connection.worker),
            worker=connection.worker,
            watcher=connection.watching.ask(call.id, connection.caller)
            if isinstance(params, WatchParams)
            else None,
            subscriber=connection.expect(call.id, session_id, repeatable=route.scope == "read"),
        )
        if route.to == "session":
            self._registry.post(session_id, command)
        else:
            self._registry.post_global(command)

    def _give_up(self, connection: Connection, call: Call) -> None:
        """End the subscription that a refused `subscribe` was to replace, where it names one (SPEC 4.2)."""
        with suppress(MidstreamError):
            params, _ = connection.codec.decode_params(
                "unsubscribe", call.params, nesting=self._limits.nesting
            )
            self._leave(connection.subscriptions.end(str(getattr(params, "session_id", ""))))

    def _to_pool(
        self, connection: Connection, params: msgspec.Struct, send_away: Callable[[], None]
    ) -> Answer:
        pool, worker = self._pool, connection.worker
        if pool is None:
            raise not_remote()
        if isinstance(params, RegisterParams):
            if worker is not None:
                raise Refused("registered", f"This connection is worker {worker.name!r} already.")
            worker = Worker(
                params,
                connection.outbox,
                send_away=send_away,
                may_run=lambda ref: self._registry.may_run(connection.caller, ref),
            )
            connection.register(worker)
            before = pool.register(worker, params.concurrency)
            if before is not None and before.instance != worker.instance:
                before.send_away()
            return RegisterResult(lease_ms=round(pool.lease_seconds * 1000))
        if worker is None:
            raise Refused("not_registered", "Call agent.register on this connection first.")
        if isinstance(params, UnregisterParams):
            pool.unregister(worker)
        elif isinstance(params, DetachParams):
            worker.give_up(params.channel)
        elif isinstance(params, DeclineParams):
            pool.decline(worker, params.turn_id)
        return EmptyResult()

    def weigh(self, connection: Connection, before: Caller) -> None:
        """End what the caller may not any more, that it might when it was ``before`` (SPEC 7.16)."""
        caller, registry = connection.caller, self._registry
        for subscription in connection.subscriptions.all():
            kept = "internal" in caller.scopes if subscription.include_internal else True
            kept = kept and "read" in caller.scopes
            if subscription.state is State.STARTING or (
                kept and registry.allows(caller, "read", subscription.session_id)
            ):
                continue  # one that starts is weighed with its answer: then the session is loaded
            registry.leave(subscription.session_id, subscription)
            subscription.close("forbidden", retryable=False)
        if "read" not in caller.scopes or not registry.sees_alike(before, caller):
            for effect in connection.watching.cut():
                registry.unwatch(effect.watcher)
        worker = connection.worker
        if worker is not None:
            worker.weigh()
            if "agent" not in caller.scopes and self._pool is not None:
                self._pool.unregister(worker)
                connection.dismiss()

    def _leave(self, subscription: Subscription | None) -> None:
        if subscription is not None:
            self._registry.leave(subscription.session_id, subscription)


def _action(route: Route, method: str, session_id: str, worker: Worker | None) -> Action | None:
    """Return what a call does with its session: a worker reads the one whose turn it holds as its agent."""
    if worker is not None and method in READ_BY_WORKERS and worker.holds(session_id):
        return "agent"
    return route.action


def failure() -> InternalError:
    """Return the error for a failure of the server itself, of which the caller learns no more than that."""
    return InternalError("The server failed at this call; its log says how. It may have been carried out.")
