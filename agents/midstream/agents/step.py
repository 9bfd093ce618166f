"""A step of an agent, and what is written in it: texts, tool calls, files, sources, data (SPEC 8)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Self, cast

from msgspec import UNSET, UnsetType

from midstream.agents.open_parts import TextStream, ToolCall
from midstream.agents.writer import absent
from midstream.protocol.agents import AbandonStep, AddPart, BeginStep, EndStep, ReportError
from midstream.protocol.model import (
    DataPart,
    FilePart,
    ProviderMetadata,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolPart,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from midstream.adapters import Fed, Reader
    from midstream.agents.writer import Writer
    from midstream.protocol.agents import AddedPart
    from midstream.protocol.values import Value


class Step:
    """A run of parts that belong together: stored as one when it ends, and undone as one."""

    def __init__(
        self,
        writer: Writer,
        *,
        begun: str | None = None,
        texts: Iterable[TextPart | ReasoningPart] = (),
        calls: Iterable[ToolCall] = (),
    ) -> None:
        """Made by a turn; ``begun`` is the id of a step that another process began, with what is open."""
        self._writer = writer
        self._is_begun = begun is not None
        self._open_texts = [TextStream(writer, part, is_open=True) for part in texts]
        self._open_calls = list(calls)
        self.step_id = begun or writer.new_id("step")

    async def __aenter__(self) -> Self:
        """Begin the step, if it is not begun; what another process left open and nobody took over ends."""
        if self._writer.resumption is not None:
            for ending in self._writer.resumption.endings():
                await self._writer.write(ending)
        if not self._is_begun:
            await self._writer.write(BeginStep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit the step, unless the block failed: then the turn's end does."""
        if kind is None:
            await self._writer.write(EndStep(step_id=self.step_id))

    @property
    def writer(self) -> Writer:
        """Where its writes go: one for all steps of a turn."""
        return self._writer

    def open_texts(self) -> list[TextStream]:
        """Return the texts and reasonings that another process left open, and that still are."""
        return [text for text in self._open_texts if text.is_open]

    def open_tools(self) -> list[ToolCall]:
        """Return the tool calls whose arguments another process did not finish, nor this one so far."""
        return [call for call in self._open_calls if call.state == "input-streaming"]

    def text(self, *, provider_metadata: ProviderMetadata | None = None) -> TextStream:
        """Return a text to be streamed."""
        part = TextPart(
            part_id=self._part_id(),
            text="",
            state="streaming",
            step_id=self.step_id,
            provider_metadata=absent(provider_metadata),
        )
        return TextStream(self._writer, part)

    def reasoning(self, *, provider_metadata: ProviderMetadata | None = None) -> TextStream:
        """Return a reasoning to be streamed."""
        part = ReasoningPart(
            part_id=self._part_id(),
            text="",
            state="streaming",
            step_id=self.step_id,
            provider_metadata=absent(provider_metadata),
        )
        return TextStream(self._writer, part)

    async def tool(  # noqa: PLR0913  # each is a field of the part that the agent may give
        self,
        tool_name: str,
        *,
        input: Value | UnsetType = UNSET,  # the model's word
        tool_call_id: str | None = None,
        title: str | None = None,
        dynamic: bool | None = None,
        provider_executed: bool | None = None,
        tool_metadata: dict[str, Value] | None = None,
        call_provider_metadata: ProviderMetadata | None = None,
    ) -> ToolCall:
        """Begin a tool call: ``ready`` and on disk where the input is given, else to stream its input."""
        part = ToolPart(
            part_id=self._part_id(),
            tool_call_id=tool_call_id or self._writer.new_id("call"),
            tool_name=tool_name,
            state="input-streaming" if input is UNSET else "ready",
            input=input,
            input_text="" if input is UNSET else UNSET,
            title=absent(title),
            dynamic=absent(dynamic),
            provider_executed=absent(provider_executed),
            tool_metadata=absent(tool_metadata),
            call_provider_metadata=absent(call_provider_metadata),
            step_id=self.step_id,
        )
        await self._add(part)
        return ToolCall(self._writer, part)

    async def file(
        self,
        url: str,
        media_type: str,
        *,
        filename: str | None = None,
        provider_metadata: ProviderMetadata | None = None,
    ) -> None:
        """Add a file by its URL, which may be a data URL."""
        await self._add(
            FilePart(
                part_id=self._part_id(),
                url=url,
                media_type=media_type,
                filename=absent(filename),
                provider_metadata=absent(provider_metadata),
                step_id=self.step_id,
            )
        )

    async def data(self, data_type: str, data: Value, *, data_id: str | None = None) -> None:
        """Add data for the user interface; the model never sees it."""
        await self._add(
            DataPart(
                part_id=self._part_id(),
                data_type=data_type,
                data=data,
                data_id=absent(data_id),
                step_id=self.step_id,
            )
        )

    async def source_url(
        self,
        url: str,
        *,
        title: str | None = None,
        source_id: str | None = None,
        provider_metadata: ProviderMetadata | None = None,
    ) -> None:
        """Add a page that the answer rests on."""
        await self._add(
            SourcePart(
                part_id=self._part_id(),
                source_type="url",
                source_id=source_id or self._writer.new_id("source"),
                url=url,
                title=absent(title),
                provider_metadata=absent(provider_metadata),
                step_id=self.step_id,
            )
        )

    async def source_document(
        self,
        media_type: str,
        title: str,
        *,
        filename: str | None = None,
        source_id: str | None = None,
        provider_metadata: ProviderMetadata | None = None,
    ) -> None:
        """Add a document that the answer rests on."""
        await self._add(
            SourcePart(
                part_id=self._part_id(),
                source_type="document",
                source_id=source_id or self._writer.new_id("source"),
                media_type=media_type,
                title=title,
                filename=absent(filename),
                provider_metadata=absent(provider_metadata),
                step_id=self.step_id,
            )
        )

    async def error(self, code: str, message: str, *, recoverable: bool = True) -> None:
        """Keep a failure in the conversation, below what it cut short; the step goes on, or is abandoned."""
        await self._writer.write(
            ReportError(code=code, message=message, recoverable=recoverable, step_id=self.step_id)
        )

    async def feed(self, stream: object, *, reader: Reader | None = None) -> Fed:
        """Write all that a model's stream says into this step, as it comes; return what it came to.

        ``stream`` is what a provider's own asynchronous client gives. Every kind of part is written:
        see :func:`midstream.adapters.feed`.
        """
        adapters = importlib.import_module("midstream.adapters")  # by name: only what is fed needs them
        return cast("Fed", await adapters.feed(self, stream, reader=reader))

    async def marker(self) -> None:
        """Add a ``step-start`` part, where the step's beginning is to be seen."""
        await self._add(StepStartPart(part_id=self._part_id(), step_id=self.step_id))

    async def abandon(self) -> bool:
        """Undo the step, to try it again; return whether its parts are gone.

        Once a tool of the step has left ``input-streaming``, or something else follows its parts,
        nothing is undone: what is open in the step is ended instead, and False is returned.
        """
        result = await self._writer.write(AbandonStep(step_id=self.step_id))
        return result.undone is True

    def _part_id(self) -> str:
        return self._writer.new_id("part")

    async def _add(self, part: AddedPart) -> None:
        await self._writer.write(AddPart(part=part))
