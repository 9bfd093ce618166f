"""Reads the Responses API of OpenAI, and of those who speak it: Azure, xAI (pure).

Events name the item they belong to by ``output_index``, which counts anew in each response; a stream
may hold several responses in a row, with a step boundary between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from midstream.adapters.events import (
    Finished,
    FinishReason,
    StepBoundary,
    StreamError,
    ToolInputDelta,
    ToolOutput,
    ToolRunning,
)
from midstream.adapters.failures import CUT, told
from midstream.adapters.openai_items import KINDS, OUTPUTS, PROVIDER, ToolItem
from midstream.adapters.openai_texts import TEXTS, Reasonings, Texts
from midstream.adapters.openai_words import token_usage
from midstream.adapters.plain import Plain, carried, items, mapping, text, whole
from midstream.adapters.reader import Reader

if TYPE_CHECKING:
    from midstream.adapters.events import Event

INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content-filter"}
_QUIET = (
    "response.in_progress",
    "response.queued",
    "response.audio.",
    "response.code_interpreter_call.",
    "response.compaction.",
    "response.file_search_call.",
    "response.image_generation_call.",
    "response.mcp_call.",
    "response.mcp_list_tools.",
    "response.web_search_call.",
    "response.custom_tool_call_input.done",
    "response.function_call_arguments.done",
    "response.mcp_call_arguments.done",
    "response.output_text.done",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.done",
    "response.refusal.done",
    "response.apply_patch_call_operation_diff.done",
    "response.shell_call_command.done",
    "response.shell_call_output_content.",
    "keepalive",
)
"""Events that say nothing which another does not say too: how far a tool is, and texts once more."""


class OpenAIResponsesReader(Reader):
    """Reads one stream of Responses events, or several responses in a row."""

    provider = PROVIDER

    def __init__(self) -> None:
        """Begin a stream."""
        super().__init__()
        self._texts = Texts(self)
        self._reasonings = Reasonings(self)
        self._tools: dict[int | None, ToolItem] = {}
        self._calls: dict[str, str] = {}  # the block of each call, by its id
        self._seen: set[int | None] = set()
        self._wants_results = False
        self._responses = 0
        self._over = False

    def events(self, event: Plain) -> Iterator[Event]:
        """Return what a plain event says."""
        kind = text(event, "type")
        handler = _HANDLERS.get(kind)
        if handler is not None:
            yield from handler(self, event)
        elif not kind.startswith(_QUIET):
            self.skip(kind)

    def end(self) -> list[Event]:
        """Return what is left; a stream without a terminal event was cut."""
        return [] if self._over else [CUT]

    def begin_response(self, _: Plain) -> Iterator[Event]:
        """Read the beginning of a response: nothing of the one before it is open any more."""
        if self._responses:
            yield StepBoundary()
        self._responses += 1
        self._over = self._wants_results = False
        self._tools.clear()
        self._seen.clear()
        self._texts.begin()
        self._reasonings.begin()
        self.blocks.forget()

    def add_item(self, event: Plain) -> Iterator[Event]:
        """Read the beginning of an item."""
        index, item = whole(event, "output_index"), mapping(event, "item")
        self._seen.add(index)
        if text(item, "type") in KINDS:
            tool = ToolItem(self.blocks.open((index, "tool")), item)
            self._tools[index] = tool
            self._calls[tool.call_id] = tool.block
            started = tool.started()
            self._wants_results |= not started.provider_executed
            yield started
        elif text(item, "type") == "message":
            self._texts.add(index, item)

    def end_item(self, event: Plain) -> Iterator[Event]:
        """Read an item that is complete, and whole in this event."""
        index, item = whole(event, "output_index"), mapping(event, "item")
        if index not in self._seen:
            yield from self.add_item(event)
        match text(item, "type"):
            case "message":
                yield from self._texts.end_message(index, item)
            case "reasoning" | "compaction":
                yield from self._reasonings.end(index, item)
            case kind if kind in KINDS:
                if tool := self._tools.pop(index, None):
                    yield from tool.ended(item)
            case kind if kind in OUTPUTS:
                output = {field: item[field] for field in item if field not in {"id", "type", "call_id"}}
                yield ToolOutput(self._calls.get(text(item, "call_id"), ""), carried(output))
            case kind:
                self.skip(f"item.{kind}")

    def add_content(self, event: Plain) -> Iterator[Event]:
        """Read the beginning of a text of a message."""
        kind = text(event, "part", "type")
        if kind in TEXTS:
            yield from self._texts.open(event, kind)
        elif kind != "reasoning_text":
            self.skip(f"content.{kind}")

    def end_content(self, event: Plain) -> Iterator[Event]:
        """Read a text of a message that is complete."""
        yield from self._texts.end(event)

    def grow_text(self, event: Plain) -> Iterator[Event]:
        """Read more of a text."""
        yield from self._texts.grow(event, "output_text", text(event, "delta"))

    def grow_refusal(self, event: Plain) -> Iterator[Event]:
        """Read more of a refusal."""
        yield from self._texts.grow(event, "refusal", text(event, "delta"))

    def grow_reasoning(self, event: Plain) -> Iterator[Event]:
        """Read more of a reasoning, or of its summary."""
        yield from self._reasonings.grow(event)

    def cite(self, event: Plain) -> Iterator[Event]:
        """Read what a text rests on."""
        yield from self._texts.cite(event.get("annotation"))

    def grow_input(self, event: Plain) -> Iterator[Event]:
        """Read more of a tool's arguments."""
        if (tool := self._tool(event)) and (words := text(event, "delta")):
            yield ToolInputDelta(tool.block, words)

    def grow_quoted(self, event: Plain) -> Iterator[Event]:
        """Read more of the code, the patch or the command that is a tool's argument."""
        if (tool := self._tool(event)) and (words := text(event, "delta")):
            yield from tool.quote(words)

    def end_code(self, event: Plain) -> Iterator[Event]:
        """Read the code that will be run."""
        if tool := self._tool(event):
            yield from tool.unquote()
            yield tool.ready({**tool.item, "code": text(event, "code")})

    def next_command(self, event: Plain) -> Iterator[Event]:
        """Read the beginning of one more command."""
        if tool := self._tool(event):
            yield from tool.next_command()

    def run(self, event: Plain) -> Iterator[Event]:
        """Read that a tool of the provider executes."""
        if (tool := self._tool(event)) and tool.is_ready:
            yield ToolRunning(tool.block)

    def finish(self, event: Plain) -> Iterator[Event]:
        """Read the end of a response, which repeats all of it."""
        response = mapping(event, "response")
        if not self._seen:  # it did not stream
            for index, item in enumerate(items(response, "output")):
                yield from self.end_item({"output_index": index, "item": item})
        if counts := mapping(response, "usage"):
            yield token_usage(counts)
        self._over = True
        status = text(event, "type").removeprefix("response.")
        if status == "completed":
            yield Finished("tool-calls" if self._wants_results else "stop", status)
        elif status == "incomplete":
            reason = text(response, "incomplete_details", "reason")
            yield Finished(INCOMPLETE.get(reason, "other"), reason or status)
        else:
            yield told(response.get("error") or {})
            yield Finished("error", status)

    def fail(self, event: Plain) -> Iterator[StreamError]:
        """Read that the stream broke."""
        self._over = True
        yield told(event.get("error") or event)

    def _tool(self, event: Plain) -> ToolItem | None:
        return self._tools.get(whole(event, "output_index"))


_HANDLERS: dict[str, Callable[[OpenAIResponsesReader, Plain], Iterator[Event]]] = {
    "response.created": OpenAIResponsesReader.begin_response,
    "response.output_item.added": OpenAIResponsesReader.add_item,
    "response.output_item.done": OpenAIResponsesReader.end_item,
    "response.content_part.added": OpenAIResponsesReader.add_content,
    "response.content_part.done": OpenAIResponsesReader.end_content,
    "response.output_text.delta": OpenAIResponsesReader.grow_text,
    "response.audio.transcript.delta": OpenAIResponsesReader.grow_text,
    "response.refusal.delta": OpenAIResponsesReader.grow_refusal,
    "response.reasoning_text.delta": OpenAIResponsesReader.grow_reasoning,
    "response.reasoning_summary_text.delta": OpenAIResponsesReader.grow_reasoning,
    "response.reasoning_summary_part.added": OpenAIResponsesReader.grow_reasoning,
    "response.output_text.annotation.added": OpenAIResponsesReader.cite,
    "response.function_call_arguments.delta": OpenAIResponsesReader.grow_input,
    "response.mcp_call_arguments.delta": OpenAIResponsesReader.grow_input,
    "response.custom_tool_call_input.delta": OpenAIResponsesReader.grow_input,
    "response.code_interpreter_call_code.delta": OpenAIResponsesReader.grow_quoted,
    "response.code_interpreter_call_code.done": OpenAIResponsesReader.end_code,
    "response.code_interpreter_call.interpreting": OpenAIResponsesReader.run,
    "response.apply_patch_call_operation_diff.delta": OpenAIResponsesReader.grow_quoted,
    "response.shell_call_command.added": OpenAIResponsesReader.next_command,
    "response.shell_call_command.delta": OpenAIResponsesReader.grow_quoted,
    "response.completed": OpenAIResponsesReader.finish,
    "response.incomplete": OpenAIResponsesReader.finish,
    "response.failed": OpenAIResponsesReader.finish,
    "error": OpenAIResponsesReader.fail,
}
"""What reads each kind of event."""
