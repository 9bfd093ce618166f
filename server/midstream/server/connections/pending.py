"""A call that was taken and is not answered yet. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from midstream.protocol.errors import InvalidRequest, Overloaded
from midstream.server.connections.rates import Bucket, too_fast

if TYPE_CHECKING:
    from midstream.protocol.errors import MidstreamError
    from midstream.protocol.frames import Call
    from midstream.protocol.limits import Limits
    from midstream.server.connections.subscription import Subscription
    from midstream.server.sessions.commands import Caller

_Refusal: TypeAlias = "tuple[int | None, MidstreamError]"


class InFlight:
    """The calls of a connection that are not answered yet, and whether one more may be taken."""

    __slots__ = ("_bucket", "_limits", "calls")

    def __init__(self, limits: Limits, now: float) -> None:
        """Begin with none."""
        self._limits = limits
        self._bucket = Bucket(limits.calls_per_second, now)
        self.calls: dict[int, Pending] = {}

    def refusal(self, call: Call, now: float, *, full: bool, flooded: bool) -> _Refusal | None:
        """Return why a call is not taken, and the id of the answer.

        ``full``: more waits than is read; ``flooded``: all connections of the subject make too many calls.
        """
        limits = self._limits
        if call.id in self.calls:
            # an error with this id would be taken for the answer to the call that has it
            problem = f"call {call.id} is not answered yet; give each call an id of its own"
            return None, InvalidRequest("id", problem)
        if not self._bucket.take(now):
            return call.id, too_fast("calls_per_second", limits.calls_per_second)
        if flooded:
            return call.id, too_fast("calls_per_subject", limits.calls_per_subject)
        if len(self.calls) >= limits.calls_in_flight:
            return call.id, too_fast("calls_in_flight", limits.calls_in_flight)
        # whoever leaves makes what waits less, and does not come back to hear of a refusal
        if full and call.method != "unsubscribe":
            return call.id, Overloaded(
                "More waits to be sent than this connection reads. Read, then ask again."
            )
        return None


class Pending:
    """What a connection knows of a call until its answer: whose lane it goes to, and what it begins."""

    __slots__ = ("at", "begins", "caller", "lane", "method", "repeatable", "subscription")

    def __init__(self, method: str, at: float, caller: Caller) -> None:
        """Take a call at a time, by the rights that its caller has then."""
        self.caller = caller
        self.method = method
        self.at = at
        self.lane: str | None = None  # before the params were understood
        self.subscription: Subscription | None = None
        self.begins: Subscription | None = None
        self.repeatable = False

    def is_about(self, session_id: str, subscription: Subscription | None, *, repeatable: bool) -> None:
        """Know its session, and the caller's subscription to that; ``repeatable``: it only reads."""
        self.lane = session_id
        self.repeatable = repeatable
        if subscription and not repeatable:
            self.subscription = subscription
            subscription.answers_due += 1
