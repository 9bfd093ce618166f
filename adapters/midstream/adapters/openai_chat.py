"""Reads Chat Completions, and what speaks it: Azure, DeepSeek, Groq, Mistral, OpenRouter and more (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from midstream.adapters.events import (
    Data,
    File,
    Finished,
    FinishReason,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    Refusal,
    StepBoundary,
    TextDelta,
    TextEnded,
    TextStarted,
)
from midstream.adapters.failures import CUT, told
from midstream.adapters.openai_chat_tools import ChatTools, as_piece
from midstream.adapters.openai_words import Pages, token_usage
from midstream.adapters.plain import Plain, at, carried, items, mapping, text, whole
from midstream.adapters.reader import Reader

if TYPE_CHECKING:
    from midstream.adapters.events import Event

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
    "insufficient_system_resource": "error",
}
DELTA = {
    "annotations", "audio", "content", "function_call", "images", "index", "reasoning", "reasoning_content",
    "reasoning_details", "refusal", "role", "tool_calls",
}  # fmt: skip
"""The fields of a delta that are read; another one that says something is counted as unknown."""
DERIVED = ("content.", "refusal.", "logprobs.", "tool_calls.")
"""Events of ``client.chat.completions.stream`` that the library makes of the chunks it sends as well."""


class OpenAIChatReader(Reader):
    """Reads one stream of ``chat.completion.chunk``, or several in a row (a step boundary between them)."""

    provider = "openai-chat"

    def __init__(self) -> None:
        """Begin a stream."""
        super().__init__()
        self._choices: dict[int, _Choice] = {}
        self._pages = Pages()
        self._finished = False
        self._failed = False

    def read(self, event: object) -> list[Event]:
        """Return what a chunk says; also of the events of ``client.chat.completions.stream``."""
        kind = getattr(event, "type", None)
        if isinstance(kind, str) and kind.startswith(DERIVED):
            return []
        return super().read(getattr(event, "chunk", event) if kind == "chunk" else event)

    def events(self, event: Plain) -> Iterator[Event]:
        """Return what a plain chunk says."""
        if "choices" not in event and (inner := mapping(event, "data") or mapping(event, "chunk")):
            event = inner  # wrapped, as Mistral's client and OpenAI's own do
        if error := event.get("error"):
            self._failed = True
            yield told(error)
        for number, choice in enumerate(items(event, "choices")):
            yield from self._choice(whole(choice, "index") or number, choice)
        yield from self._around(event)
        if not {"choices", "usage", "error", "x_groq"} & event.keys():
            self.skip(text(event, "type") or text(event, "object"))

    def end(self) -> list[Event]:
        """Return what is left; a stream that never said why it finished was cut."""
        left = [said for choice in self._choices.values() for said in choice.close()]
        return left if self._finished or self._failed else [*left, CUT]

    def _choice(self, number: int, choice: object) -> Iterator[Event]:
        delta = mapping(choice, "delta") or mapping(choice, "message")
        for field in delta.keys() - DELTA:
            if delta[field]:
                self.skip(f"delta.{field}")
        if number not in self._choices:
            if self._finished and not self._choices and _says_something(delta):
                self._finished = False
                yield StepBoundary()
            self._choices[number] = _Choice(self)
        yield from self._choices[number].delta(delta)
        yield from self._pages.say(_cited(delta))
        yield from _filtered(at(choice, "content_filter_results"))
        if reason := text(choice, "finish_reason"):
            yield from self._choices.pop(number).finish()
            self._finished = True
            yield Finished(REASONS.get(reason, "other"), reason)

    def _around(self, event: Plain) -> Iterator[Event]:
        """Return what stands in a chunk beside its choices."""
        if counts := mapping(event, "usage") or mapping(event, "x_groq", "usage"):
            yield token_usage(counts)
        results = [(text(page, "url"), text(page, "title")) for page in items(event, "search_results")]
        pages = [(page, "") for page in items(event, "citations") if isinstance(page, str)]
        yield from self._pages.say([*results, *pages])
        for result in items(event, "prompt_filter_results"):
            yield from _filtered(at(result, "content_filter_results"))


class _Choice:
    """What one choice of a completion has open."""

    def __init__(self, reader: OpenAIChatReader) -> None:
        self._reader = reader
        self._tools = ChatTools(reader.blocks)
        self._open: tuple[str, str] | None = None  # what grows, and the name of its block

    def delta(self, delta: Plain) -> Iterator[Event]:
        for field in ("reasoning_content", "reasoning"):
            if words := text(delta, field):
                yield from self._grow("reasoning", words, field=field)
                break
        yield from self._content(delta.get("content"))
        if words := text(delta, "refusal"):
            yield from self._grow("refusal", words)
            yield Refusal(words)
        if words := text(delta, "audio", "transcript"):
            yield from self._grow("text", words)
        for image in items(delta, "images"):
            if url := text(image, "image_url", "url"):
                yield from self.close()
                yield File(url, _media_type(url))
        pieces = items(delta, "tool_calls")
        if function_call := mapping(delta, "function_call"):
            pieces = [*pieces, as_piece(function_call)]
        for piece in pieces:
            yield from self.close()
            yield from self._tools.piece(piece)

    def finish(self) -> Iterator[Event]:
        yield from self.close()
        yield from self._tools.end()

    def close(self) -> Iterator[Event]:
        """End the text or the reasoning that grows."""
        if self._open is not None:
            kind, block = self._open
            self._open = None
            yield ReasoningEnded(block) if kind == "reasoning" else TextEnded(block)

    def _content(self, content: object) -> Iterator[Event]:
        """Return what content says: a text, or a list of chunks as Mistral's reasoning models send it."""
        if isinstance(content, str) and content:
            yield from self._grow("text", content)
        for chunk in items(content):
            match text(chunk, "type"):
                case "text":
                    yield from self._content(text(chunk, "text"))
                case "thinking":
                    for thought in items(chunk, "thinking"):
                        if words := text(thought, "text"):
                            yield from self._grow("reasoning", words, field="thinking")
                case "reference":
                    pass  # numbers into the request's own documents
                case kind:
                    self._reader.skip(f"content.{kind}")

    def _grow(self, kind: str, words: str, field: str | None = None) -> Iterator[Event]:
        if self._open is None or self._open[0] != kind:
            yield from self.close()
            block = self._reader.blocks.open(kind)
            self._open = kind, block
            if kind == "reasoning":
                yield ReasoningStarted(block, self._reader.metadata(field=field))
            else:
                refused = True if kind == "refusal" else None
                yield TextStarted(block, self._reader.metadata(refusal=refused))
        block = self._open[1]
        yield ReasoningDelta(block, words) if kind == "reasoning" else TextDelta(block, words)


def _says_something(delta: Plain) -> bool:
    return any(value for field, value in delta.items() if field not in {"index", "role"})


def _cited(delta: Plain) -> Iterable[tuple[str, str]]:
    for annotation in items(delta, "annotations"):
        cited = mapping(annotation, "url_citation")
        yield text(cited, "url"), text(cited, "title")


def _filtered(results: object) -> Iterator[Event]:
    """Say which content filters of Azure held something back."""
    hits = {name: result for name, result in mapping(results).items() if at(result, "filtered") is True}
    if hits:
        yield Data("content-filter", carried(hits))


def _media_type(url: str) -> str:
    """Return the media type of a data URL; of another address nothing is known."""
    if url.startswith("data:"):
        return url[5:].split(",", 1)[0].split(";", 1)[0] or "text/plain"
    return "application/octet-stream"
