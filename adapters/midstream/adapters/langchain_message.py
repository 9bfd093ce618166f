"""One message of a LangChain model while it streams: its chunks in, neutral events out (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import (
    Data,
    DocumentSource,
    Event,
    File,
    Finished,
    FinishReason,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    Refusal,
    TextDelta,
    TextEnded,
    TextStarted,
    ToolFailed,
    ToolInputDelta,
    ToolInputReady,
    ToolOutput,
    ToolStarted,
    UrlSource,
)
from midstream.adapters.langchain_blocks import blocks_of, is_run_id
from midstream.adapters.langchain_calls import Call, Place
from midstream.adapters.objects import each, field, number, pairs, words
from midstream.adapters.plain import carried, in_words
from midstream.adapters.reader import usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.adapters.reader import Reader
    from midstream.protocol.model import ProviderMetadata

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "tool_calls": "tool-calls",
    "tool_use": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "safety": "content-filter",
    "refusal": "content-filter",
    "error": "error",
}
"""What the providers behind LangChain say, in small letters."""
REASON_FIELDS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
REASONING = "reasoning_content"
"""A field beside the content that some models' reasoning comes in, and that they want it back in."""
KEPT = ("id", "extras", "field")
NOT_KEPT = {"tool_calls", "function_call", "reasoning_content", "parsed", "refusal"}
"""Fields of ``additional_kwargs`` that the parts say already."""


class StreamedMessage:
    """A message of the model that is being read."""

    def __init__(self, reader: Reader, calls: dict[str, Call], cited: set[str], place: Place) -> None:
        """Begin; ``calls`` and ``cited`` are those of the whole stream, the newest by each id."""
        self.place = place
        self._reader = reader
        self._calls = calls
        self._cited = cited
        self.ids: set[str] = set()
        self.used: dict[str, int] = {}
        self._text: tuple[str, object, str] | None = None
        """Kind, index and block of the text that grows."""
        self._metadata: dict[str, object] = {}
        self._mine: list[Call] = []
        self._by_index: dict[object, Call] = {}
        self._growing: dict[object, tuple[str, str]] = {}
        self._reason = ""
        self._beside = False
        """The reasoning of the chunk that is read stands beside its content."""

    def takes(self, message_id: str) -> bool:
        """Whether a chunk with this id belongs here; a model's own id and its run's name the same message."""
        if not message_id or not self.ids or message_id in self.ids:
            return True
        return all(is_run_id(known) != is_run_id(message_id) for known in self.ids)

    def has(self, call: Call) -> bool:
        """Whether the call is one of this message."""
        return any(mine is call for mine in self._mine)

    def read(self, chunk: object) -> Iterable[Event]:
        """Return what a chunk says, or a whole message."""
        self.ids |= {words(chunk, "id")} - {""}
        provider = words(chunk, "response_metadata", "model_provider")
        if provider:
            self._metadata["model_provider"] = provider
        self._beside = bool(words(chunk, "additional_kwargs", REASONING))
        for block in blocks_of(chunk):
            yield from self._block(block)
        calls = [*each(chunk, "tool_calls"), *each(chunk, "invalid_tool_calls")]
        for call in each(chunk, "tool_call_chunks") or calls:
            yield from self._call(call, _kept(chunk))
        self._account(chunk)

    def end(self) -> Iterable[Event]:
        """Return what closes the message."""
        yield from self._end_text()
        for call in self._mine:
            if not call.ready:
                call.ready = True
                yield ToolInputReady(call.block, input=call.input)
        if self._reason:
            yield Finished(REASONS.get(self._reason.lower(), "other"), self._reason)

    def _block(self, block: object) -> Iterable[Event]:
        match words(block, "type"):
            case "text":
                yield from self._grow("text", block, words(block, "text"))
                yield from self._sources(each(block, "annotations"))
            case "reasoning":
                yield from self._grow("reasoning", block, words(block, "reasoning"))
                if self._beside:
                    self._metadata["field"] = REASONING
            case "refusal":
                yield from self._grow("text", block, words(block, "refusal"))
                yield Refusal(words(block, "refusal"))
            case "tool_call" | "tool_call_chunk" | "invalid_tool_call":
                yield from self._call(block, {})
            case "server_tool_call" | "server_tool_call_chunk":
                yield from self._call(block, {}, provider_executed=True)
            case "server_tool_result":
                yield from self._result(block)
            case "image" | "video" | "audio" | "file" | "text-plain" as kind:
                yield from self._file(kind, block)
            case "non_standard":
                self._reader.skip(f"non_standard: {words(block, 'value', 'type')}")
            case kind:
                self._reader.skip(kind)

    def _grow(self, kind: str, block: object, more: str) -> Iterable[Event]:
        index = field(block, "index")
        extras = {"id": words(block, "id") or None, "extras": pairs(block, "extras") or None}
        if not more and not any(extras.values()):
            return
        if self._text is None or self._text[:2] != (kind, index):
            yield from self._end_text()
            self._text = (kind, index, self._reader.blocks.open(index))
            name = self._text[2]
            yield TextStarted(name) if kind == "text" else ReasoningStarted(name)
        for name, value in extras.items():
            if isinstance(value, dict):
                self._metadata[name] = {**pairs(self._metadata, name), **value}
            elif value is not None:
                self._metadata[name] = value
        if more:
            name = self._text[2]
            yield TextDelta(name, more) if kind == "text" else ReasoningDelta(name, more)

    def _end_text(self) -> Iterable[Event]:
        if self._text is None:
            return
        kind, _, name = self._text
        metadata = self._taken()
        self._text = None
        yield TextEnded(name, metadata) if kind == "text" else ReasoningEnded(name, metadata)

    def _taken(self) -> ProviderMetadata | None:
        """Return what was kept about the text that ends; the provider's name says nothing alone."""
        kept = {name: self._metadata.pop(name) for name in KEPT if name in self._metadata}
        return (
            self._reader.metadata(**kept, model_provider=self._metadata.get("model_provider"))
            if kept
            else None
        )

    def _call(
        self, said: object, kept: dict[str, object], *, provider_executed: bool = False
    ) -> Iterable[Event]:
        call = self._known(said)
        if call is None:
            yield from self._end_text()
            call_id, name = words(said, "id"), words(said, "name")
            key = field(said, "index")
            call = Call(self._reader.blocks.open(call_id or key), name, provider_executed)
            self._mine.append(call)
            if key is not None:
                self._by_index[key] = call
            if call_id:
                self._calls[call_id] = call
            extras = pairs(said, "extras") or None
            if provider_executed:  # its provider's name says that it can go back
                kept = {**kept, "model_provider": self._metadata.get("model_provider", "")}
            metadata = self._reader.metadata(extras=extras, **kept) if extras or kept else None
            yield ToolStarted(
                call.block, call_id, name, provider_executed=provider_executed, metadata=metadata
            )
        more = words(said, "args")
        if more:
            yield ToolInputDelta(call.block, more)
        elif isinstance(field(said, "args"), dict):
            call.input = carried(field(said, "args"))

    def _known(self, said: object) -> Call | None:
        """Return the call that a chunk goes on with; a new id begins a new one, whatever its index."""
        call_id, index = words(said, "id"), field(said, "index")
        mine = self._calls.get(call_id)
        if call_id:
            return mine if mine is not None and self.has(mine) else None
        if index is not None:
            return self._by_index.get(index)
        return self._mine[-1] if self._mine and not words(said, "name") else None

    def _result(self, block: object) -> Iterable[Event]:
        call = self._calls.get(words(block, "tool_call_id"))
        if call is None:
            self._reader.skip("server_tool_result: no call")
            return
        if not call.ready:
            call.ready = True
            yield ToolInputReady(call.block, input=call.input)
        output = carried(field(block, "output"))
        call.returned = True
        if words(block, "status") == "error":
            yield ToolFailed(call.block, in_words(output))
        else:
            extras = pairs(block, "extras")
            yield ToolOutput(
                call.block, output, metadata=self._reader.metadata(extras=extras) if extras else None
            )

    def _file(self, kind: str, block: object) -> Iterable[Event]:
        types = {"image": "image/png", "video": "video/mp4", "audio": "audio/wav", "text-plain": "text/plain"}
        media_type = words(block, "mime_type") or types.get(kind, "application/octet-stream")
        url, data, text = words(block, "url"), words(block, "base64"), words(block, "text")
        if data:
            url = f"data:{media_type};base64,{data}"
        elif text:
            yield from self._grow("text", block, text)
            return
        if url:
            yield from self._end_text()
            name = words(block, "extras", "filename") or words(block, "title") or None
            yield File(url, media_type, filename=name)
        else:
            self._reader.skip(f"{kind}: no content")

    def _sources(self, annotations: list[object]) -> Iterable[Event]:
        for said in annotations:
            url, title = words(said, "url"), words(said, "title")
            if words(said, "type") != "citation" or not (url or title) or (url or title) in self._cited:
                continue
            self._cited.add(url or title)
            yield UrlSource(url, title=title or None) if url else DocumentSource("text/plain", title)

    def _account(self, chunk: object) -> None:
        for name in ("input_tokens", "output_tokens"):
            self._add(name, number(chunk, "usage_metadata", name))
        self._add("reasoning_tokens", number(chunk, "usage_metadata", "output_token_details", "reasoning"))
        self._add("cached_tokens", number(chunk, "usage_metadata", "input_token_details", "cache_read"))
        for name in REASON_FIELDS:
            self._reason = words(chunk, "response_metadata", name) or self._reason

    def _add(self, name: str, count: int | None) -> None:
        if count is not None:
            self.used[name] = self.used.get(name, 0) + count


def usage_of(used: dict[str, int]) -> Data:
    """Return the data part of what one or more messages used."""
    return Data("usage", usage(**used))


def _kept(chunk: object) -> dict[str, object]:
    """Return what a provider's integration keeps beside a tool call, for the next request."""
    extra = {name: value for name, value in pairs(chunk, "additional_kwargs").items() if name not in NOT_KEPT}
    return {"additional_kwargs": extra} if extra else {}
