"""Calls and their answers: sending, matching, repeating, putting off (SPEC 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TypeVar

import msgspec

from midstream.client.calls import Answer, CallTable, PendingCall, Reply
from midstream.client.errors import (
    ConnectionLost,
    IncompatibleServer,
    LimitExceeded,
    MidstreamError,
    TimedOut,
)
from midstream.client.reconnect import full_jitter
from midstream.client.timers import Timers
from midstream.client.transport import Transport
from midstream.protocol.codec import Codec
from midstream.protocol.errors import error_from_info
from midstream.protocol.frames import ErrorFrame, Result
from midstream.protocol.limits import DEFAULT_LIMITS, Limits

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")


class Exchange:
    """All calls of a client, over however many connections it takes.

    A repeatable call survives its connection, and is made again, with growing pauses, where the
    server says that it may be (``overloaded``, ``unavailable``). Any other is answered by
    :class:`ConnectionLost` when the connection goes, and is not even sent without one.
    """

    def __init__(self, codec: Codec, random: Random, timers: Timers, *, timeout_s: float | None) -> None:
        """Begin without a connection; :meth:`ask` waits for ``timeout_s`` seconds (None: without end)."""
        self.timeout_s = timeout_s
        self.problem: str | None = None
        """What last stood between this client and the server, for the texts of errors."""
        self._codec = codec
        self._random = random
        self._timers = timers
        self._table = CallTable()
        self._transport: Transport | None = None
        self.limits: Limits = DEFAULT_LIMITS
        """What the server last said that it takes; before it said anything, the defaults."""
        self._held = False
        self._closed: MidstreamError | None = None

    @property
    def connected(self) -> bool:
        """Say whether calls go out now."""
        return self._transport is not None

    def start(
        self,
        method: str,
        params: msgspec.Struct,
        reply: Reply,
        *,
        lane: str | None = None,
        repeatable: bool,
        urgent: bool = False,
    ) -> PendingCall | None:
        """Make a call; ``reply`` is called once, perhaps before this returns (then it returns None)."""
        if self._closed is not None:
            reply(self._closed)
            return None
        if not repeatable and self._transport is None:
            reply(ConnectionLost(method, sent=False))
            return None
        call = self._table.add(method, params, reply, lane=lane, repeatable=repeatable, urgent=urgent)
        self._send()
        return call

    def abandon(self, call: PendingCall) -> None:
        """Wait for an answer no longer; the call may be carried out all the same."""
        self._table.abandon(call)

    async def ask(
        self, method: str, params: msgspec.Struct, kind: type[R], *, lane: str | None = None, repeatable: bool
    ) -> R:
        """Make a call and return its result, of the type ``kind``.

        Raises:
            ConnectionLost: the call cannot be repeated by itself, and the connection went.
            TimedOut: no answer within the client's ``call_timeout``.
            MidstreamError: the server's refusal.

        """
        return await self.ask_and_take(
            method, params, kind, lambda result: result, lane=lane, repeatable=repeatable
        )

    async def ask_and_take(
        self,
        method: str,
        params: msgspec.Struct,
        kind: type[R],
        take: Callable[[R], T],
        *,
        lane: str | None = None,
        repeatable: bool,
    ) -> T:
        """Make a call and return what ``take`` makes of its result.

        ``take`` is called in the middle of the stream, where the answer stands: the replica is then at
        the version that the answer shows. Raises what :meth:`ask` raises.
        """
        future: asyncio.Future[T | MidstreamError] = asyncio.get_running_loop().create_future()

        def settle(answer: Answer) -> None:
            if future.done():
                return
            if isinstance(answer, kind):
                future.set_result(take(answer))
            elif isinstance(answer, MidstreamError):
                future.set_result(answer)
            else:
                wrong = f"{method!r} was answered by a {type(answer).__name__}."
                future.set_result(IncompatibleServer(wrong))

        call = self.start(method, params, settle, lane=lane, repeatable=repeatable)
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await future
        except TimeoutError:
            raise TimedOut(f"An answer to {method!r}", self.timeout_s or 0.0, self.problem) from None
        finally:
            if call is not None and (future.cancelled() or not future.done()):
                self.abandon(call)
        if isinstance(answer, MidstreamError):
            raise answer
        return answer

    def connect(self, transport: Transport, limits: Limits) -> None:
        """Use this connection. Nothing goes out until :meth:`send`, so that what is urgent goes first."""
        self._transport = transport
        self.limits = limits
        self._held = True

    def send(self) -> None:
        """Send what waits and may go, and from now on what is started."""
        self._held = False
        self._send()

    def disconnect(self) -> None:
        """Learn that the connection is gone."""
        self._transport = None
        for call, sent in self._table.disconnected():
            call.reply(ConnectionLost(call.method, sent=sent))

    def close(self, error: MidstreamError) -> None:
        """Answer every call with this error, and each that will come."""
        self._transport = None
        self._closed = error
        for call in self._table.clear():
            call.reply(error)

    def answered(self, frame: Result | ErrorFrame) -> None:
        """Give an answer to the call that asked for it; one that nobody asked for is ignored."""
        call = self._table.answered(frame.id) if frame.id is not None else None
        if call is not None:
            self._settle(call, self._answer(call, frame))
        self._send()

    def _answer(self, call: PendingCall, frame: Result | ErrorFrame) -> Answer:
        if isinstance(frame, ErrorFrame):
            return error_from_info(frame.error)
        try:
            return self._codec.decode_result(call.method, frame.result)
        except MidstreamError as error:
            return IncompatibleServer(f"The result of {call.method!r} cannot be read: {error}.")

    def _settle(self, call: PendingCall, answer: Answer) -> None:
        if call.abandoned:
            return
        if isinstance(answer, MidstreamError) and answer.retryable and call.repeatable:
            self._put_off(call)
        else:
            call.reply(answer)

    def _put_off(self, call: PendingCall) -> None:
        pause = full_jitter(self._random, call.attempts)
        self._table.put_off(call)
        self._timers.later(pause, lambda: self._resume(call))

    def _resume(self, call: PendingCall) -> None:
        self._table.resume(call)
        self._send()

    def _send(self) -> None:
        while self._transport is not None and not self._held:
            call = self._table.take(self.limits.calls_in_flight)
            if call is None:
                return
            try:
                payload = self._codec.call(call.id, call.method, call.params)
                if len(payload) > self.limits.frame_bytes:
                    raise LimitExceeded("frame_bytes", self.limits.frame_bytes, len(payload))
            except MidstreamError as error:
                self._table.answered(call.id)
                call.reply(error)
            else:
                self._transport.send(payload, call.lane)
