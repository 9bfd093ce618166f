"""The one tree of protocol errors (SPEC 11).

Every error has a stable ``code``, says whether the same request may be sent again
(``retryable``), and carries ``details`` from which a program can act. The text says what
happened, what was expected, and what to do; it may change, the code does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from midstream.protocol.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An error as it stands on the wire: ``{code, message, retryable, details?}``."""

    code: str
    message: str
    retryable: bool
    details: dict[str, Value] = {}


class MidstreamError(Exception):
    """The root of all protocol errors; its own code is what an unknown code becomes."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, details: Mapping[str, Value] | None = None) -> None:
        """Keep the text and the machine-readable details."""
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})

    def info(self) -> ErrorInfo:
        """Return the wire form."""
        return ErrorInfo(code=self.code, message=self.message, retryable=self.retryable, details=self.details)


class InternalError(MidstreamError):
    """The server failed; the log has the cause. The request may or may not have been carried out."""

    code = "internal"


_MOST_CHARS = 1000
"""Of a refused value, or its path, that an error repeats: it may be as long as a frame."""


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


class InvalidRequest(MidstreamError):
    """A frame or a parameter does not have the form that SPEC.md gives; nothing was changed.

    ``details.field`` names the field by its path, for example ``parts[0].text``.
    """

    code = "invalid"

    call_id: int | None = None
    """The id of the call that the bad frame was, where it could be read: the error answers that call."""
    write: tuple[int, int] | None = None
    """The channel and the number of the write that the bad frame was, likewise: it is refused (SPEC 14.6)."""

    def __init__(self, field: str, problem: str) -> None:
        """Name the field and say what is wrong with it and what was expected."""
        field, problem = _cut(field), _cut(problem)
        super().__init__(f"{field}: {problem}" if field else problem, {"field": field})

    @property
    def field(self) -> str:
        """The path of the field, for example ``parts[0].text``; empty where the whole is meant."""
        return str(self.details.get("field", ""))


class MalformedFrame(MidstreamError):
    """The framing is broken: no array with a tag, or an unreadable chunk. The connection ends (4500)."""

    code = "malformed"

    def __init__(self, problem: str) -> None:
        """Say what is broken."""
        super().__init__(
            f"This is no frame: {problem}. Send one array with a string tag as one message (SPEC 3.2)."
        )


class UnknownFrame(MidstreamError):
    """The frame's tag is not one of this version; the frame was ignored."""

    code = "unknown_frame"

    def __init__(self, tag: str) -> None:
        """Name the tag."""
        super().__init__(
            f"Frame tag {tag!r} is not known to this server. See SPEC 3 for the tags.", {"tag": tag}
        )


class UnknownMethod(MidstreamError):
    """The call's method is not one of this version."""

    code = "unknown_method"

    def __init__(self, method: str) -> None:
        """Name the method."""
        super().__init__(
            f"Method {method!r} is not known to this server. See SPEC 7 for the methods.", {"method": method}
        )


class NotFound(MidstreamError):
    """The thing does not exist, or the caller may not see it: the two cannot be told apart (SPEC 10)."""

    code = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        """Name the kind (session, message, turn, interaction, input) and the id that was asked for."""
        super().__init__(
            f"There is no {kind} {identifier!r} here. Check the id, or create it first.",
            {"kind": kind, "id": identifier},
        )


class AlreadyExists(MidstreamError):
    """A session with this id exists, and was not created with the same key and content."""

    code = "already_exists"

    def __init__(self, session_id: str) -> None:
        """Name the session."""
        super().__init__(
            f"Session {session_id!r} exists already (or did once). Subscribe to it, or choose another id.",
            {"id": session_id},
        )


class Forbidden(MidstreamError):
    """The caller lacks a scope, may not choose this id, or gave a token that is not accepted (SPEC 10.5)."""

    code = "forbidden"

    def __init__(self, scope: str, field: str) -> None:
        """Name the scope and the field that needs it."""
        super().__init__(
            f"{field} needs the scope {scope!r}, which this connection does not have.", {"field": field}
        )

    @classmethod
    def because(cls, field: str, problem: str) -> Forbidden:
        """Return the error for what is forbidden by something else than a scope."""
        error = cls.__new__(cls)
        MidstreamError.__init__(error, f"{field}: {problem}", {"field": field})
        return error


class Refused(MidstreamError):
    """The request is well formed but the session's state does not allow it; nothing was changed.

    ``details.reason`` is ``turn_running``, ``queue_full``, ``archived``, ``forking``,
    ``delivery_not_allowed``, ``message_open``; of ``agent.attach`` it is ``turn_ended``, ``turn_taken``,
    ``fenced``, ``not_registered`` or ``not_remote`` (SPEC 14.3).
    """

    code = "refused"

    def __init__(self, reason: str, message: str) -> None:
        """Give the reason as a word for programs and as a sentence for people."""
        super().__init__(message, {"reason": reason})


class IdempotencyConflict(MidstreamError):
    """The id or key was used before with other content; nothing was changed."""

    code = "idempotency_conflict"

    def __init__(self, field: str, identifier: str) -> None:
        """Name the field and the id."""
        super().__init__(
            f"{field} {identifier!r} was used before with other content. Use a new id for new content.",
            {"field": field, "id": identifier},
        )


class InteractionClosed(MidstreamError):
    """The interaction has an outcome already; ``details`` say which, and whose it is."""

    code = "interaction_closed"

    def __init__(self, interaction_id: str, status: str, response: Value, resolved_by: str | None) -> None:
        """Give the outcome: its status, the response that won (or null), and who gave it."""
        who = f" by {resolved_by}" if resolved_by else ""
        super().__init__(
            f"Interaction {interaction_id!r} was {status}{who} before this answer came. Nothing was changed.",
            {"id": interaction_id, "status": status, "response": response, "resolved_by": resolved_by},
        )


class IllegalTransition(MidstreamError):
    """A state machine was asked for a move that its table does not have (SPEC 2.6)."""

    code = "illegal_transition"

    def __init__(self, kind: str, identifier: str, before: str, after: str, *, why: str = "") -> None:
        """Name the machine, the entity and both states, and why, where the table alone does not say it."""
        super().__init__(
            f"A {kind} cannot go from {before!r} to {after!r} ({identifier}).{why and ' '}{why}",
            {"kind": kind, "id": identifier, "from": before, "to": after},
        )


class LimitExceeded(MidstreamError):
    """A limit of ``welcome.limits`` was passed; nothing was changed."""

    code = "limit_exceeded"

    def __init__(self, limit: str, maximum: int, actual: int | None = None) -> None:
        """Name the limit, its value, and what was sent."""
        sent = f", got {actual}" if actual is not None else ""
        super().__init__(
            f"Limit {limit!r} is {maximum}{sent}. Send less, or raise it in the server's configuration.",
            {"limit": limit, "maximum": maximum, "actual": actual},
        )


class Overloaded(MidstreamError):
    """The connection or the session has too much to do now; the same request may be sent again."""

    code = "overloaded"
    retryable = True


class Unavailable(MidstreamError):
    """The session cannot be served now (its storage failed, or the server stops); try again later."""

    code = "unavailable"
    retryable = True


_BY_CODE: dict[str, type[MidstreamError]] = {
    kind.code: kind
    for kind in (
        InternalError,
        InvalidRequest,
        MalformedFrame,
        UnknownFrame,
        UnknownMethod,
        NotFound,
        AlreadyExists,
        Forbidden,
        Refused,
        IdempotencyConflict,
        InteractionClosed,
        IllegalTransition,
        LimitExceeded,
        Overloaded,
        Unavailable,
    )
}


def error_from_info(info: ErrorInfo) -> MidstreamError:
    """Rebuild the error of this code; an unknown code gives a plain :class:`MidstreamError`."""
    kind = _BY_CODE.get(info.code, MidstreamError)
    error = kind.__new__(kind)
    MidstreamError.__init__(error, info.message, info.details)
    if kind.code != info.code or kind.retryable != info.retryable:
        # shadows the class's constants for this one error
        vars(error).update(code=info.code, retryable=info.retryable)
    return error
