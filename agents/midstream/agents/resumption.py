"""What another process left of a turn that this one goes on with (SPEC 14). Pure.

In the server's process nothing is ever resumed: a turn whose process is gone has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.agents import AbandonStep, EndText, MoveTool
from midstream.protocol.model import InteractionPart, ReasoningPart, TextPart, ToolPart
from midstream.protocol.transitions import is_open

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.protocol.agents import Write
    from midstream.protocol.model import InteractionRequest, InteractionType, Message, Part

CUT_OFF = "Its arguments were cut off: the worker that streamed them is gone."


class Resumption:
    """The open messages of a turn as they were when this process was given it."""

    def __init__(self, messages: list[Message]) -> None:
        """Take the messages, ascending."""
        self._parts: list[Part] = [part for message in messages for part in message.parts]
        self._taken: str | None = None
        self._is_ended = False

    @property
    def open_step_id(self) -> str | None:
        """The newest step in which something still streams; None where nothing does, or an agent has it."""
        if self._taken is not None or self._is_ended:
            return None
        return next((part.step_id for part in reversed(self._parts) if _streams(part) and part.step_id), None)

    def take(self, step_id: str) -> None:
        """Note that an agent goes on with this step."""
        self._taken = step_id

    def texts(self, step_id: str) -> list[TextPart | ReasoningPart]:
        """Return the texts and reasonings of a step that still stream, in order."""
        return [
            part
            for part in self._parts
            if isinstance(part, (TextPart, ReasoningPart)) and part.step_id == step_id and _streams(part)
        ]

    def streaming_calls(self, step_id: str) -> list[ToolPart]:
        """Return the tool calls of a step whose arguments still stream, in order."""
        return [
            part
            for part in self._parts
            if isinstance(part, ToolPart) and part.step_id == step_id and _streams(part)
        ]

    def calls(self) -> list[ToolPart]:
        """Return the tool calls that had not ended, in order."""
        return [part for part in self._parts if isinstance(part, ToolPart) and is_open(part)]

    def is_given_up(self, part: ToolPart) -> bool:
        """Say whether a call was ended because its arguments still streamed, and nobody went on with it."""
        return self._is_ended and _streams(part) and part.step_id != self._taken

    def asked(
        self, interaction_type: InteractionType, request: InteractionRequest, tool_call_id: str | None
    ) -> InteractionPart | None:
        """Return the interaction that a question is, where it was asked already.

        For a tool call it is the newest of that call and type. Any other is the same if it asks the
        same, and waits for its answer or is the last thing that was written: then whoever asked did
        not get as far as to use the answer.
        """
        for index in range(len(self._parts) - 1, -1, -1):
            part = self._parts[index]
            if not isinstance(part, InteractionPart) or part.interaction_type != interaction_type:
                continue
            if tool_call_id is not None:
                if part.tool_call_id == tool_call_id:
                    return part
            elif part.tool_call_id is UNSET and _asks_the_same(part.request, request):
                return part if part.status == "pending" or index == len(self._parts) - 1 else None
        return None

    def endings(self) -> Iterator[Write]:
        """Give, once, the writes that end what still streams and no agent goes on with.

        A step of which no tool got past its arguments is undone; of any other, what still streams ends.
        """
        if self._is_ended:
            return
        self._is_ended = True
        steps = dict.fromkeys(part.step_id for part in self._parts if _streams(part) and part.step_id)
        for step_id in steps:
            if step_id == self._taken:
                continue
            if any(_has_begun(part) for part in self._parts if part.step_id == step_id):
                for text in self.texts(step_id):
                    yield EndText(part_id=text.part_id)
                for call in self.streaming_calls(step_id):
                    yield MoveTool(part_id=call.part_id, state="failed", error=CUT_OFF)
            else:
                yield AbandonStep(step_id=step_id)


def _streams(part: Part) -> bool:
    if isinstance(part, ToolPart):
        return part.state == "input-streaming"
    return isinstance(part, (TextPart, ReasoningPart)) and part.state == "streaming"


def _has_begun(part: Part) -> bool:
    return isinstance(part, ToolPart) and part.state != "input-streaming"


def _asks_the_same(one: InteractionRequest, other: InteractionRequest) -> bool:
    """Compare what is asked; when it expires is the server's word."""
    return structs.replace(one, expires_at=UNSET) == structs.replace(other, expires_at=UNSET)
