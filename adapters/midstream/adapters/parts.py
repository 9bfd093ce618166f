"""The parts that a stream has open in a step, and how each neutral event changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, UnsetType

from midstream.adapters.events import (
    ApprovalRequested,
    Data,
    DocumentSource,
    Event,
    File,
    Finished,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    Refusal,
    StepBoundary,
    StreamError,
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
from midstream.adapters.plain import carried, unicode
from midstream.adapters.reader import arguments

if TYPE_CHECKING:
    from midstream.adapters.fed import Fed
    from midstream.agents import Step, TextStream, ToolCall
    from midstream.protocol.model import ProviderMetadata
    from midstream.protocol.values import Value

CUT = "The model's stream ended before the arguments of this call were complete."
NO_JSON = "The arguments of this call are no JSON that can be read."


class Parts:
    """Writes what a stream says into one step. Blocks that were not started, or have ended, do no harm."""

    def __init__(self, step: Step, fed: Fed) -> None:
        """Begin with nothing open; what the agent must know goes into ``fed``."""
        self._step = step
        self._fed = fed
        self._texts: dict[str, Growing] = {}
        self._tools: dict[str, Call] = {}

    async def write(self, event: Event) -> None:  # noqa: C901, PLR0912  # one branch for each event
        """Write one event."""
        match event:
            case TextDelta(block, text):
                await (await self._text(block)).append(text)
            case ReasoningDelta(block, text):
                await (await self._reasoning(block)).append(text)
            case ToolInputDelta(block, text):
                if tool := self._tools.get(block):
                    await tool.append_input(text)
            case TextStarted(block, metadata):
                await self._text(block, metadata)
            case ReasoningStarted(block, metadata):
                await self._reasoning(block, metadata)
            case TextEnded(block, metadata):
                await self._end_text(block, metadata)
            case ReasoningEnded(block, metadata):
                if metadata:
                    await self._reasoning(block)
                await self._end_text(block, metadata)
            case ToolStarted():
                await self._start(event)
            case ToolInputReady() | ToolOutput() | ToolFailed() | ApprovalRequested():
                await self._move(event)
            case UrlSource() | DocumentSource() | File():
                await self._add(event)
            case Data("usage", data) if isinstance(data, dict):
                self._fed.usage = carried_map(data)
            case Data(data_type, data, data_id):
                await self._step.data(data_type, carried(data), data_id=data_id)
            case Refusal(text):
                self._fed.refusal = (self._fed.refusal or "") + text
            case StepBoundary():
                await self._boundary()
            case StreamError():
                await self._break(event)
            case Finished(reason, raw_reason):
                self._fed.reason, self._fed.raw_reason = reason, raw_reason

    async def end(self) -> None:
        """End what is open: texts are done, calls whose arguments are not complete have failed."""
        await self._close()
        for tool in self._tools.values():
            tool.tell(self._fed)

    async def _text(self, block: str, metadata: ProviderMetadata | None = None) -> Growing:
        growing = self._texts.get(block)
        if growing is None:
            growing = Growing(self._step.text(provider_metadata=metadata), metadata)
            self._texts[block] = growing
            await growing.open()
        return growing

    async def _reasoning(self, block: str, metadata: ProviderMetadata | None = None) -> Growing:
        growing = self._texts.get(block)
        if growing is None:
            growing = Growing(self._step.reasoning(provider_metadata=metadata), metadata)
            self._texts[block] = growing
            await growing.open()
        return growing

    async def _end_text(self, block: str, metadata: ProviderMetadata | None) -> None:
        growing = self._texts.pop(block, None)
        if growing is not None:
            await growing.end(metadata)

    async def _start(self, event: ToolStarted) -> None:
        if event.block not in self._tools:
            self._tools[event.block] = await Call.start(self._step, event)

    async def _move(self, event: ToolInputReady | ToolOutput | ToolFailed | ApprovalRequested) -> None:
        tool = self._tools.get(event.block)
        if tool is None:
            return
        match event:
            case ToolInputReady(_, input, raw_input):
                await tool.ready(input, raw_input)
            case ToolOutput(_, output, preliminary, metadata):
                await tool.output(carried(output), metadata, preliminary=preliminary)
            case ToolFailed(_, error):
                await tool.fail(error)
            case ApprovalRequested(_, approval_id):
                tool.approval_id = approval_id

    async def _add(self, event: UrlSource | DocumentSource | File) -> None:
        step, metadata = self._step, event.metadata
        match event:
            case UrlSource(url, title, source_id):
                await step.source_url(
                    unicode(url),
                    title=None if title is None else unicode(title),
                    source_id=source_id or None,
                    provider_metadata=metadata,
                )
            case DocumentSource(media_type, title, filename, source_id):
                await step.source_document(
                    media_type,
                    unicode(title),
                    filename=filename,
                    source_id=source_id or None,
                    provider_metadata=metadata,
                )
            case File(url, media_type, filename):
                await step.file(url, media_type, filename=filename, provider_metadata=metadata)

    async def _boundary(self) -> None:
        await self._close()
        await self._step.marker()

    async def _break(self, event: StreamError) -> None:
        if self._fed.error is not None:
            return  # the same failure, told twice
        self._fed.error = event
        self._fed.reason = "error"
        await self._close()
        await write_error(self._step, event)

    async def _close(self) -> None:
        for growing in self._texts.values():
            await growing.end(None)
        self._texts.clear()
        for tool in self._tools.values():
            await tool.cut()
        if self._fed.usage is not None:
            await self._step.data("usage", dict(self._fed.usage))


async def write_error(step: Step, event: StreamError) -> None:
    """Write the error part."""
    await step.error(unicode(event.code), unicode(event.message), recoverable=event.recoverable)


def carried_map(data: dict[str, Value]) -> dict[str, Value]:
    """Return the map as the protocol can carry it."""
    value = carried(data)
    return value if isinstance(value, dict) else {}


def merged(first: ProviderMetadata | None, second: ProviderMetadata | None) -> ProviderMetadata | None:
    """Return both; where they name the same field of a provider, the second has it."""
    if not first or not second:
        return second or first
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in {**first, **second}}


class Growing:
    """A text or a reasoning that is open."""

    def __init__(self, stream: TextStream, metadata: ProviderMetadata | None) -> None:
        """Keep what it was started with."""
        self._stream = stream
        self._metadata = metadata
        self._join = Halves()

    async def open(self) -> None:
        """Open the part."""
        await self._stream.__aenter__()

    async def append(self, text: str) -> None:
        """Append what is whole of it."""
        whole = self._join.feed(text)
        if whole:
            await self._stream.append(whole)

    async def end(self, metadata: ProviderMetadata | None) -> None:
        """End the part, with what the provider says about it now."""
        rest = self._join.rest()
        if rest:
            await self._stream.append(rest)
        await self._stream.done(provider_metadata=merged(self._metadata, metadata))


class Halves:
    """Joins surrogate pairs that are cut in two; a half that stays alone becomes U+FFFD."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what is whole."""
        if text.isascii() and not self._held:
            return text
        if not text:
            return ""
        text, self._held = self._held + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return unicode(text)

    def rest(self) -> str:
        """Return what was held and never completed."""
        held, self._held = self._held, ""
        return unicode(held)


class Call:
    """A tool call, from its first character to its outcome."""

    def __init__(self, call: ToolCall, event: ToolStarted) -> None:
        """Made by :meth:`start`."""
        self._call = call
        self._provider_executed = event.provider_executed
        self._state: Literal["streaming", "ready", "running", "ended"] = (
            "streaming" if event.input is UNSET else "ready"
        )
        self._pieces: list[str] = []
        self._join = Halves()
        self._invalid = False
        self.approval_id: str | None = None

    @classmethod
    async def start(cls, step: Step, event: ToolStarted) -> Call:
        """Open the part."""
        call = await step.tool(
            unicode(event.tool_name) or "unnamed",
            input=UNSET if event.input is UNSET else carried(event.input),
            tool_call_id=unicode(event.tool_call_id) or None,
            title=event.title,
            dynamic=event.dynamic or None,
            provider_executed=event.provider_executed or None,
            call_provider_metadata=event.metadata,
        )
        return cls(call, event)

    async def append_input(self, text: str) -> None:
        """Append to the arguments."""
        whole = self._join.feed(text)
        if whole and self._state == "streaming":
            self._pieces.append(whole)
            await self._call.append_input(whole)

    async def ready(self, input: Value | UnsetType = UNSET, raw_input: str | None = None) -> None:
        """The arguments are complete; where they are no JSON the call fails, and keeps them as they are."""
        if self._state != "streaming":
            return
        if input is UNSET and raw_input is None:
            words = "".join(self._pieces)
            input = arguments(words)
            raw_input = words if input is UNSET else None
        if raw_input is None:
            await self._call.ready(carried(input))
            self._state = "ready"
            return
        await self._call.ready(raw_input=unicode(raw_input))
        self._state = "ready"
        self._invalid = True
        await self.fail(NO_JSON)

    async def output(self, output: Value, metadata: ProviderMetadata | None, *, preliminary: bool) -> None:
        """Show an output, or end the call with it."""
        await self.ready()
        if self._state == "ended":
            return
        if preliminary:
            await self._call.progress(output)
            self._state = "running"
        else:
            await self._call.complete(output, provider_metadata=metadata)
            self._state = "ended"

    async def fail(self, error: str) -> None:
        """End the call with what went wrong."""
        if self._state != "ended":
            await self._call.fail(unicode(error))
            self._state = "ended"

    async def cut(self) -> None:
        """No more arguments come: a call that still waits for some has failed."""
        if self._state == "streaming":
            await self.fail(CUT)

    def tell(self, fed: Fed) -> None:
        """Say what the agent has to do about it."""
        if self._invalid:
            fed.invalid_calls.append(self._call)
        elif self.approval_id is not None and self._state != "ended":
            fed.approvals.append((self._call, self.approval_id))
        elif self._state == "ready" and not self._provider_executed:
            fed.calls.append(self._call)
