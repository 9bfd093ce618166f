"""Calls that have no answer yet, and what becomes of them when the connection goes (SPEC 7).

Pure. A call that is harmless to repeat waits for the next connection and goes out again under the
same id; any other is given back, because nobody can know whether it was carried out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from midstream.client.errors import MidstreamError

Answer: TypeAlias = msgspec.Struct | MidstreamError
"""A result of :data:`midstream.protocol.calls.RESULTS`, or why there is none."""
Reply: TypeAlias = Callable[[Answer], None]
"""Is called once, in the middle of the stream: after the frames before the answer, before those after it."""


class PendingCall:
    """One call without an answer."""

    __slots__ = ("abandoned", "attempts", "id", "lane", "method", "params", "repeatable", "reply")

    def __init__(
        self,
        id: int,
        method: str,
        params: msgspec.Struct,
        reply: Reply,
        *,
        lane: str | None,
        repeatable: bool,
    ) -> None:
        """Hold what is needed to send it, and to send it again."""
        self.id = id
        self.method = method
        self.params = params
        self.reply = reply
        self.lane = lane
        """The session that it speaks of: what goes to one session goes in order."""
        self.repeatable = repeatable
        self.attempts = 0
        """How often the server put it off."""
        self.abandoned = False
        """Nobody waits for the answer any more; until it comes, the call still counts at the server."""


class CallTable:
    """All calls of a client without an answer: waiting to be sent, in flight, or put off for a while."""

    def __init__(self) -> None:
        """Begin empty."""
        self._next_id = 0
        self._urgent: deque[PendingCall] = deque()
        self._waiting: deque[PendingCall] = deque()
        self._in_flight: dict[int, PendingCall] = {}
        self._put_off: dict[int, PendingCall] = {}

    def __len__(self) -> int:
        """Return how many calls have no answer."""
        return len(self._urgent) + len(self._waiting) + len(self._in_flight) + len(self._put_off)

    def add(
        self,
        method: str,
        params: msgspec.Struct,
        reply: Reply,
        *,
        lane: str | None = None,
        repeatable: bool,
        urgent: bool = False,
    ) -> PendingCall:
        """Take a call. It waits until :meth:`take` gives it out; urgent ones go before all others."""
        call = PendingCall(self._next_id, method, params, reply, lane=lane, repeatable=repeatable)
        self._next_id += 1
        (self._urgent if urgent else self._waiting).append(call)
        return call

    def take(self, limit: int) -> PendingCall | None:
        """Return the next call to send, now in flight; None where none waits or ``limit`` are in flight."""
        if len(self._in_flight) >= limit:
            return None
        queue = self._urgent or self._waiting
        if not queue:
            return None
        call = queue.popleft()
        self._in_flight[call.id] = call
        return call

    def answered(self, call_id: int) -> PendingCall | None:
        """Return the call that was answered, which is forgotten; None for an id that is not in flight."""
        return self._in_flight.pop(call_id, None)

    def put_off(self, call: PendingCall) -> None:
        """Keep a call that the server put off, until :meth:`resume` or the next connection."""
        call.attempts += 1
        self._put_off[call.id] = call

    def resume(self, call: PendingCall) -> None:
        """Let a call that was put off wait to be sent again."""
        if self._put_off.pop(call.id, None):
            self._waiting.append(call)

    def abandon(self, call: PendingCall) -> None:
        """Wait for this answer no longer. A call that was not sent never is."""
        call.abandoned = True
        self._put_off.pop(call.id, None)
        for queue in (self._urgent, self._waiting):
            if call in queue:
                queue.remove(call)

    def disconnected(self) -> list[tuple[PendingCall, bool]]:
        """Return the calls that will never be answered, and whether each may have been carried out.

        All others wait for the next connection, in the order in which they were made.
        """
        lost = [(call, True) for call in self._in_flight.values() if not call.repeatable]
        undone = (*self._urgent, *self._waiting, *self._put_off.values())
        lost += [(call, False) for call in undone if not call.repeatable]
        again = (*self._in_flight.values(), *undone)
        self._waiting = deque(
            sorted(
                (call for call in again if call.repeatable and not call.abandoned), key=lambda call: call.id
            )
        )
        self._urgent.clear()
        self._in_flight.clear()
        self._put_off.clear()
        return [(call, sent) for call, sent in lost if not call.abandoned]

    def clear(self) -> list[PendingCall]:
        """Forget all calls, and return those that somebody waits for."""
        gone = (*self._in_flight.values(), *self._urgent, *self._waiting, *self._put_off.values())
        for queue in (self._urgent, self._waiting):
            queue.clear()
        self._in_flight.clear()
        self._put_off.clear()
        return [call for call in gone if not call.abandoned]
