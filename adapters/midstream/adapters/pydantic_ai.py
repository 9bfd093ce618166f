"""Reads the event streams of Pydantic AI: of a model, of a node, of a whole run.

It takes what ``agent.run_stream_events``, ``node.stream(...)`` in ``agent.iter``, an
``event_stream_handler`` and ``pydantic_ai.direct.model_request_stream`` give. A run comes in several streams
(a handler is called for each model response and for each batch of tools): feeding reads those of a turn
with one reader, which knows what result belongs to what call. Where a reader is given, give it each time.

**When a tool runs.** Pydantic AI announces every call of a batch before it executes the first. With
``agent.iter`` and with an ``event_stream_handler`` it waits until each announcement has been read, so a
tool's ``running`` is on disk before the tool executes. ``run_stream_events`` runs on without waiting:
there the tool may begin while its ``running`` is being written. A call that must wait for a person
(``requires_approval``) is announced like the others, and is in ``fed.approvals`` by the end of the stream.
Tools that the agent itself executes (external ones) are announced too: name them as ``deferred``, and
their calls stay ``ready``, in ``fed.calls``.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, ClassVar

from midstream.adapters.events import (
    ApprovalRequested,
    Data,
    DocumentSource,
    Event,
    File,
    Finished,
    FinishReason,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    StepBoundary,
    TextDelta,
    TextEnded,
    TextStarted,
    ToolFailed,
    ToolInputDelta,
    ToolOutput,
    ToolRunning,
    ToolStarted,
    UrlSource,
)
from midstream.adapters.objects import each, field, number, words
from midstream.adapters.plain import Plain, carried, in_words
from midstream.adapters.pydantic_ai_parts import (
    Growing,
    custom,
    jsonable,
    more_arguments,
    ready,
    response_of,
    usage_of,
)
from midstream.adapters.reader import Reader, arguments

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from midstream.protocol.model import ProviderMetadata

KEPT = ("id", "signature", "provider_name", "provider_details", "tool_kind")
"""Fields of a part that Pydantic AI wants back with the next request."""
IGNORED = {
    "final_result",  # says only that the answer may be complete
    "enqueued_messages",
    "tool_availability_delta",
    "capability_load_delta",
    "model_settings_delta",
    "deferred_tool_results",
}
"""Events that say nothing for people to see."""
REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_call": "tool-calls",
    "error": "error",
}


class PydanticAIReader(Reader):
    """Reads the events of Pydantic AI (``AgentStreamEvent``, ``AgentRunResultEvent``)."""

    provider: ClassVar[str] = "pydantic-ai"
    spans_streams: ClassVar[bool] = True

    def __init__(self, *, deferred: Collection[str] = ()) -> None:
        """Begin a run; ``deferred`` names tools that Pydantic AI announces and leaves to the agent."""
        super().__init__()
        self._deferred_tools = frozenset(deferred)
        self._stream: object = None
        self._parts: dict[int, Growing] = {}
        self._calls: dict[str, Growing] = {}
        self._sources: set[str] = set()
        self._over = False
        """The response whose parts are known is complete: the next part belongs to another."""
        self._result: object = None

    def begin(self, stream: object) -> None:
        """Go on with another stream of the same run; usage and finish reason are read from its object."""
        self._stream = stream
        self._parts.clear()
        self._sources.clear()
        self._over = False
        self._result = None

    def events(self, event: Plain) -> Iterable[Event]:
        """Return what an event says."""
        match words(event, "event_kind"):
            case "part_delta":
                yield from self._more(event)
            case "part_start":
                yield from self._start(event)
            case "part_end":
                yield from self._part_end(event)
            case "function_tool_call" | "output_tool_call":
                yield from self._called(field(event, "part"), valid=field(event, "args_valid") is True)
            case "function_tool_result" | "output_tool_result":
                yield from self._returned(field(event, "part"), field(event, "content"))
            case "deferred_tool_requests":
                yield from self._deferred(event)
            case "agent_run_result":
                self._result = field(event, "result")
            case "custom":
                yield from custom(event)
            case kind if kind not in IGNORED:
                self.skip(kind)
            case _:
                pass

    def end(self) -> list[Event]:
        """Return what closes the stream: calls become ready, usage and finish reason are told."""
        said = [*self._close()]
        response = field(self._result, "response") or response_of(self._stream)
        used = field(self._result, "usage") or field(response, "usage")
        if used is not None:
            said.append(Data("usage", usage_of(used)))
        reason = words(response, "finish_reason")
        if reason:
            said.append(Finished(REASONS.get(reason, "other"), reason))
        return said

    def _start(self, event: Plain) -> Iterable[Event]:
        if self._over:
            yield from self._close()
            yield StepBoundary()
            self._parts.clear()
            self._over = False
        index, part = number(event, "index") or 0, field(event, "part")
        if index in self._parts:  # replaced, as the library says
            yield from self._end_text(self._parts[index], None)
        kind = words(part, "part_kind")
        match kind:
            case "text" | "thinking" | "compaction":
                yield from self._text(index, kind, event)
            case "tool-call" | "builtin-tool-call":
                yield from self._call(index, kind, event)
            case "builtin-tool-return":
                yield from self._returned(part, None)
            case "file":
                yield from self._file(part)
            case _:
                self.skip(f"part_start: {kind}")

    def _text(self, index: int, kind: str, event: Plain) -> Iterable[Event]:
        part = field(event, "part")
        growing = Growing(kind, self.blocks.open(index), part)
        self._parts[index] = growing
        content = words(part, "content")
        if kind == "text":
            if content:
                yield TextDelta(growing.block, content)
            return
        yield ReasoningStarted(growing.block)
        if content:
            yield ReasoningDelta(growing.block, content)
        if kind == "compaction":  # comes whole, and has to go back as what it was
            growing.ended = True
            system = field(event, "canonical_system")
            yield ReasoningEnded(growing.block, self._kept(part, part_kind=kind, canonical_system=system))

    def _call(self, index: int, kind: str, event: Plain) -> Iterable[Event]:
        part = field(event, "part")
        growing = Growing(kind, self.blocks.open(index), part)
        growing.metadata = self._kept(part, canonical_system=field(event, "canonical_system"))
        self._parts[index] = growing
        self._calls[words(part, "tool_call_id")] = growing
        yield ToolStarted(
            growing.block,
            tool_call_id=words(part, "tool_call_id"),
            tool_name=words(part, "tool_name"),
            provider_executed=kind == "builtin-tool-call",
            metadata=growing.metadata,
        )
        if words(part, "args"):
            yield ToolInputDelta(growing.block, words(part, "args"))

    def _more(self, event: Plain) -> Iterable[Event]:
        index, delta = number(event, "index") or 0, field(event, "delta")
        growing = self._parts.get(index)
        if growing is None:
            self.skip("part_delta: no part")
            return
        match words(delta, "part_delta_kind"):
            case "tool_call":
                yield from more_arguments(growing, delta)
            case "text" | "thinking" as kind:
                yield from self._more_text(index, growing, kind, words(delta, "content_delta"))
                yield from self._cited(each(delta, "citations_delta"))
            case kind:
                self.skip(f"part_delta: {kind}")

    def _more_text(self, index: int, growing: Growing, kind: str, more: str) -> Iterable[Event]:
        if not more:
            return
        if (
            growing.ended
        ):  # the library ends a part when the next one begins; what comes late stands in one of its own
            growing = self._parts[index] = Growing(kind, self.blocks.open(index), None)
        yield TextDelta(growing.block, more) if kind == "text" else ReasoningDelta(growing.block, more)

    def _part_end(self, event: Plain) -> Iterable[Event]:
        growing = self._parts.get(number(event, "index") or 0)
        part = field(event, "part")
        self._over = field(event, "next_part_kind") is None
        if growing is None:
            return
        growing.metadata = self._kept(part, canonical_system=field(event, "canonical_system"))
        if growing.kind in {"text", "thinking"}:
            yield from self._end_text(growing, growing.metadata)
            yield from self._cited(each(part, "citations"))

    def _end_text(self, growing: Growing, metadata: ProviderMetadata | None) -> Iterable[Event]:
        if growing.kind == "text" and not growing.ended:
            if metadata:
                yield TextStarted(growing.block)  # an empty one, too, may have what the provider wants back
            yield TextEnded(growing.block, metadata)
        elif growing.kind == "thinking" and not growing.ended:
            yield ReasoningEnded(growing.block, metadata)
        growing.ended = growing.ended or growing.kind in {"text", "thinking"}

    def _close(self) -> Iterable[Event]:
        """End the response: arguments that were given in turns are complete only now."""
        for growing in self._parts.values():
            yield from self._end_text(growing, growing.metadata)
            yield from ready(growing)

    def _called(self, part: object, *, valid: bool) -> Iterable[Event]:
        self._over = True
        call_id = words(part, "tool_call_id")
        if call_id not in self._calls:  # its response was not in the streams that this reader has seen
            growing = self._calls[call_id] = Growing("tool-call", self.blocks.open(call_id), part)
            growing.ended = True
            given = carried(growing.input) if growing.input else arguments(words(part, "args"))
            yield ToolStarted(growing.block, call_id, words(part, "tool_name"), input=given)
        growing = self._calls[call_id]
        yield from ready(growing)
        if valid and words(part, "tool_name") not in self._deferred_tools:
            yield ToolRunning(growing.block)

    def _returned(self, part: object, content: object) -> Iterable[Event]:
        growing = self._calls.get(words(part, "tool_call_id"))
        if growing is None:
            self.skip("tool result: no call")
            return
        yield from ready(growing)
        output = jsonable(field(part, "content"))
        if words(part, "outcome") not in {"", "success"} or words(part, "part_kind") == "retry-prompt":
            yield ToolFailed(growing.block, in_words(output))
            return
        extra = {"content": jsonable(content), "metadata": jsonable(field(part, "metadata"))}
        yield ToolOutput(growing.block, output, metadata=self._kept(part, **extra))

    def _deferred(self, event: Plain) -> Iterable[Event]:
        for part in each(event, "requests", "approvals"):
            call_id = words(part, "tool_call_id")
            if call_id in self._calls:
                yield ApprovalRequested(self._calls[call_id].block, call_id)

    def _file(self, part: object) -> Iterable[Event]:
        media_type = words(part, "content", "media_type") or "application/octet-stream"
        data = field(part, "content", "data")
        encoded = (
            base64.b64encode(data).decode() if isinstance(data, bytes) else words(part, "content", "data")
        )
        yield File(f"data:{media_type};base64,{encoded}", media_type, metadata=self._kept(part))

    def _cited(self, citations: list[object]) -> Iterable[Event]:
        for source in (source for citation in citations for source in each(citation, "sources")):
            url, title = words(source, "url"), words(source, "title")
            key = url or words(source, "document_id") or title
            if not key or key in self._sources:
                continue
            self._sources.add(key)
            if url:
                yield UrlSource(url, title=title or None)
            else:
                metadata = self.metadata(document_id=words(source, "document_id") or None)
                yield DocumentSource("text/plain", title or key, metadata=metadata)

    def _kept(self, part: object, **more: object) -> ProviderMetadata | None:
        return self.metadata(**{name: field(part, name) for name in KEPT}, **more)
