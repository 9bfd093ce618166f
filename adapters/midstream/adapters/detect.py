"""Which reader a stream needs, by its first event: the library's own object, or the shape of a plain one.

The module of an object's type says it for sure. A plain event is told by the fields that only its format has.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from midstream.adapters.langchain_blocks import messages_in
from midstream.adapters.langchain_protocol import EVENTS
from midstream.adapters.objects import words
from midstream.adapters.plain import Plain, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.adapters.reader import Reader

READERS = {
    "openai-chat": "midstream.adapters.openai_chat:OpenAIChatReader",
    "openai-responses": "midstream.adapters.openai_responses:OpenAIResponsesReader",
    "anthropic": "midstream.adapters.anthropic:AnthropicReader",
    "google": "midstream.adapters.google:GoogleReader",
    "pydantic-ai": "midstream.adapters.pydantic_ai:PydanticAIReader",
    "langchain": "midstream.adapters.langchain:LangChainReader",
}
"""Each format's reader, imported when a stream of it comes."""

MODULES = (
    ("openai.types.responses.", "openai-responses"),
    ("openai.lib.streaming.responses.", "openai-responses"),
    ("openai.", "openai-chat"),
    ("groq.", "openai-chat"),
    ("mistralai.", "openai-chat"),
    ("anthropic.", "anthropic"),
    ("google.genai.", "google"),
    ("pydantic_ai.", "pydantic-ai"),
    ("langchain_core.", "langchain"),
    ("langgraph.", "langchain"),
)
"""The beginning of the module of an event's type, the first that fits."""


def _type(event: Plain) -> str:
    kind = event.get("type")
    return kind if isinstance(kind, str) else ""


ANTHROPIC = {
    "message_start",
    "message_delta",
    "message_stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "ping",
}
SHAPES: tuple[tuple[str, Callable[[Plain], bool]], ...] = (
    ("openai-chat", lambda event: "choices" in event),
    ("openai-responses", lambda event: _type(event).startswith("response.")),
    ("anthropic", lambda event: _type(event) in ANTHROPIC),
    ("google", lambda event: bool({"candidates", "usageMetadata", "promptFeedback"} & event.keys())),
    ("pydantic-ai", lambda event: "event_kind" in event),
    ("langchain", lambda event: "event" in event and ("run_id" in event or words(event, "event") in EVENTS)),
    ("langchain", lambda event: {"type", "method", "params"} <= event.keys()),
    ("langchain", lambda event: {"type", "ns", "data"} <= event.keys()),
    ("langchain", lambda event: any(bool(messages_in(node)) for node in event.values())),
    ("openai-chat", lambda event: _type(event) in {"", "error"} and "error" in event),
)
"""How a plain event is told, the first that fits."""


def reader_named(name: str) -> Reader:
    """Return a new reader of a format of :data:`READERS`."""
    module, _, cls = READERS[name].partition(":")
    return cast("Callable[[], Reader]", getattr(importlib.import_module(module), cls))()


def reader_for(event: object) -> Reader:
    """Return a new reader for the stream that begins with this event.

    Raises:
        TypeError: no reader is known for it; give one to ``feed``.

    """
    name = format_of(event)
    if name is None:
        raise TypeError(
            f"No reader is known for a stream of {type(event).__module__}.{type(event).__qualname__}. "
            f"Pass one: feed(stream, reader=...); there are readers for {', '.join(READERS)}."
        )
    return reader_named(name)


def format_of(event: object) -> str | None:
    """Return the format that an event is of, by a name of :data:`READERS`; None where it cannot be told."""
    for owner in type(event).__mro__:
        for prefix, name in MODULES:
            if owner.__module__.startswith(prefix):
                return name
    if isinstance(event, (tuple, list)):
        return "langchain"  # a graph's items: what, and about what
    fields = plain(event)
    return next((name for name, fits in SHAPES if fits(fields)), None)
