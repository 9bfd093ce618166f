"""Servers that break what goes over one connection (SPEC 3, 6, 11)."""

from __future__ import annotations

from typing import Any, Final, cast

from midstream.protocol.calls import UpdateParams
from midstream.protocol.chunks import chunks
from midstream.protocol.errors import MidstreamError
from midstream.protocol.frames import Mark, Pong
from midstream.server.connections import bounds, outbox
from midstream.server.connections.calls import Calls
from midstream.server.connections.outbox import Outbox
from midstream.server.connections.subscription import State, Subscription
from midstream.server.sessions.commands import Command
from tests.conformance.mutants.mutant import mutant

PUT: Final[Any] = Outbox.put
PUT_CONTROL: Final[Any] = Outbox.put_control
BEGIN: Final[Any] = Calls.begin


def _leave_out_pongs(box: Outbox, frame: object) -> None:
    if not isinstance(frame, Pong):
        PUT_CONTROL(box, frame)


def _pong_the_nonce_before(box: Outbox, frame: object) -> None:
    PUT_CONTROL(box, Pong(frame.nonce - 1, frame.time) if isinstance(frame, Pong) else frame)


def _put_long_frames_beside(box: Outbox, lane: object, payload: bytes) -> None:
    # a lane of its own: what the session says goes on between the pieces
    PUT(box, object() if len(payload) > box.chunk_bytes else cast("Any", lane), payload)


def _mark_too_high(subscription: Subscription) -> None:
    cursor = subscription.cursor
    box = vars_of(subscription, "_outbox")
    if cursor is not None and subscription.state is State.LIVE:
        box.put(
            subscription.session_id,
            box.codec.encode(Mark(vars_of(subscription, "_channel"), cursor.version + 1)),
        )


def vars_of(owner: object, name: str) -> Any:  # noqa: ANN401 - whatever the attribute is
    """Return a private attribute."""
    return getattr(owner, name)


def _drop_and_go_on(subscription: Subscription, broadcast: Any) -> None:  # noqa: ANN401 - passed on
    if subscription.state is not State.LIVE:
        subscription.lacks = subscription.state is State.PACED
    elif vars_of(subscription, "_enter")(broadcast):
        setattr(subscription, "_standing", broadcast.standing)  # noqa: B010 - it is private


def _admit_all(*_: object) -> bool:
    return True


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _change_something_on_errors(
    calls: Calls,
    connection: Any,  # noqa: ANN401 - passed on
    call: Any,  # noqa: ANN401 - passed on
    answer: Any,  # noqa: ANN401 - passed on
    send_away: Any,  # noqa: ANN401 - passed on
) -> None:
    def then(given: Any) -> None:  # noqa: ANN401 - passed on
        answer(given)
        session_id = ""
        if isinstance(given, MidstreamError) and call.method == "prompt":
            params, _ = connection.codec.decode_params("unsubscribe", call.params)
            session_id = params.session_id
        if session_id:
            update = UpdateParams(session_id=session_id, metadata={"an": "error"})
            command = Command(
                method="sessions.update",
                params=update,
                as_sent={},
                caller=connection.caller,
                reply=_nothing,
                action="write",
            )
            vars_of(calls, "_registry").post(session_id, command)

    BEGIN(calls, connection, call, then, send_away)


def _number_chunks_alike(payload: bytes, *, n: int, chunk_bytes: int, codec: Any) -> Any:  # noqa: ANN401 - passed on
    del n
    return chunks(payload, n=1, chunk_bytes=chunk_bytes, codec=codec)


WIRE: Final = (
    mutant(
        "pong-missing",
        "3.9",
        "a ping is answered by a pong",
        "heartbeat",
        (Outbox, "put_control", _leave_out_pongs),
    ),
    mutant(
        "pong-of-another",
        "3.9",
        "a pong has the nonce of its ping",
        "heartbeat.pong",
        (Outbox, "put_control", _pong_the_nonce_before),
    ),
    mutant(
        "chunks-interleaved",
        "3.3",
        "no frame of a session between the pieces of another",
        "framing",
        (Outbox, "put", _put_long_frames_beside),
    ),
    mutant(
        "chunks-numbered-alike",
        "3.3",
        "the numbers of chunks count up",
        "framing",
        (outbox, "chunks", _number_chunks_alike),
    ),
    mutant(
        "mark-too-high",
        "3.9",
        "a mark names where the stream stands",
        "subscribing",
        (Subscription, "mark", _mark_too_high),
    ),
    mutant(
        "mark-missing",
        "3.9",
        "a mark comes with the heartbeat",
        "subscribing.mark",
        (Subscription, "mark", _nothing),
    ),
    mutant(
        "behind-in-part",
        "6",
        "who is behind gets no frame without a sync",
        "slow",
        (Subscription, "publish", _drop_and_go_on),
    ),
    mutant(
        "unbounded",
        "6",
        "what waits for one reader is bounded",
        "slow.behind",
        (Outbox, "admits", _admit_all),
    ),
    mutant("limits-ignored", "11.2", "limits are held", "limits", (bounds, "check", _nothing)),
    mutant(
        "error-changes",
        "1.3",
        "a refused call changes nothing (G16)",
        "refusals",
        (Calls, "begin", _change_something_on_errors),
    ),
)
"""Their names, rules, and where they are to be caught."""
