"""Model input from canonical messages: ``compose(messages, "anthropic")`` (pure).

What people and the agent said goes to any provider in its own form, legal whatever happened: every tool
call has its result, those that were denied, failed, stopped or never ran too. ``context`` parts stand as
``<tag>escaped</tag>``; ``data``, sources, actions, errors and interactions are left out. What a provider
wants back of its own (signatures, encrypted reasoning, its own tools' calls) goes back to it, and to no
other.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Literal, cast, overload

from midstream.adapters.compose.context import Composable, Context, context_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic.types import MessageParam
    from google.genai.types import ContentDict
    from langchain_core.messages import BaseMessage
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam
    from pydantic_ai.messages import ModelMessage

COMPOSERS = {
    "openai-chat": "midstream.adapters.compose.openai_chat",
    "openai-responses": "midstream.adapters.compose.openai_responses",
    "anthropic": "midstream.adapters.compose.anthropic",
    "google": "midstream.adapters.compose.google",
    "pydantic-ai": "midstream.adapters.compose.pydantic_ai",
    "langchain": "midstream.adapters.compose.langchain",
}
"""Each form's module, imported when it is asked for: its ``compose`` takes a context."""


@overload
def compose(context: Composable, provider: Literal["openai-chat"]) -> list[ChatCompletionMessageParam]: ...
@overload
def compose(context: Composable, provider: Literal["openai-responses"]) -> list[ResponseInputItemParam]: ...
@overload
def compose(context: Composable, provider: Literal["anthropic"]) -> list[MessageParam]: ...
@overload
def compose(context: Composable, provider: Literal["google"]) -> list[ContentDict]: ...
@overload
def compose(context: Composable, provider: Literal["pydantic-ai"]) -> list[ModelMessage]: ...
@overload
def compose(context: Composable, provider: Literal["langchain"]) -> list[BaseMessage]: ...


def compose(context: Composable, provider: str) -> object:
    """Return the messages, or the context, as the input of a request to a provider.

    ``provider`` is a name of :data:`COMPOSERS`. The same messages always give the same input, and more
    messages the same beginning, so that a provider's prompt cache holds.

    Raises:
        ValueError: the provider has no composer.

    """
    if provider not in COMPOSERS:
        raise ValueError(f"There is no composer for {provider!r}; there are {', '.join(COMPOSERS)}.")
    module = importlib.import_module(COMPOSERS[provider])
    return cast("Callable[[Context], object]", module.compose)(context_of(context))


__all__ = ["COMPOSERS", "Composable", "Context", "compose"]
