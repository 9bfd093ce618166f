"""A chat model of LangChain that says what the test gives it, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.base import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field


class ScriptedModel(BaseChatModel):
    """Gives one of its answers for each request."""

    answers: list[list[AIMessageChunk]]
    asked: list[list[BaseMessage]] = Field(default_factory=list[list[BaseMessage]])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,  # noqa: ANN401  # as the library has it
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Know the tools already."""
        del tools, tool_choice, kwargs
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401  # as the library has it
    ) -> ChatResult:
        first, *rest = [chunk.message for chunk in self._stream(messages, stop, run_manager, **kwargs)]
        whole = first
        for chunk in rest:
            whole = whole + chunk
        return ChatResult(generations=[ChatGeneration(message=whole)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401  # as the library has it
    ) -> Iterator[ChatGenerationChunk]:
        del stop, run_manager, kwargs
        self.asked.append(messages)
        for chunk in self.answers[len(self.asked) - 1]:
            yield ChatGenerationChunk(message=chunk.model_copy())


def text(words: str) -> AIMessageChunk:
    """A piece of a plain text."""
    return AIMessageChunk(content=words)


def block(**fields: object) -> AIMessageChunk:
    """A piece of a content block."""
    return AIMessageChunk(content=[dict(fields)])


def call(index: int | None, name: str | None, arguments: str, call_id: str | None = None) -> AIMessageChunk:
    """A piece of a tool call."""
    piece = tool_call_chunk(name=name, args=arguments, id=call_id, index=index)
    return AIMessageChunk(content="", tool_call_chunks=[piece])


def last(reason: str, *, given: int = 3, made: int = 4) -> AIMessageChunk:
    """The end of a message: why it ended, and the tokens it used."""
    return AIMessageChunk(
        content="",
        response_metadata={"finish_reason": reason},
        usage_metadata={"input_tokens": given, "output_tokens": made, "total_tokens": given + made},
    )


LOOKS = [
    block(type="reasoning", reasoning="hm ", index=0),
    block(type="reasoning", reasoning="yes", index=0),
    block(type="text", text="Let me ", index=1),
    block(type="text", text="look.", index=1),
    call(2, "weather", "", "c1"),
    call(2, None, '{"city":'),
    call(3, "broken", "{}", "c2"),
    call(2, None, '"Rome"}'),
    last("tool_calls"),
]
"""It thinks, says what it does, and calls two tools whose arguments alternate."""
ANSWERS = [text("Sunny"), text(" there."), last("stop", given=9)]
"""It says what came of it."""
