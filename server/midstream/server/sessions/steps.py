"""A step of an agent, and what is written in it: texts, tool calls, files, sources, data (SPEC 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from msgspec import UNSET, UnsetType, structs

from midstream.protocol.errors import IllegalTransition
from midstream.protocol.live import can_append
from midstream.protocol.model import (
    ActionPart,
    DataPart,
    FilePart,
    Part,
    ProviderMetadata,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolState,
    TurnPhase,
)
from midstream.protocol.transitions import check, is_open
from midstream.server.sessions.code_points import CodePoints
from midstream.server.sessions.endings import ended
from midstream.server.sessions.writer import absent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from midstream.protocol.model import Turn
    from midstream.protocol.values import Value
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.writer import Place, TurnWriter


class TextStream:
    """A text or reasoning part that grows: ``async with step.text() as text: await text.append(...)``."""

    def __init__(self, writer: TurnWriter, opens: Callable[[], Awaitable[Place]]) -> None:
        """Made by a step; the part opens when the block is entered."""
        self._writer = writer
        self._opens = opens
        self._place: Place | None = None
        self._code_points = CodePoints()

    async def __aenter__(self) -> Self:
        """Open the part."""
        self._place = await self._opens()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the part, unless the block failed: then the turn's end, or abandon, ends it."""
        if kind is None:
            await self.done()

    async def append(self, text: str) -> None:
        """Append text. Half of a surrogate pair at its end is held until the other half comes.

        Raises:
            ValueError: the text has a surrogate that no neighbour completes.
            IllegalTransition: the part is not open: the block was not entered, or is left.

        """
        if self._place is None:
            raise IllegalTransition("stream", "a text outside its block", "done", "streaming")
        whole = self._code_points.feed(text)
        if whole:
            await self._writer.append(self._place, whole)

    async def done(self, *, provider_metadata: ProviderMetadata | None = None) -> None:
        """End the part; harmless when it has ended."""
        place = self._place
        if place is None:
            return
        self._code_points.end()

        def fill(draft: Draft, _: Turn) -> None:
            part = cast("TextPart | ReasoningPart", draft.message(place[0]).part(place[1]))
            metadata = part.provider_metadata if provider_metadata is None else provider_metadata
            if is_open(part):
                draft.put_part(place[0], structs.replace(part, state="done", provider_metadata=metadata))

        self._place = None
        await self._writer.show(fill)


class ToolCall:
    """One tool call. Each of its moves is committed before it is seen, so a tool never runs twice."""

    def __init__(self, writer: TurnWriter, place: Place, part: ToolPart) -> None:
        """Made by a step."""
        self._writer = writer
        self.place = place
        self.tool_call_id = part.tool_call_id
        self.tool_name = part.tool_name
        self.input: Value | UnsetType = part.input
        self._code_points = CodePoints()

    async def append_input(self, text: str) -> None:
        """Append to the arguments as they stream (``input_text``); as :meth:`TextStream.append`."""
        whole = self._code_points.feed(text)
        if whole:
            await self._writer.append(self.place, whole)

    async def ready(
        self,
        input: Value | UnsetType = UNSET,
        *,
        raw_input: str | None = None,  # the model's word
    ) -> None:
        """Say that the arguments are complete; ``raw_input`` where they could not be parsed."""
        await self._move("ready", "waiting-model", input=input, raw_input=absent(raw_input))
        self.input = input

    async def run(self) -> None:
        """Say that the tool begins to execute. It is on disk before this returns (SPEC 8)."""
        await self._move("running", "running-tool")

    async def progress(self, output: Value) -> None:
        """Show a preliminary output, which the next one replaces."""
        await self._move("running", "running-tool", output=output, preliminary=True)

    async def complete(self, output: Value, *, provider_metadata: ProviderMetadata | None = None) -> None:
        """End the call with its output."""
        await self._move(
            "completed",
            "waiting-model",
            output=output,
            preliminary=UNSET,
            result_provider_metadata=absent(provider_metadata),
        )

    async def fail(self, error: str) -> None:
        """End the call with what went wrong."""
        await self._move("failed", "waiting-model", error=error, preliminary=UNSET)

    async def _move(self, state: ToolState, phase: TurnPhase, **fields: object) -> None:
        sequence, number = self.place

        def fill(draft: Draft, _: Turn) -> None:
            part = cast("ToolPart", draft.message(sequence).part(number))
            check("tool", part.tool_call_id, part.state, state)
            draft.put_part(sequence, structs.replace(part, state=state, **fields))
            draft.set_phase(phase)

        await self._writer.store(fill)


class Action:
    """Something that the agent does, for people to see."""

    def __init__(self, writer: TurnWriter, place: Place, title: str) -> None:
        """Made by a turn."""
        self._writer = writer
        self._place = place
        self.title = title

    async def update(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        data: dict[str, Value] | None = None,
    ) -> None:
        """Change what it says while it goes on."""
        await self._put(None, title, description, data)

    async def complete(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        data: dict[str, Value] | None = None,
    ) -> None:
        """End it well."""
        await self._put("completed", title, description, data)

    async def fail(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        data: dict[str, Value] | None = None,
    ) -> None:
        """End it badly."""
        await self._put("failed", title, description, data)

    async def _put(
        self, state: str | None, title: str | None, description: str | None, data: dict[str, Value] | None
    ) -> None:
        given = {"state": state, "title": title, "description": description, "data": data}
        fields = {name: value for name, value in given.items() if value is not None}
        sequence, number = self._place

        def fill(draft: Draft, _: Turn) -> None:
            part = cast("ActionPart", draft.message(sequence).part(number))
            draft.put_part(sequence, structs.replace(part, **fields))

        await self._writer.store(fill)


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
            return sequence, draft.add_part(sequence, part)

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
