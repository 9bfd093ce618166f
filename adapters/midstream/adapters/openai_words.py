"""The words that both of OpenAI's formats share: errors, citations, usage (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import Data, StreamError, UrlSource
from midstream.adapters.plain import mapping, text, whole
from midstream.adapters.reader import usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CUT = StreamError(
    "stream_cut", "The model's stream ended before the model said that it was done.", recoverable=True
)
"""What is told of a stream that just ends: a connection that broke can look like that."""

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
    }
)
"""Codes with which the same request would fail again."""
_CLIENT_ERRORS = range(400, 500)
_TOO_MANY = 429
"""Of the HTTP statuses, which some send as the code: the client's own faults, and the one that passes."""


def stream_error(error: object) -> StreamError:
    """Return the error of an event, in the provider's words; ``error`` is its object, or a text."""
    if isinstance(error, str):
        return StreamError("stream_failed", error, recoverable=True)
    number = whole(error, "code")
    code = text(error, "code") or text(error, "type") or ("stream_failed" if number is None else str(number))
    message = text(error, "message") or "The provider broke the stream off without a reason."
    final = bool({code, text(error, "type")} & _FINAL) or (number in _CLIENT_ERRORS and number != _TOO_MANY)
    return StreamError(code, message, recoverable=not final)


def token_usage(counts: object) -> Data:
    """Return the ``usage`` data of a ``usage`` object, in the names of either format."""

    def first(*paths: tuple[str, ...]) -> int | None:
        return next((number for path in paths if (number := whole(counts, *path)) is not None), None)

    return Data(
        "usage",
        usage(
            input_tokens=first(("prompt_tokens",), ("input_tokens",)),
            output_tokens=first(("completion_tokens",), ("output_tokens",)),
            total_tokens=first(("total_tokens",)),
            reasoning_tokens=first(
                ("completion_tokens_details", "reasoning_tokens"),
                ("output_tokens_details", "reasoning_tokens"),
            ),
            cached_tokens=first(
                ("prompt_tokens_details", "cached_tokens"),
                ("input_tokens_details", "cached_tokens"),
                ("prompt_cache_hit_tokens",),
            ),
            raw=mapping(counts),
        ),
    )


class Pages:
    """The pages that were named as sources, each said once however often it is cited."""

    def __init__(self) -> None:
        """Begin with none."""
        self._said: set[str] = set()

    def say(self, pages: Iterable[tuple[str, str]]) -> Iterator[UrlSource]:
        """Return the sources among the addresses and titles that were not said before."""
        for url, title in pages:
            if url and url not in self._said:
                self._said.add(url)
                yield UrlSource(url, title=title or None)
