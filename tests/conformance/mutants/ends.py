"""Servers that break how they answer, refuse, listen and end connections (SPEC 3.5, 3.6, 4.1, 11)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from midstream.protocol.errors import ErrorInfo
from midstream.server.connections import answers
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.connection import Connection
from midstream.server.connections.effects import Close
from midstream.server.connections.heartbeat import Heartbeat
from midstream.server.connections.subscriptions import Subscriptions
from midstream.server.connections.watching import Watching
from midstream.server.sessions.stream import Stream
from tests.conformance.mutants.mutant import mutant

INFO: Final[Any] = answers.error_info
END: Final[Any] = vars(Connection)["_end"]


def _without_details(error: Any) -> ErrorInfo:  # noqa: ANN401 - passed on
    info: ErrorInfo = INFO(error)
    return structs.replace(info, details={})


def _retryable(error: Any) -> ErrorInfo:  # noqa: ANN401 - passed on
    info: ErrorInfo = INFO(error)
    return structs.replace(info, retryable=True)


def _end_as_failed(connection: Connection, effect: Any) -> Any:  # noqa: ANN401 - passed on
    return END(connection, Close(CloseCode.INTERNAL, effect.reason) if isinstance(effect, Close) else effect)


def _end_at_once(connection: Connection, call_id: object, error: Any, **_: object) -> Any:  # noqa: ANN401 - passed on
    del call_id
    return END(connection, Close(CloseCode.BAD_FRAME, str(error)))


def _never(*_: object) -> bool:
    return False


def _no_time(*_: object) -> float:
    return 0.0


def _none(*_: object, **__: object) -> None:
    """Do nothing."""


def _no_effects(*_: object) -> list[Any]:
    return []


ENDS: Final = (
    mutant(
        "details-missing",
        "11.1",
        "an error names what is at fault",
        "refusals limits",
        (answers, "error_info", _without_details),
    ),
    mutant(
        "always-retryable",
        "11.1",
        "an error says whether trying again helps",
        "refusals framing",
        (answers, "error_info", _retryable),
    ),
    mutant(
        "close-codes-alike",
        "11.3",
        "the close code says whether to come back",
        "handshake framing workers",
        (Connection, "_end", _end_as_failed),
    ),
    mutant(
        "errors-end-it",
        "3.2",
        "after an error of a frame the connection stays",
        "handshake framing",
        (Connection, "_refuse", _end_at_once),
    ),
    mutant(
        "silence-suffered",
        "3.5",
        "who is silent for two heartbeats is cut",
        "heartbeat",
        (Heartbeat, "lost", _never),
    ),
    mutant("never-asks", "3.5", "silence is asked about by a ping", "heartbeat", (Heartbeat, "ask", _never)),
    mutant(
        "stall-suffered",
        "6",
        "who takes no byte for a heartbeat is cut",
        "slow",
        (Heartbeat, "stalled", _never),
        (Heartbeat, "still_for", _no_time),
    ),
    mutant(
        "unsubscribe-ignored",
        "7.2",
        "nothing comes after `unsubscribe`",
        "subscribing",
        (Subscriptions, "end", _none),
    ),
    mutant(
        "unwatch-ignored",
        "7.11",
        "nothing is told after `sessions.unwatch`",
        "watching",
        (Watching, "end", _no_effects),
    ),
    mutant(
        "goaway-missing",
        "3.9",
        "a server that stops says `goaway`",
        "restarts.goaway",
        (Connection, "go_away", _none),
    ),
    mutant("signals-lost", "7.13", "signals reach who subscribes", "subscribing", (Stream, "signal", _none)),
    mutant(
        "closed-untold",
        "11.4",
        "a subscription that ends is told so",
        "subscribing sessions",
        (Stream, "close", _none),
    ),
)
"""Their names, rules, and where they are to be caught."""
