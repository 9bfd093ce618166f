"""What can go wrong, as a client sees it: the protocol's errors, and those of the client itself.

All of them are :class:`MidstreamError`. A server's refusal arrives as the class of its code
(SPEC 11); what only a client can know (the link is gone, nobody answered) derives from
:class:`ClientError`.
"""

from __future__ import annotations

from midstream.protocol.errors import (
    AlreadyExists,
    Forbidden,
    IdempotencyConflict,
    IllegalTransition,
    InteractionClosed,
    InternalError,
    InvalidRequest,
    LimitExceeded,
    MidstreamError,
    NotFound,
    Overloaded,
    Refused,
    Unavailable,
    UnknownFrame,
    UnknownMethod,
)

__all__ = [
    "AlreadyExists",
    "ClientClosed",
    "ClientError",
    "ConnectionLost",
    "ConnectionRejected",
    "Forbidden",
    "IdempotencyConflict",
    "IllegalTransition",
    "IncompatibleServer",
    "InputCancelled",
    "InteractionClosed",
    "InternalError",
    "InvalidRequest",
    "LimitExceeded",
    "MidstreamError",
    "NotFound",
    "OutboxFull",
    "Overloaded",
    "Refused",
    "SessionClosed",
    "TimedOut",
    "Unavailable",
    "UnknownFrame",
    "UnknownMethod",
]


class ClientError(MidstreamError):
    """What the client itself has to say; no server sent it."""

    code = "client"


class ConnectionLost(ClientError):
    """The connection went away, and the request cannot be sent again by itself without harm.

    ``details.sent`` says whether it had been sent: then its outcome is unknown.
    """

    code = "connection_lost"

    def __init__(self, method: str, *, sent: bool) -> None:
        """Name the method, and say what is known of its outcome."""
        if sent:
            text = (
                f"The connection was lost before {method!r} was answered; it may or may not have been done. "
                "Look at the session when it is live again, and then decide whether to repeat it."
            )
        else:
            text = (
                f"There is no connection, so {method!r} was not sent: later it could mean something else. "
                "Repeat it when the session is live."
            )
        super().__init__(text, {"method": method, "sent": sent})


class TimedOut(ClientError, TimeoutError):
    """What was waited for did not happen in time; ``details.problem`` is the connection's last trouble."""

    code = "timed_out"

    def __init__(self, what: str, seconds: float, problem: str | None) -> None:
        """Say what was waited for, how long, and what is known to be in the way."""
        because = f" The connection's last problem: {problem}" if problem else ""
        super().__init__(
            f"{what} did not happen within {seconds:g} s.{because} The client goes on trying; "
            "wait again, or give a longer timeout.",
            {"seconds": seconds, "problem": problem},
        )


class SessionClosed(ClientError):
    """The session is closed for this client; ``details.reason`` says why."""

    code = "session_closed"

    def __init__(self, session_id: str, reason: str) -> None:
        """Name the session and why it is closed."""
        super().__init__(
            f"Session {session_id!r} is closed here ({reason}). What it held can still be read; "
            "to go on, ask the client for the session again.",
            {"id": session_id, "reason": reason},
        )


class ClientClosed(ClientError):
    """The client is closed, so nothing can be sent any more."""

    code = "client_closed"

    def __init__(self) -> None:
        """There is nothing to name."""
        super().__init__("The client is closed. Make a new Client to connect again.")


class OutboxFull(ClientError):
    """Too many prompts wait for the connection; this one was not taken."""

    code = "outbox_full"

    def __init__(self, session_id: str, limit: int) -> None:
        """Name the session and how many may wait."""
        super().__init__(
            f"Session {session_id!r} has {limit} prompts waiting to be sent, which is the limit. "
            "Wait until the connection is back, or make the client with a larger outbox_limit.",
            {"id": session_id, "limit": limit},
        )


class IncompatibleServer(ClientError):
    """What answers at the URL does not speak this protocol, or not this version of it."""

    code = "incompatible_server"

    def __init__(self, problem: str) -> None:
        """Say what was seen and what was expected."""
        super().__init__(
            f"{problem} Check the URL, and that client and server are of the same protocol version."
        )


class ConnectionRejected(ClientError):
    """The server closed the connection with a code that says not to come back (4500-4999)."""

    code = "connection_rejected"

    def __init__(self, close_code: int, reason: str) -> None:
        """Give the close code and the server's words."""
        super().__init__(
            f"The server closed the connection for good: code {close_code}{', ' + reason if reason else ''}. "
            "SPEC 11 lists the codes; repair the cause and make a new Client.",
            {"close_code": close_code, "reason": reason},
        )


class InputCancelled(ClientError):
    """The prompt was cancelled before a turn took it, so there is no turn to wait for."""

    code = "input_cancelled"

    def __init__(self, message_id: str) -> None:
        """Name the message."""
        super().__init__(
            f"Prompt {message_id!r} was cancelled before a turn took it. Send it anew, as a new message.",
            {"id": message_id},
        )
