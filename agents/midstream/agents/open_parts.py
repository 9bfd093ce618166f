"""The parts that an agent has open: a text that grows, a tool call, an action (SPEC 8)."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Self

from msgspec import UNSET, UnsetType

from midstream.agents.code_points import CodePoints
from midstream.agents.errors import TurnEnded, TurnFailed
from midstream.agents.outcomes import ToolOutcome
from midstream.agents.writer import absent
from midstream.protocol.agents import AddPart, ChangeAction, EndText, MoveTool
from midstream.protocol.errors import IllegalTransition, Unavailable
from midstream.protocol.model import ReasoningPart

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from midstream.agents.writer import Writer
    from midstream.protocol.model import (
        ActionPart,
        ActionState,
        ProviderMetadata,
        TextPart,
        ToolPart,
        ToolState,
    )
    from midstream.protocol.values import Value


class TextStream:
    """A text or reasoning part that grows: ``async with step.text() as text: await text.append(...)``.

    Attributes:
        part_id: the part's id.
        text: what it had when this agent got it; empty, but for one that another process began.

    """

    def __init__(self, writer: Writer, part: TextPart | ReasoningPart, *, is_open: bool = False) -> None:
        """Made by a step; the part opens when the block is entered, if it is not open."""
        self.part_id = part.part_id
        self.text = part.text
        self._writer = writer
        self._part = part
        self._is_open = is_open
        self._code_points = CodePoints()

    @property
    def is_open(self) -> bool:
        """Say whether text can be appended: the block was entered, and not left."""
        return self._is_open

    @property
    def is_reasoning(self) -> bool:
        """Say whether this is a reasoning, and no text."""
        return isinstance(self._part, ReasoningPart)

    async def __aenter__(self) -> Self:
        """Open the part."""
        if not self._is_open:
            await self._writer.write(AddPart(part=self._part))
            self._is_open = True
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
        if not self._is_open:
            raise IllegalTransition("stream", "a text outside its block", "done", "streaming")
        whole = self._code_points.feed(text)
        if whole:
            await self._writer.append(self._part.part_id, whole)

    async def done(self, *, provider_metadata: ProviderMetadata | None = None) -> None:
        """End the part; harmless when it has ended or is gone."""
        if not self._is_open:
            return
        self._code_points.end()
        self._is_open = False
        await self._writer.write(
            EndText(part_id=self._part.part_id, provider_metadata=absent(provider_metadata))
        )


class ToolCall:
    """One tool call. Each of its moves is committed before it is seen, so a tool never runs twice.

    Attributes:
        part_id: the id of its part.
        tool_call_id: the id that the model knows it by.
        tool_name: which tool is called.
        state: where it stands, as far as this agent moved it or was told.
        input: its arguments, once they are complete and could be parsed.
        input_text: of a call that another process began: its arguments as far as they had come.

    """

    def __init__(self, writer: Writer, part: ToolPart) -> None:
        """Made by a step."""
        self._writer = writer
        self.part_id = part.part_id
        self.tool_call_id = part.tool_call_id
        self.tool_name = part.tool_name
        self.state: ToolState = part.state
        self.input: Value | UnsetType = part.input
        self.input_text = part.input_text or ""
        self._code_points = CodePoints()

    async def append_input(self, text: str) -> None:
        """Append to the arguments as they stream (``input_text``); as :meth:`TextStream.append`."""
        whole = self._code_points.feed(text)
        if whole:
            await self._writer.append(self.part_id, whole)

    async def ready(
        self,
        input: Value | UnsetType = UNSET,
        *,
        raw_input: str | None = None,  # the model's word
        call_provider_metadata: ProviderMetadata | None = None,
    ) -> None:
        """Say that the arguments are complete; ``raw_input`` where they could not be parsed.

        Metadata of the call replaces what it began with.
        """
        await self._writer.write(
            MoveTool(
                part_id=self.part_id,
                state="ready",
                input=input,
                raw_input=absent(raw_input),
                call_provider_metadata=absent(call_provider_metadata),
            )
        )
        self.state = "ready"
        self.input = input

    async def run(self) -> None:
        """Claim the call, before the tool executes: ``running`` is on disk when this returns (SPEC 8.9).

        Raises:
            IllegalTransition: it was claimed before, or has ended; the tool must not execute.

        """
        await self._writer.write(MoveTool(part_id=self.part_id, state="running"))
        self.state = "running"

    async def execute(self, function: Callable[[Value], Awaitable[Value] | Value]) -> ToolOutcome:
        """Claim the call, give its input to ``function``, and end the call with what that returns.

        What ``function`` raises ends the call as failed, with the error's type and text, which people and
        the model see; it is not raised here. A failed turn (:class:`TurnFailed`), a turn that has ended
        and a cancellation are. Arguments that could not be parsed fail the call, unclaimed.

        Raises:
            IllegalTransition: the call was claimed before, or has ended; ``function`` was not called.

        """
        if self.input is UNSET:
            return await self._failed("Its arguments could not be parsed.")
        await self.run()
        try:
            given = function(self.input)
            output = await given if inspect.isawaitable(given) else given
            await self.complete(output)
        except (TurnEnded, TurnFailed, Unavailable):
            raise
        except Exception as error:  # noqa: BLE001  # a tool's failure is for the model to deal with
            text = str(error).encode(errors="replace").decode()
            return await self._failed(f"{type(error).__name__}: {text}" if text else type(error).__name__)
        return ToolOutcome(output=output)

    async def _failed(self, error: str) -> ToolOutcome:
        await self.fail(error)
        return ToolOutcome(error=error)

    async def progress(self, output: Value) -> None:
        """Show a preliminary output, which the next one replaces."""
        await self._writer.write(
            MoveTool(part_id=self.part_id, state="running", output=output, preliminary=True)
        )
        self.state = "running"

    async def complete(self, output: Value, *, provider_metadata: ProviderMetadata | None = None) -> None:
        """End the call with its output."""
        await self._writer.write(
            MoveTool(
                part_id=self.part_id,
                state="completed",
                output=output,
                result_provider_metadata=absent(provider_metadata),
            )
        )
        self.state = "completed"

    async def fail(self, error: str) -> None:
        """End the call with what went wrong."""
        await self._writer.write(MoveTool(part_id=self.part_id, state="failed", error=error))
        self.state = "failed"


class Action:
    """Something that the agent does, for people to see."""

    def __init__(self, writer: Writer, part: ActionPart) -> None:
        """Made by a turn."""
        self._writer = writer
        self._part_id = part.part_id
        self.title = part.title

    async def update(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        data: dict[str, Value] | None = None,
    ) -> None:
        """Change what it says while it goes on."""
        await self._change(None, title, description, data)

    async def complete(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        data: dict[str, Value] | None = None,
    ) -> None:
        """End it well."""
        await self._change("completed", title, description, data)

    async def fail(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        data: dict[str, Value] | None = None,
    ) -> None:
        """End it badly."""
        await self._change("failed", title, description, data)

    async def _change(
        self,
        state: ActionState | None,
        title: str | None,
        description: str | None,
        data: dict[str, Value] | None,
    ) -> None:
        await self._writer.write(
            ChangeAction(
                part_id=self._part_id,
                state=absent(state),
                title=absent(title),
                description=absent(description),
                data=absent(data),
            )
        )
