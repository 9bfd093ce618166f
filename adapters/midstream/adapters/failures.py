"""How a stream breaks: the provider's own words for it, and whether trying again may help (pure)."""

from __future__ import annotations

from midstream.adapters.events import StreamError
from midstream.adapters.plain import at, mapping, text, whole

CUT = StreamError(
    "stream_ended_early",
    "The model's stream ended before the model said that it was done.",
    recoverable=True,
)
"""What is told of a stream that just ends: a connection that broke can look like that."""
EMPTY = StreamError(CUT.code, "The model's stream ended before its first event.", recoverable=True)

_FINAL = frozenset(
    {
        "authentication_error",
        "billing_hard_limit_reached",
        "content_filter",
        "context_length_exceeded",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_image",
        "invalid_prompt",
        "invalid_request_error",
        "model_not_found",
        "not_found_error",
        "permission_error",
        "request_too_large",
    }
)
"""Codes with which the same request would fail again."""
_CLIENT_ERRORS = range(400, 500)
_PASSING = (408, 409, 425, 429)
"""Of the HTTP statuses, which some send as the code: the client's own faults, and those that pass."""


def told(error: object) -> StreamError:
    """Return the error that an event holds, in the provider's words; ``error`` is an object, or a text."""
    if isinstance(error, str):
        return StreamError("stream_failed", error, recoverable=True)
    number = whole(error, "code")
    code = text(error, "code") or text(error, "type") or ("stream_failed" if number is None else str(number))
    message = text(error, "message") or "The provider broke the stream off without a reason."
    return StreamError(code, message, recoverable=not _is_final({code, text(error, "type")}, number))


def raised(error: Exception) -> StreamError:
    """Return what people are told of an exception: the provider's words where it gave some, else its kind.

    The text of an arbitrary exception may hold addresses and keys, and goes to everybody in the session.
    """
    body: object = getattr(error, "body", None)
    given = mapping(body, "error") or mapping(body)
    code, kind, message = text(given, "code"), text(given, "type"), text(given, "message")
    final = _is_final({code, kind}, at({"status": getattr(error, "status_code", None)}, "status"))
    return StreamError(
        code or kind or "stream_failed",
        message or f"The model's stream broke off with {type(error).__name__}.",
        recoverable=not final,
    )


def _is_final(codes: set[str], status: object) -> bool:
    return bool(codes & _FINAL) or (status in _CLIENT_ERRORS and status not in _PASSING)
