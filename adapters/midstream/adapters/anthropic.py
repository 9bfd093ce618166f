"""Reads the stream of Anthropic's Messages API (pure): raw events, and those of the ``stream()`` helper.

What goes back in the next request is kept under ``anthropic``: a thinking's ``signature``, the
``redacted_data`` of one that cannot be read, a text's ``citations``, and what kind of block a tool
call of the provider's own was (``type``, ``server_name``, ``caller``). A message that begins before the one
before it has ended (a gateway tried again) ends what is open: its unfinished call has failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import UNSET

from midstream.adapters.anthropic_citations import Citations
from midstream.adapters.events import (
    Data,
    Event,
    Finished,
    FinishReason,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    Refusal,
    StepBoundary,
    TextDelta,
    TextEnded,
    ToolFailed,
    ToolInputDelta,
    ToolInputReady,
    ToolOutput,
    ToolStarted,
)
from midstream.adapters.failures import CUT, told
from midstream.adapters.plain import Plain, at, carried, items, mapping, text, whole
from midstream.adapters.reader import Reader, usage

if TYPE_CHECKING:
    from collections.abc import Iterator

REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
"""Why the model stopped; what is not here (``pause_turn``) is ``other``."""
REPEATS = {"ping", "text", "input_json", "thinking", "signature", "citation"}
"""Events that say nothing new: of the helper, each repeats the event before it."""
CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}
GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""What a delta appends, and the field that holds it."""
ANEW = "The provider began its message anew before the arguments of this call were complete."


class AnthropicReader(Reader):
    """Reads Anthropic's events, of the stable and the beta API."""

    provider: ClassVar[str] = "anthropic"

    def __init__(self) -> None:
        """Begin a stream."""
        super().__init__()
        self._kinds: dict[int | None, str] = {}
        self._endings: dict[int | None, dict[str, object]] = {}
        self._inputs: dict[int | None, Plain] = {}
        self._calls: dict[str, str] = {}
        self._citations = Citations(self)
        self._usage: Plain = {}
        self._state = "idle"

    def events(self, event: Plain) -> Iterator[Event]:
        """Return what an event says."""
        kind = text(event, "type")
        match kind:
            case "message_start":
                yield from self._begin(event)
            case "content_block_start":
                yield from self._start(whole(event, "index"), mapping(event, "content_block"))
            case "content_block_delta":
                yield from self._grow(whole(event, "index"), mapping(event, "delta"))
            case "content_block_stop":
                yield from self._stop(whole(event, "index"))
            case "message_delta":
                yield from self._finish(event)
            case "message_stop":
                yield from self._close()
                self._state = "ended"
            case "error":
                yield told(event.get("error"))
                self._state = "ended"
            case _:
                if kind not in REPEATS:
                    self.skip(kind)

    def end(self) -> list[Event]:
        """Return an error where the stream ended before its message did."""
        said = list(self._close())
        if self._state == "open":
            said.append(CUT)
        return said

    def _begin(self, event: Plain) -> Iterator[Event]:
        if self._state != "idle":
            yield from self._close(ANEW)
            yield StepBoundary()
        self._state = "open"
        self._usage = mapping(event, "message", "usage")
        yield from self._used({})
        for index, block in enumerate(items(event, "message", "content")):
            yield from self._start(index, mapping(block))
            yield from self._stop(index)

    def _start(self, index: int | None, block: Plain) -> Iterator[Event]:
        yield from self._stop(index)
        kind = text(block, "type")
        if kind == "text":
            self._open(index, kind)
            yield from self._grow(index, {"type": "text_delta", "text": block.get("text")})
            for citation in items(block, "citations"):
                yield from self._citations.add(index, mapping(citation))
        elif kind == "thinking":
            yield ReasoningStarted(self._open(index, kind))
            yield from self._grow(index, {"type": "thinking_delta", "thinking": block.get("thinking")})
            yield from self._grow(index, {"type": "signature_delta", "signature": block.get("signature")})
        elif kind == "redacted_thinking":
            name = self._open(index, kind)
            yield ReasoningStarted(name, self.metadata(redacted_data=block.get("data")))
        elif kind in CALLS:
            yield self._call(index, kind, block)
        elif kind.endswith("_tool_result"):
            self._kinds[index] = kind
            yield from self._result(kind, block)
        elif kind == "container_upload":
            self._kinds[index] = kind
            yield Data("container_upload", {"file_id": text(block, "file_id")})
        else:
            self._kinds[index] = kind
            self.skip(f"content_block_start:{kind}")

    def _call(self, index: int | None, kind: str, block: Plain) -> ToolStarted:
        name = self._open(index, kind)
        self._inputs[index] = mapping(block, "input")
        call_id = text(block, "id")
        self._calls[call_id] = name
        own = kind != "tool_use"
        return ToolStarted(
            name,
            call_id,
            text(block, "name"),
            provider_executed=own,
            dynamic=kind == "mcp_tool_use",
            metadata=self.metadata(
                type=kind if own else None,
                server_name=block.get("server_name"),
                caller=block.get("caller"),
                toolset_name=block.get("toolset_name"),
            ),
        )

    def _result(self, kind: str, block: Plain) -> Iterator[Event]:
        name = self._calls.get(text(block, "tool_use_id"))
        if name is None:
            self.skip(f"{kind} without its call")
            return
        content = block.get("content")
        code = text(content, "error_code")
        if code or block.get("is_error") is True:
            yield ToolFailed(name, code or _words(content) or "The provider's tool failed.")
            return
        yield ToolOutput(
            name, carried(content), metadata=self.metadata(type=kind, caller=block.get("caller"))
        )

    def _grow(self, index: int | None, delta: Plain) -> Iterator[Event]:
        kind = text(delta, "type")
        if kind in GROWING:
            yield from self._append(index, kind, text(delta, GROWING[kind]))
        elif kind == "signature_delta":
            if signature := text(delta, "signature"):
                self._endings.setdefault(index, {})["signature"] = signature
        elif kind == "citations_delta":
            yield from self._citations.add(index, mapping(delta, "citation"))
        else:
            self.skip(f"content_block_delta:{kind}")

    def _append(self, index: int | None, kind: str, words: str) -> Iterator[Event]:
        if index not in self._kinds and kind != "input_json_delta":
            self._open(index, kind.removesuffix("_delta"))
        name = self.blocks.name(index)
        if not words or name is None:
            return  # a block that is not known was counted when it began
        if kind == "text_delta":
            yield TextDelta(name, words)
        elif kind == "thinking_delta":
            yield ReasoningDelta(name, words)
        else:
            self._inputs.pop(index, None)
            yield ToolInputDelta(name, words)

    def _stop(self, index: int | None, cut: str = "") -> Iterator[Event]:
        kind = self._kinds.pop(index, "")
        name = self.blocks.close(index)
        ending = self._endings.pop(index, {})
        input = self._inputs.pop(index, None)
        if name is None:
            return
        if kind in CALLS:
            # a block whose arguments did not stream holds them itself
            yield ToolFailed(name, cut) if cut else ToolInputReady(name, carried(input) if input else UNSET)
        elif kind == "text":
            yield TextEnded(name, self.metadata(citations=self._citations.take(index) or None))
        else:
            yield ReasoningEnded(name, self.metadata(**ending))

    def _finish(self, event: Plain) -> Iterator[Event]:
        yield from self._used(mapping(event, "usage"))
        container = at(event, "delta", "container")
        if container is not None:
            yield Data("container", carried(container))
        reason = text(event, "delta", "stop_reason")
        if reason == "refusal":
            yield Refusal(text(event, "delta", "stop_details", "explanation") or "The model declined.")
        if reason:
            yield Finished(REASONS.get(reason, "other"), reason)

    def _used(self, more: Plain) -> Iterator[Event]:
        self._usage = {**self._usage, **{name: value for name, value in more.items() if value is not None}}
        if not self._usage:
            return
        cached = whole(self._usage, "cache_read_input_tokens")
        fresh = whole(self._usage, "input_tokens")
        written = whole(self._usage, "cache_creation_input_tokens")
        yield Data(
            "usage",
            usage(
                input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
                output_tokens=whole(self._usage, "output_tokens"),
                reasoning_tokens=whole(self._usage, "output_tokens_details", "thinking_tokens"),
                cached_tokens=cached,
                raw=self._usage,
            ),
        )

    def _close(self, cut: str = "") -> Iterator[Event]:
        for index in list(self._kinds):
            yield from self._stop(index, cut)
        self._kinds.clear()

    def _open(self, index: int | None, kind: str) -> str:
        self._kinds[index] = kind
        return self.blocks.open(index)


def _words(content: object) -> str:
    """The text of an MCP server's result: a string, or text blocks."""
    return content if isinstance(content, str) else "\n".join(text(item, "text") for item in items(content))
