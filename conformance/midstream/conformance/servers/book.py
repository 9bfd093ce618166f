"""The calls of a connection and their answers: each is answered once, in the right form and place."""

from __future__ import annotations

from typing import cast

import msgspec

from midstream.conformance.outcome import Failed
from midstream.conformance.servers.frame import Map, Plain, short
from midstream.conformance.servers.judging import check_form, check_view
from midstream.conformance.servers.ledger import Ledger
from midstream.conformance.servers.subscription import Subscription
from midstream.protocol.calls import SubscribeResult
from midstream.protocol.codec import Codec
from midstream.protocol.errors import MidstreamError


class CallRefused(Failed):
    """A call was answered by an error; as it stands, what the case did not expect."""

    def __init__(self, method: str, params: Map, info: Map) -> None:
        """Name the call and the error."""
        super().__init__(
            f"{method} was refused", expected=f"{method} {short(params)} to be carried out", seen=info
        )
        self.info = info


class Book:
    """What was asked, and what was answered.

    Attributes:
        calls: by id: the method, its params, and the subscription that it begins.
        answers: the frames of those that were answered.
    """

    def __init__(self, codec: Codec, ledger: Ledger) -> None:
        """Begin without calls."""
        self.calls: dict[int, tuple[str, Map, Subscription | None]] = {}
        self.answers: dict[int, Plain] = {}
        self._codec = codec
        self._ledger = ledger
        self._next_id = 1

    def add(self, method: str, params: Map, subscription: Subscription | None = None) -> int:
        """Note a call, and return the id that it gets."""
        id, self._next_id = self._next_id, self._next_id + 1
        self.calls[id] = (method, params, subscription)
        return id

    def take(self, plain: Plain, subscriptions: dict[str, Subscription]) -> None:
        """Take an answer, and hold it against its call; a subscription begins with it."""
        id = plain[1]
        if id not in self.calls:
            raise Failed("an answer to no call (3.9)", expected="the id of a call", seen=plain)
        if id in self.answers:
            raise Failed("a call was answered twice (3.9)", expected="one answer", seen=plain)
        method, params, subscription = self.calls[id]
        self.answers[id] = plain
        if plain[0] == "error":
            check_form(plain[2])
            return
        self._check_result(method, plain[2])
        if subscription is not None:
            if not self._later(id):  # the last one sent decides (4.2)
                subscriptions[params["session_id"]] = subscription
            typed = cast(
                "SubscribeResult",
                self._codec.decode_result(method, msgspec.Raw(self._codec.encode(plain[2]))),
            )
            subscription.begin(plain[2], typed)
            return
        check_view(method, params, plain[2], self._ledger)
        check_place(method, params, plain[2], subscriptions)

    def _later(self, id: int) -> bool:
        """Say whether another subscribe, or an unsubscribe, of the session was sent after this one."""
        session_id = self.calls[id][1]["session_id"]
        return any(
            other > id and method in {"subscribe", "unsubscribe"} and params.get("session_id") == session_id
            for other, (method, params, _) in self.calls.items()
        )

    def _check_result(self, method: str, result: object) -> None:
        try:
            self._codec.decode_result(method, msgspec.Raw(self._codec.encode(result)))
        except MidstreamError as error:
            raise Failed(
                f"a result of {method} has the wrong form (7)", expected=str(error), seen=result
            ) from error


def check_place(method: str, params: Map, result: Map, subscriptions: dict[str, Subscription]) -> None:
    """An answer stands at its version in the stream (3.7)."""
    subscription = subscriptions.get(params.get("session_id", ""))
    if subscription is None or "version" not in result or method == "sessions.fork" or params.get("stored"):
        return
    if subscription.closed is not None or subscription.channel == -1:
        return
    here = (subscription.replica.epoch, subscription.last)
    if (result["epoch"], result["version"]) != here:
        raise Failed(f"G8: the answer of {method} does not stand at its version", expected=here, seen=result)
