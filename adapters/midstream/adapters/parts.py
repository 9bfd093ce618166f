"""The parts that a stream has open in a step, and how each neutral event changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.call import Call
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
    ToolRunning,
    ToolStarted,
    UrlSource,
)
from midstream.adapters.growing import Growing
from midstream.adapters.plain import carried, unicode

if TYPE_CHECKING:
    from midstream.adapters.fed import Fed
    from midstream.agents import Step
    from midstream.protocol.model import ProviderMetadata
    from midstream.protocol.values import Value


class Parts:
    """Writes what a stream says into one step. Blocks that were not started, or have ended, do no harm."""

    def __init__(self, step: Step, fed: Fed) -> None:
        """Begin with nothing open; what the agent must know goes into ``fed``."""
        self._step = step
        self._fed = fed
        self._texts: dict[str, Growing] = {}
        self._tools: dict[str, Call] = {}
        self._usage: dict[str, Value] | None = None

    def go_on(self, tools: dict[str, Call]) -> None:
        """Begin with the calls that an earlier stream left open."""
        self._tools = tools

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
            case ToolInputReady() | ToolRunning() | ToolOutput() | ToolFailed() | ApprovalRequested():
                await self._move(event)
            case UrlSource() | DocumentSource() | File():
                await self._add(event)
            case Data("usage", data) if isinstance(data, dict):
                self._fed.usage = self._usage = carried_map(data)
            case Data(data_type, data, data_id):
                await self._step.data(data_type, carried(data), data_id=data_id)
            case Refusal(text):
                self._fed.refusal = (self._fed.refusal or "") + text
            case StepBoundary():
                await self._boundary()
            case StreamError():
                self._break(event)
            case Finished(reason, raw_reason):
                self._fed.reason, self._fed.raw_reason = reason, raw_reason

    async def end(self) -> None:
        """End what is open: texts are done, calls whose arguments are not complete have failed.

        Where the stream broke, such calls stay as they are, so that the step can be abandoned and tried
        again; otherwise they fail with the turn's end. The error is the last part.
        """
        await self._close()
        if error := self._fed.error:
            self._fed.reason = "error"
            await self._step.error(unicode(error.code), unicode(error.message), recoverable=error.recoverable)
        for block, tool in list(self._tools.items()):
            tool.tell(self._fed)
            if tool.has_ended:
                del self._tools[block]

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

    async def _move(
        self, event: ToolInputReady | ToolRunning | ToolOutput | ToolFailed | ApprovalRequested
    ) -> None:
        tool = self._tools.get(event.block)
        if tool is None:
            return
        match event:
            case ToolInputReady(_, input, raw_input):
                await tool.ready(input, raw_input, event.metadata)
            case ToolRunning():
                await tool.run()
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

    def _break(self, event: StreamError) -> None:
        if self._fed.error is None:  # some tell the same failure twice
            self._fed.error = event

    async def _close(self) -> None:
        for growing in self._texts.values():
            await growing.end(None)
        self._texts.clear()
        if self._fed.error is None:
            for tool in self._tools.values():
                await tool.cut()
        if self._usage is not None:
            await self._step.data("usage", dict(self._usage))
            self._usage = None


def carried_map(data: dict[str, Value]) -> dict[str, Value]:
    """Return the map as the protocol can carry it."""
    value = carried(data)
    return value if isinstance(value, dict) else {}
