"""Reads Chat Completions, and what speaks it: Azure, DeepSeek, Groq, Mistral."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from midstream.adapters.events import Finished, TextDelta
from midstream.adapters.plain import Plain, items, text
from midstream.adapters.reader import Reader

if TYPE_CHECKING:
    from midstream.adapters.events import Event


class OpenAIChatReader(Reader):
    """Reads one stream of ``chat.completion.chunk`` objects."""

    provider = "openai"

    def events(self, event: Plain) -> Iterable[Event]:
        """Return what a chunk says."""
        for choice in items(event, "choices"):
            words = text(choice, "delta", "content")
            if words:
                yield TextDelta("text", words)
            reason = text(choice, "finish_reason")
            if reason:
                yield Finished("stop", reason)
