"""The parts that an agent has open: a text that grows, a tool call, an action (SPEC 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from msgspec import UNSET, UnsetType, structs

from midstream.protocol.errors import IllegalTransition
from midstream.protocol.model import (
    ActionPart,
    ProviderMetadata,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolState,
    TurnPhase,
)
from midstream.protocol.transitions import check, is_open
from midstream.server.sessions.code_points import CodePoints
from midstream.server.sessions.writer import absent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from midstream.protocol.model import Turn
    from midstream.protocol.values import Value
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Place
    from midstream.server.sessions.writer import TurnWriter


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
        """End the part; harmless when it has ended or is gone."""
        place = self._place
        if place is None:
            return
        self._code_points.end()

        def fill(draft: Draft, _: Turn) -> None:
            part = cast("TextPart | ReasoningPart | None", draft.part_if(place))
            if part is not None and is_open(part):
                metadata = part.provider_metadata if provider_metadata is None else provider_metadata
                ended = structs.replace(part, state="done", provider_metadata=metadata)
                draft.put_part(place.message, ended)

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
        place = self.place

        def fill(draft: Draft, _: Turn) -> None:
            part = cast("ToolPart", draft.part_at(place))
            check("tool", part.tool_call_id, part.state, state)
            draft.put_part(place.message, structs.replace(part, state=state, **fields))
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
        place = self._place

        def fill(draft: Draft, _: Turn) -> None:
            part = cast("ActionPart", draft.part_at(place))
            draft.put_part(place.message, structs.replace(part, **fields))

        await self._writer.store(fill)
