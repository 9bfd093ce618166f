"""The life of one connection (SPEC 3, 6, 11): hello, calls in flight, heartbeats, and every deadline.

Pure: it is told what came and what the time is, writes frames into its outbox, and returns what
else has to be done as effects.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, cast

from msgspec import structs

from midstream.protocol.calls import SubscribeResult
from midstream.protocol.errors import (
    InvalidRequest,
    MalformedFrame,
    MidstreamError,
    Overloaded,
)
from midstream.protocol.frames import (
    Append,
    Call,
    ErrorFrame,
    GoAway,
    Hello,
    PartHandle,
    Ping,
    Pong,
    WriteFrame,
)
from midstream.server.connections import answers, hello
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.effects import (
    Abort,
    Close,
    Dispatch,
    Effect,
    Leave,
    Resync,
    Weigh,
    Work,
    WorkerGone,
)
from midstream.server.connections.heartbeat import Heartbeat
from midstream.server.connections.incoming import Incoming
from midstream.server.connections.overdue import overdue
from midstream.server.connections.pending import InFlight, Pending
from midstream.server.connections.rates import Subjects
from midstream.server.connections.standing import Standing
from midstream.server.connections.subscriptions import Subscriptions
from midstream.server.connections.watching import Watching
from midstream.server.sessions.access import NOBODY
from midstream.server.sessions.commands import Answer, BadWrite

if TYPE_CHECKING:
    from midstream.protocol.calls import AuthParams, SubscribeParams
    from midstream.server.connections.hello import Settings
    from midstream.server.connections.outbox import Outbox
    from midstream.server.connections.subscription import Subscription
    from midstream.server.connections.worker import Worker
    from midstream.server.sessions.commands import Caller


class _Phase(Enum):
    HELLO = "waits for hello"
    OPEN = "open"
    OVER = "over"


class Connection:
    """One connection's state.

    Times are seconds of a clock that never goes back; ``wall_ms`` is ms since the epoch.
    """

    __slots__ = (
        "_drained", "_draining", "_entered", "_heartbeat", "_hello_by", "_in_flight", "_incoming", "_limits",
        "_nonce", "_phase", "_settings", "_standing", "_subjects",
        "codec", "outbox", "subscriptions", "watching", "worker",
    )  # fmt: skip

    def __init__(  # what a connection is made of
        self,
        connection_id: str,
        outbox: Outbox,
        settings: Settings,
        subjects: Subjects,
        *,
        now: float,
        bearer: str | None = None,
    ) -> None:
        """Begin to wait for ``hello``; frames go into ``outbox``. ``bearer`` is the handshake's token."""
        limits = settings.limits
        self.outbox = outbox
        self.codec = outbox.codec
        self._standing = Standing(connection_id, settings.authentication, bearer)
        self.subscriptions = Subscriptions(
            outbox, limit=limits.subscriptions, sync_seconds=settings.sync_seconds
        )
        self.watching = Watching(outbox)
        self._settings = settings
        self._limits = limits
        self._subjects = subjects
        self._phase = _Phase.HELLO
        self._hello_by = now + limits.hello_seconds
        self._draining = False
        self._entered = False
        self._heartbeat = Heartbeat(settings.heartbeat_seconds, now)
        self._nonce = 0
        self._drained = True
        self._in_flight = InFlight(limits, now)
        self._incoming = Incoming(self.codec, limits)
        self.worker: Worker | None = None
        """What the connection is to agents, once it has registered."""

    @property
    def caller(self) -> Caller:
        """Who is connected, as its token says now."""
        return self._standing.caller

    def register(self, worker: Worker) -> None:
        """Become a worker, or another one."""
        self.worker = worker
        self._incoming.become_worker()

    def dismiss(self) -> None:
        """Be no worker any more: its right was lost."""
        self.worker = None
        self._incoming.become_client()

    @property
    def is_open(self) -> bool:
        """Whether ``hello`` was accepted and the end has not begun."""
        return self._phase is _Phase.OPEN

    @property
    def state(self) -> str:
        """Where the connection is: ``hello``, ``open`` or ``over``."""
        return self._phase.name.lower()

    # What comes in

    def on_bytes(self, now: float) -> None:
        """Note that something came from the peer, a message or part of one."""
        self._heartbeat.heard(now)

    def on_message(self, data: bytes, *, binary: bool, now: float, wall_ms: int) -> list[Effect]:
        """Take one WebSocket message."""
        if self._phase is _Phase.OVER:
            return []
        try:
            self._incoming.check_kind(binary=binary)
            if self._phase is _Phase.HELLO:
                return self._on_hello(data, now, wall_ms)
            return self._on_frame(data, now, wall_ms)
        except MalformedFrame as error:
            self.outbox.tally.refused(error.code)
            self.outbox.put_control(ErrorFrame(None, answers.error_info(error)))
            return self._end(Close(CloseCode.BAD_FRAME, error.message))
        except MidstreamError as error:
            if isinstance(error, InvalidRequest) and error.write and self.worker:
                return [Work(self.worker, BadWrite(*error.write, error), len(data))]
            return self._refuse(error.call_id if isinstance(error, InvalidRequest) else None, error)

    def _on_hello(self, data: bytes, now: float, wall_ms: int) -> list[Effect]:
        said = hello.read(self.codec, data, self._limits, draining=self._draining)
        if isinstance(said, Close):
            return self._end(said)
        refusal = self._standing.enter(said.token, now=now, wall_ms=wall_ms)
        if refusal:
            return self._end(refusal)
        self._entered = self._subjects.enter(self.caller.subject, now)
        if not self._entered:
            reason = f"connections_per_subject is {self._limits.connections_per_subject}"
            return self._end(Close(CloseCode.TOO_MANY_CONNECTIONS, reason))
        self._phase = _Phase.OPEN
        self._heartbeat = Heartbeat(self._settings.heartbeat_seconds, now)
        self.outbox.tally.hellos += 1
        self.outbox.put_control(hello.welcome(self._settings, self._standing, wall_ms))
        return []

    def _on_frame(self, data: bytes, now: float, wall_ms: int) -> list[Effect]:
        read = self._incoming.read(data)
        if read is None:
            return []
        frame, size = read
        if isinstance(frame, (Append, WriteFrame, PartHandle)):
            if self.worker is None:
                raise InvalidRequest("tag", "call agent.register on this connection first")
            return [Work(self.worker, frame, size)]
        if isinstance(frame, Call):
            return self._on_auth(frame, now, wall_ms) if frame.method == "auth" else self._on_call(frame, now)
        if isinstance(frame, Hello):
            raise InvalidRequest("tag", "hello was said already; it stands once, at the beginning")
        if isinstance(frame, Ping):
            self.outbox.put_control(Pong(frame.nonce, wall_ms))
        return self._unless_flooded()

    def _on_call(self, call: Call, now: float) -> list[Effect]:
        refused = self._in_flight.refusal(
            call,
            now,
            full=self.outbox.above_mark,
            flooded=not self._subjects.take(self.caller.subject, now),
        )
        if refused is not None:
            return self._refuse(*refused)
        self._in_flight.calls[call.id] = Pending(call.method, now, self.caller)
        return [Dispatch(call)]

    def _on_auth(self, call: Call, now: float, wall_ms: int) -> list[Effect]:
        """Take another token: here, so that it holds for the very next frame."""
        effects = self._on_call(call, now)
        if call.id not in self._in_flight.calls or not effects:
            return effects
        before = self.caller
        try:
            params, _ = self.codec.decode_params(call.method, call.params, nesting=self._limits.nesting)
            answer: Answer = self._standing.renew(cast("AuthParams", params).token, now=now, wall_ms=wall_ms)
        except MidstreamError as error:
            answer = error
        effects = self.answer(call.id, answer, now=now)
        return effects if self.caller is before else [*effects, Weigh(before)]

    def weigh(self) -> list[Effect]:
        """Weigh what the caller may again, though it is who it was; its watch, if any, asks anew."""
        return [Weigh(structs.replace(self.caller, identity=NOBODY))] if self.is_open else []

    # Calls and their answers

    def subscribe(self, call_id: int, params: SubscribeParams) -> Subscription | None:
        """Begin the subscription that this call asks for, and return the one that it replaces, if any.

        The session must let that one go before it is asked for the new one.

        Raises:
            LimitExceeded: the connection has too many; nothing was changed.

        """
        begun, replaced = self.subscriptions.begin(params)
        self._in_flight.calls[call_id].begins = begun
        return replaced

    def expect(self, call_id: int, session_id: str, *, repeatable: bool) -> Subscription | None:
        """Say which session a dispatched call is about, and get the subscription to it, if there is one.

        Its answer goes into that session's lane; ``session_id`` is empty for a call about none. A
        ``repeatable`` call only reads: its answer may be refused when it finds no room.
        """
        subscription = self.subscriptions.get(session_id)
        self._in_flight.calls[call_id].is_about(session_id, subscription, repeatable=repeatable)
        return subscription

    def answer(self, call_id: int, answer: Answer, *, now: float) -> list[Effect]:
        """Put the answer to a dispatched call into the outbox, in the lane of its session.

        Above the mark, the answer to a call that only reads is replaced by ``overloaded``: so what
        a connection can make wait stays bounded. What an answer is made of is read before this
        returns; if that fails, the call still waits for an answer.
        """
        pending = self._in_flight.calls.get(call_id)
        if pending is None:
            return []
        payload = b""
        if not isinstance(answer, MidstreamError) and self._phase is _Phase.OPEN:
            payload = answers.result_frame(self.codec, call_id, answer)
            if pending.repeatable and not self.outbox.admits(len(payload)):
                answer = Overloaded("There is no room for the answer. Read what was sent, then ask again.")
        del self._in_flight.calls[call_id]
        self.outbox.tally.called(pending.method, now - pending.at)
        if pending.subscription:
            pending.subscription.answers_due -= 1
        if self._phase is not _Phase.OPEN:
            return self._give_up(call_id, pending.begins)
        if isinstance(answer, MidstreamError):
            refused = self._refuse(call_id, answer, lane=pending.lane)
            return [*self._give_up(call_id, pending.begins), *refused]
        self.outbox.put(pending.lane or "", payload)
        if pending.begins and isinstance(answer, SubscribeResult):
            self.outbox.tally.sync(answer.sync.mode, len(payload))
            started = self.subscriptions.start(pending.begins, answer, now)
            # not so if it was replaced or left meanwhile: then the session took a subscriber that is over
            if not started:
                return [Leave(pending.begins)]
            return [] if pending.caller is self.caller else [Weigh(pending.caller)]  # its right may be gone
        return self.watching.answered(call_id, succeeded=True)

    def _give_up(self, call_id: int, begins: Subscription | None) -> list[Effect]:
        """End a subscription, or a watch, that did not begin."""
        if begins is None:
            return self.watching.answered(call_id, succeeded=False)
        if self.subscriptions.get(begins.session_id) is begins:
            self.subscriptions.end(begins.session_id)
        return [Leave(begins)]

    def _refuse(self, call_id: int | None, error: MidstreamError, *, lane: str | None = None) -> list[Effect]:
        self.outbox.tally.refused(error.code)
        frame = ErrorFrame(call_id, answers.error_info(error))
        if lane is None:
            self.outbox.put_control(frame)
        else:
            self.outbox.put(lane, self.codec.encode(frame))
        return self._unless_flooded()

    def _unless_flooded(self) -> list[Effect]:
        if not self.outbox.control_full:
            return []
        return self._end(Abort(CloseCode.OVERLOADED, "asks without reading the answers"))

    # What goes out, and time

    def on_written(self, now: float, *, moved: int, buffered: int, paused: bool) -> list[Effect]:
        """Note that the outbox was emptied into the transport as far as that takes.

        ``moved`` is how many bytes the kernel has taken in all, ``buffered`` how many wait in front of
        it, ``paused`` whether the transport wants no more for now.
        """
        if self._phase is not _Phase.OPEN:
            return []
        self._heartbeat.sampled(now, moved=moved, waiting=bool(buffered or self.outbox.size))
        self._drained = not paused and not self.outbox.size
        if self._drained:
            self.watching.on_room()
        return [Resync(subscription) for subscription in self.subscriptions.to_sync(now, empty=self._drained)]

    def on_time(self, now: float) -> list[Effect]:
        """Do what is due. Tell :meth:`on_written` first: a stall is judged by what it said last."""
        if self._phase is _Phase.HELLO and now >= self._hello_by:
            reason = f"no hello came within {self._limits.hello_seconds} s"
            return self._end(Close(CloseCode.HELLO_TIMEOUT, reason))
        if self._phase is not _Phase.OPEN:
            return []
        heartbeat, sync_seconds = self._heartbeat, self._settings.sync_seconds
        end = overdue(now, heartbeat, self._standing, self.subscriptions, sync_seconds=sync_seconds)
        if end is not None:
            return self._end(end)
        if heartbeat.ask(now):
            self._nonce += 1
            self.outbox.put_control(Ping(self._nonce))
        if heartbeat.beat(now):
            self.subscriptions.marks()
        empty = self._drained and not self.outbox.size
        return [Resync(subscription) for subscription in self.subscriptions.to_sync(now, empty=empty)]

    def next_deadline(self, now: float) -> float | None:
        """Return when :meth:`on_time` is to be called next, at the latest; None for never."""
        if self._phase is _Phase.OVER:
            return None
        if self._phase is _Phase.HELLO:
            return self._hello_by
        return min(
            self._heartbeat.next_deadline(),
            self._standing.over_at,
            self.subscriptions.overdue_at(now),
            self.subscriptions.next_pace(),
        )

    # The end

    def go_away(self, reason: str, reconnect_after_ms: int) -> None:
        """Say that the server drains; a connection that has not said hello yet is refused when it does."""
        self._draining = True
        if self._phase is _Phase.OPEN:
            self.outbox.put_control(GoAway(reason, reconnect_after_ms))

    def close(self, code: CloseCode, reason: str) -> list[Effect]:
        """Begin the end from this side, if it has not begun."""
        return [] if self._phase is _Phase.OVER else self._end(Close(code, reason))

    def cut(self, code: CloseCode, reason: str) -> list[Effect]:
        """End at once, without a word to a peer that would not read it."""
        return [] if self._phase is _Phase.OVER else self._end(Abort(code, reason))

    def still_for(self, now: float) -> float:
        """Return for how many seconds something has waited for the peer, and it took nothing."""
        return self._heartbeat.still_for(now)

    def lost(self) -> list[Effect]:
        """Note that the transport is gone; calls go on, their answers are dropped. Harmless when repeated."""
        self._phase = _Phase.OVER
        if self._entered:
            self._entered = False
            self._subjects.leave(self.caller.subject)
        return self._leave_all()

    def _end(self, effect: Close | Abort) -> list[Effect]:
        self._phase = _Phase.OVER
        return [effect, *self._leave_all()]

    def _leave_all(self) -> list[Effect]:
        everyone = self.subscriptions.all()
        for subscription in everyone:
            self.subscriptions.end(subscription.session_id)
        gone: list[Effect] = [Leave(subscription) for subscription in everyone]
        gone += self.watching.end()
        if self.worker is not None:
            gone.append(WorkerGone(self.worker))
            self.worker = None
        return gone
