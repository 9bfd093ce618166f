"""One WebSocket, driven by what its :mod:`~midstream.server.connections.connection` decides."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import structlog
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from midstream.protocol.codec import CODECS
from midstream.server.connections.calls import failure
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.connection import Connection
from midstream.server.connections.deflate import deflating_sealer
from midstream.server.connections.effects import (
    Abort,
    Close,
    Dispatch,
    Effect,
    Leave,
    Resync,
    WatchBegins,
    WatchEnds,
    Weigh,
    Work,
    WorkerGone,
)
from midstream.server.connections.handshake import bearer_of
from midstream.server.connections.outbox import Outbox
from midstream.server.connections.websocket import sealer
from midstream.server.tally import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from midstream.protocol.frames import Call
    from midstream.server.clock import Clock
    from midstream.server.connections.backlog import Backlog
    from midstream.server.connections.calls import Calls, Registry
    from midstream.server.connections.hello import Settings
    from midstream.server.connections.rates import Subjects
    from midstream.server.connections.websocket import WebSocket
    from midstream.server.sessions.commands import Answer
    from midstream.server.tally import Tally

WRITE_BYTES: Final = 64 * 1024
"""What is joined to one write: larger ones cost more to join than they save."""
WRITES_IN_A_ROW: Final = 4
"""Writes before others get a turn: to compress what is in one takes half a millisecond."""
READS_IN_A_ROW: Final = 32
"""Messages that are taken before others get a turn: one read from the kernel can hold thousands."""
READ_BYTES_IN_A_ROW: Final = 64 * 1024
"""Likewise, of long messages: to decode and check one of so many bytes can take tens of milliseconds."""
CLOSE_ABNORMAL: Final = 1006
"""Stands for an end without a close frame (RFC 6455, 7.4.1)."""
_LEAST_DELAY: Final = 0.001
"""Seconds that a timer waits at least, so that rounding cannot make it fire for ever before its deadline."""

_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Office:
    """What all peers of a listener share."""

    settings: Settings
    backlog: Backlog
    """What waits for all readers, and the mark of each outbox."""
    subjects: Subjects
    calls: Calls
    registry: Registry
    clock: Clock
    tally: Tally


class Peer:
    """Reads from a WebSocket, writes to it once a turn of the event loop, and keeps its deadlines.

    There is no task but the reader, and nothing waits for the peer.
    """

    __slots__ = (
        "_connection", "_context", "_flush_planned", "_held", "_is_new", "_is_timed", "_links", "_loop",
        "_office", "_outbox", "_planned_at", "_timer", "_timer_at", "_websocket",
    )  # fmt: skip

    def __init__(self, websocket: WebSocket, connection_id: str, office: Office) -> None:
        """Take over an open WebSocket."""
        self._websocket = websocket
        self._office = office
        self._loop = asyncio.get_running_loop()
        # what a session or another connection plans here is logged as this connection's all the same
        self._context = copy_context()
        self._flush_planned = False
        self._planned_at = 0.0
        """When the next flush was planned, where that is timed."""
        self._is_timed = not office.tally.opened % SAMPLE
        self._held = 0
        """Bytes that wait, as the backlog knows it."""
        self._is_new = True
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        codec = CODECS[str(websocket.subprotocol)]
        deflates = bool(websocket.protocol.extensions)
        bearer = bearer_of(websocket.request)
        tracing = office.tally.tracing
        self._links = () if tracing is None else tuple(tracing.links(websocket.header("traceparent")))
        websocket.forget_handshake()
        outbox = Outbox(
            codec,
            seal=deflating_sealer(codec) if deflates else sealer(codec),
            deflates=deflates,
            wake=self._plan_flush,
            spill=lambda rest: websocket.write([rest]),
            chunk_bytes=office.settings.limits.chunk_bytes,
            backlog=office.backlog,
            tally=office.tally,
        )
        self._outbox = outbox
        self._connection = Connection(
            connection_id, outbox, office.settings, office.subjects, now=office.clock.now(), bearer=bearer
        )

    async def serve(self) -> None:
        """Read until the connection is gone."""
        websocket = self._websocket
        websocket.on_bytes = self._on_bytes
        websocket.on_blocked = self._on_blocked
        # not at once: asyncio is in the middle of writing then, and fails where that breaks the transport
        websocket.on_writable = self._plan_flush
        self._rearm()
        try:
            await self._read()
        except ConnectionClosed as closed:
            self._count_end(closed)
            _log.info("connection_closed", code=closed.rcvd.code if closed.rcvd else None)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._note(0)
            self._perform(self._connection.lost())
            if websocket.state is not State.CLOSED:
                websocket.transport.abort()

    def _count_end(self, closed: ConnectionClosed) -> None:
        """Count an end that this side did not begin, by who did."""
        if self._connection.state == "over":
            return  # counted when it began
        # websockets ends a connection by itself where the peer breaks its protocol
        is_own = closed.sent is not None and not closed.rcvd_then_sent
        frame = closed.sent if is_own else closed.rcvd
        self._office.tally.closed("server" if is_own else "client", frame.code if frame else CLOSE_ABNORMAL)

    @property
    def connection(self) -> Connection:
        """What decides for it."""
        return self._connection

    def go_away(self, reason: str, reconnect_after_ms: int) -> None:
        """Say that the server drains and when to come back."""
        self._connection.go_away(reason, reconnect_after_ms)

    def weigh_rights(self) -> None:
        """Weigh what it may again: who decides it has changed their mind."""
        self._perform(self._connection.weigh())

    def close(self, code: CloseCode, reason: str) -> None:
        """Begin to close, after what waits."""
        self._perform(self._connection.close(code, reason))

    def _replaced(self) -> None:
        self.close(CloseCode.WORKER_REPLACED, "another process registered under this worker's name")

    # Reading

    async def _read(self) -> None:
        count = size = 0
        while True:
            message = await self._websocket.recv()
            if isinstance(message, str):
                self._take(message.encode(), binary=False)
            else:
                self._take(message, binary=True)
            count += 1
            size += len(message)
            if count >= READS_IN_A_ROW or size >= READ_BYTES_IN_A_ROW:
                count = size = 0
                await asyncio.sleep(0)

    def _take(self, data: bytes, *, binary: bool) -> None:
        clock = self._office.clock
        try:
            effects = self._connection.on_message(
                data, binary=binary, now=clock.now(), wall_ms=clock.wall_ms()
            )
            self._perform(effects)
            if self._is_new and self._connection.is_open:
                self._is_new = False
                self._websocket.welcome()
        except Exception:  # noqa: BLE001 - one connection must not end the server
            _log.exception("connection_failed")
            self.close(CloseCode.INTERNAL, "the server failed; its log says how")
        self._rearm()

    def _on_bytes(self) -> None:
        self._connection.on_bytes(self._office.clock.now())

    def _answer(self, call_id: int, answer: Answer) -> None:
        now = self._office.clock.now()
        try:
            effects = self._connection.answer(call_id, answer, now=now)
        except Exception:  # noqa: BLE001 - a session's loop must not learn of it
            _log.exception("answer_failed", answer=type(answer).__name__)
            effects = self._connection.answer(call_id, failure(), now=now)
        self._perform(effects)
        self._rearm()

    # Writing

    def _plan_flush(self) -> None:
        if not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._flush, context=self._context)
            if self._is_timed:
                self._planned_at = self._office.clock.now()

    def _flush(self) -> None:
        self._flush_planned = False
        websocket = self._websocket
        for _ in range(WRITES_IN_A_ROW):
            if not websocket.writable or not (messages := self._outbox.take(WRITE_BYTES)):
                break
            websocket.write(messages)
        else:
            self._plan_flush()
        if self._planned_at and not self._flush_planned:
            self._office.tally.flush.add(self._office.clock.now() - self._planned_at)
            self._planned_at = 0.0
        held = websocket.buffered + self._outbox.size
        if held or self._held:
            self._note(held)
        if self._sample() or websocket.buffered or self._outbox.size:
            self._rearm()
        elif websocket.is_clear and len(self._connection.subscriptions) == 1:
            # what several sessions say in one turn of the event loop is better joined to one write
            self._connection.subscriptions.expedite(websocket.descriptor)

    def _note(self, held: int) -> None:
        """Count what waits, and cut those for whom it waits in vain where that is too much."""
        backlog = self._office.backlog
        self._held = held
        backlog.note(self, held)
        for slow in backlog.to_cut(self._office.clock.now()):
            cast("Peer", slow).cut_as_slow()

    def still_for(self, now: float) -> float:
        """Return for how many seconds no byte has moved."""
        return self._connection.still_for(now)

    def cut_as_slow(self) -> None:
        """Go, because too much waits for too many readers, and this one takes nothing."""
        reason = "takes nothing while too much waits for all"
        self._perform(self._connection.cut(CloseCode.OVERLOADED, reason))

    def _on_blocked(self) -> None:
        self._outbox.halt_express()
        self._plan_flush()

    def _sample(self) -> bool:
        """Tell the connection what was written; say whether that had an effect."""
        websocket = self._websocket
        buffered = websocket.buffered
        effects = self._connection.on_written(
            self._office.clock.now(), moved=websocket.moved, buffered=buffered, paused=not websocket.writable
        )
        self._perform(effects)
        return bool(effects)

    # Time

    def _rearm(self) -> None:
        now = self._office.clock.now()
        deadline = self._connection.next_deadline(now)
        if deadline is None:
            return
        if self._timer is not None:
            if self._timer_at <= deadline:
                return  # it looks again when it fires
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_later(
            max(deadline - now, _LEAST_DELAY), self._on_timer, context=self._context
        )

    def _on_timer(self) -> None:
        self._timer = None
        self._sample()
        self._perform(self._connection.on_time(self._office.clock.now()))
        self._rearm()

    # Effects

    def _perform(self, effects: Sequence[Effect]) -> None:  # noqa: C901 - one line for each kind
        for effect in effects:
            match effect:
                case Work(worker, frame, size):
                    worker.take(frame, size)
                case Dispatch(call):
                    self._office.calls.begin(self._connection, call, self._answers(call), self._replaced)
                case Weigh(before):
                    self._office.calls.weigh(self._connection, before)
                case WorkerGone(worker):
                    self._office.calls.gone(worker)
                case Resync(subscription):
                    self._office.registry.resync(subscription.session_id, subscription)
                case Leave(subscription):
                    self._office.registry.leave(subscription.session_id, subscription)
                case WatchBegins(watcher):
                    self._office.registry.watch(watcher)
                case WatchEnds(watcher):
                    self._office.registry.unwatch(watcher)
                case Close() | Abort():
                    self._end(effect)

    def _answers(self, call: Call) -> Callable[[Answer], None]:
        """Return who is told the answer to a call."""
        answer: Callable[[Answer], None] = partial(self._answer, call.id)
        tracing = self._office.tally.tracing
        return answer if tracing is None else tracing.call(call.method, answer, self._links)

    def _end(self, effect: Close | Abort) -> None:
        code, reason = effect.code, effect.reason
        self._office.tally.closed("server", code)
        if isinstance(effect, Close):
            _log.info("connection_closing", code=code.value, reason=reason)
            self._flush()
            while self._websocket.writable and self._outbox.size:
                self._flush()
            self._websocket.finish(code, reason)
        else:
            self._office.tally.stalls += code is CloseCode.OVERLOADED
            _log.warning("connection_cut", code=code.value, reason=reason)
            self._websocket.cut(code, reason)
