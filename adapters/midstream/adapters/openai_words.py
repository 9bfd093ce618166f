"""What both of OpenAI's formats say in almost the same words: usage, citations (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import Data, UrlSource
from midstream.adapters.plain import mapping, whole
from midstream.adapters.reader import usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
