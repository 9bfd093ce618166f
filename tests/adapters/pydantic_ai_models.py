"""Models of Pydantic AI that say what the test gives them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

Said = str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]


def model(*answers: Sequence[Said]) -> FunctionModel:
    """A model that gives these answers, one for each request."""
    left = iter(answers)

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Said]:
        for piece in next(left):
            yield piece

    return FunctionModel(stream_function=stream)


def call(
    index: int, name: str | None, arguments: str, call_id: str | None = None
) -> dict[int, DeltaToolCall]:
    """A piece of a tool call."""
    return {index: DeltaToolCall(name=name, json_args=arguments, tool_call_id=call_id)}
