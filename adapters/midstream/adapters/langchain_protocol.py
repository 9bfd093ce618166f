"""A message of a LangChain model in events of version 3: its blocks begin, grow and end by name (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.adapters.events import (
    Event,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    TextDelta,
    TextEnded,
    TextStarted,
    ToolInputDelta,
    ToolInputReady,
)
from midstream.adapters.langchain_message import StreamedMessage
from midstream.adapters.objects import each, field, pairs, words
from midstream.adapters.plain import carried

if TYPE_CHECKING:
    from collections.abc import Iterable

EVENTS = {
    "message-start",
    "content-block-start",
    "content-block-delta",
    "content-block-finish",
    "message-finish",
}
CALLS = {"tool_call", "tool_call_chunk", "invalid_tool_call", "server_tool_call", "server_tool_call_chunk"}


class ProtocolMessage(StreamedMessage):
    """A message whose blocks are named by their index, in whatever order they grow and end."""

    def read(self, chunk: object) -> Iterable[Event]:
        """Return what an event says."""
        index = field(chunk, "index")
        match words(chunk, "event"):
            case "message-start":
                self.ids |= {words(chunk, "id")} - {""}
            case "content-block-start":
                yield from self._starts(index, field(chunk, "content"))
            case "content-block-delta":
                yield from self._grows(index, field(chunk, "delta"))
            case "content-block-finish":
                yield from self._ends(index, field(chunk, "content"))
            case "message-finish":
                told = {
                    "usage_metadata": field(chunk, "usage"),
                    "response_metadata": field(chunk, "metadata"),
                }
                self._account(told)
            case kind:
                self._reader.skip(kind)

    def end(self) -> Iterable[Event]:
        """Return what closes the message."""
        for kind, name in self._growing.values():
            yield TextEnded(name) if kind == "text" else ReasoningEnded(name)
        self._growing.clear()
        yield from super().end()

    def _starts(self, index: object, content: object) -> Iterable[Event]:
        kind = words(content, "type")
        if kind in {"text", "reasoning"}:
            self._growing[index] = kind, self._reader.blocks.open(index)
            name = self._growing[index][1]
            yield TextStarted(name) if kind == "text" else ReasoningStarted(name)
            yield from self._more(index, words(content, kind))
        elif kind in CALLS:
            executed = kind.startswith("server_")
            yield from self._call({**pairs(content), "index": index}, {}, provider_executed=executed)

    def _grows(self, index: object, delta: object) -> Iterable[Event]:
        match words(delta, "type"):
            case "text-delta":
                yield from self._more(index, words(delta, "text"))
            case "reasoning-delta":
                yield from self._more(index, words(delta, "reasoning"))
            case "tool-call-delta" if index in self._by_index and words(delta, "args"):
                yield ToolInputDelta(self._by_index[index].block, words(delta, "args"))
            case _:
                pass  # of what is read whole, at its end

    def _more(self, index: object, more: str) -> Iterable[Event]:
        kind, name = self._growing.get(index, ("", ""))
        if more and kind:
            yield TextDelta(name, more) if kind == "text" else ReasoningDelta(name, more)

    def _ends(self, index: object, content: object) -> Iterable[Event]:
        kind = words(content, "type")
        if index in self._growing:
            yield from self._ends_text(index, content)
        elif kind in CALLS:
            yield from self._ends_call(index, content)
        else:
            yield from self._block(content)
            yield from self._end_text()

    def _ends_text(self, index: object, content: object) -> Iterable[Event]:
        kind, name = self._growing.pop(index)
        kept = {"id": words(content, "id") or None, "extras": pairs(content, "extras") or None}
        metadata = self._reader.metadata(**kept)
        yield from self._sources(each(content, "annotations"))
        yield TextEnded(name, metadata) if kind == "text" else ReasoningEnded(name, metadata)

    def _ends_call(self, index: object, content: object) -> Iterable[Event]:
        if index not in self._by_index:
            yield from self._starts(index, content)
        call = self._by_index[index]
        if not call.ready:
            call.ready = True
            given = field(content, "args")
            is_text = given is None or isinstance(given, str)  # as it streamed
            yield ToolInputReady(call.block, input=UNSET if is_text else carried(given))
