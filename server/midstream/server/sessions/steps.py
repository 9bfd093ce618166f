"""A step of an agent, and what is written in it: texts, tool calls, files, sources, data (SPEC 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from msgspec import UNSET, UnsetType, structs

from midstream.protocol.live import can_append
from midstream.protocol.model import (
    DataPart,
    FilePart,
    Part,
    ProviderMetadata,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolPart,
)
from midstream.protocol.transitions import is_open
from midstream.server.sessions.endings import ended
from midstream.server.sessions.open_parts import TextStream, ToolCall
from midstream.server.sessions.writer import absent

if TYPE_CHECKING:
    from types import TracebackType

    from midstream.protocol.model import Turn
    from midstream.protocol.values import Value
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Place
    from midstream.server.sessions.writer import TurnWriter


class Step:
    """A run of parts that belong together: stored as one when it ends, and undone as one."""

    def __init__(self, writer: TurnWriter) -> None:
        """Made by a turn."""
        self._writer = writer
        self.step_id = writer.new_id("step")

    async def __aenter__(self) -> Self:
        """Begin the step."""
        await self._writer.show(lambda draft, _: draft.set_phase("waiting-model"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit the step, unless the block failed: then the turn's end does."""
        if kind is None:
            await self._writer.store(self._end)

    def text(self, *, provider_metadata: ProviderMetadata | None = None) -> TextStream:
        """Return a text to be streamed."""
        part = TextPart(
            text="", state="streaming", step_id=self.step_id, provider_metadata=absent(provider_metadata)
        )
        return TextStream(self._writer, lambda: self._add(part))

    def reasoning(self, *, provider_metadata: ProviderMetadata | None = None) -> TextStream:
        """Return a reasoning to be streamed."""
        part = ReasoningPart(
            text="", state="streaming", step_id=self.step_id, provider_metadata=absent(provider_metadata)
        )
        return TextStream(self._writer, lambda: self._add(part))

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
        return ToolCall(self._writer, await self._add(part, stored=input is not UNSET), part)

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
            DataPart(data_type=data_type, data=data, data_id=absent(data_id), step_id=self.step_id)
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
                source_type="document",
                source_id=source_id or self._writer.new_id("source"),
                media_type=media_type,
                title=title,
                filename=absent(filename),
                provider_metadata=absent(provider_metadata),
                step_id=self.step_id,
            )
        )

    async def marker(self) -> None:
        """Add a ``step-start`` part, where the step's beginning is to be seen."""
        await self._add(StepStartPart(step_id=self.step_id))

    async def abandon(self) -> bool:
        """Undo the step, to try it again; return whether its parts are gone.

        Once a tool of the step has left ``input-streaming``, or something else follows its parts,
        nothing is undone: what is open in the step is ended instead, and False is returned.
        """
        return await self._writer.store(self._abandon)

    async def _add(self, part: Part, *, stored: bool = False) -> Place:
        def fill(draft: Draft, turn: Turn) -> Place:
            sequence = draft.streaming() or draft.start_message("agent", turn_id=turn.turn_id)
            if can_append(part):
                draft.set_phase("streaming")
            return draft.place_of(sequence, draft.add_part(sequence, part))

        return await (self._writer.store(fill) if stored else self._writer.show(fill))

    def _end(self, draft: Draft, _: Turn) -> None:
        sequence = draft.streaming()
        if sequence is None:
            return
        if draft.has_unstored(sequence):
            # taken up even where nothing is left to end, so that what was streamed is stored
            draft.message(sequence)
        for part in draft.peek(sequence):
            if isinstance(part, (TextPart, ReasoningPart)) and part.step_id == self.step_id and is_open(part):
                draft.put_part(sequence, structs.replace(part, state="done"))

    def _abandon(self, draft: Draft, _: Turn) -> bool:
        sequence = draft.streaming()
        parts = draft.peek(sequence) if sequence else []
        mine = [part for part in parts if part.step_id == self.step_id]
        if sequence is None or not mine:
            return True
        first = mine[0].sequence
        begun = any(isinstance(part, ToolPart) and part.state != "input-streaming" for part in mine)
        if not begun and len(mine) == len(parts) - first + 1:
            draft.truncate(sequence, first - 1)
            return True
        for part in mine:
            if is_open(part):
                draft.put_part(
                    sequence, ended(part, now=draft.now, reason="runtime_interrupted", why="step_abandoned")
                )
        return False
