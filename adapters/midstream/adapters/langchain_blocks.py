"""LangChain's messages: which objects are some, where they hide, and their standard blocks (pure)."""

from __future__ import annotations

from typing import cast

from midstream.adapters.objects import each, field, pairs, words

MESSAGES = {
    "ai",
    "AIMessageChunk",
    "tool",
    "ToolMessageChunk",
    "human",
    "HumanMessageChunk",
    "system",
    "remove",
}
TOOL_BLOCKS = {"tool_call", "tool_call_chunk", "invalid_tool_call"}
RUN_IDS = ("lc_run-", "run-", "run_")


def is_message(thing: object) -> bool:
    """Whether this is a message, as an object or as it is recorded."""
    return words(thing, "type") in MESSAGES and field(thing, "content") is not None


def is_run_id(message_id: str) -> bool:
    """Whether LangChain made this id, for want of one of the model's own."""
    return message_id.startswith(RUN_IDS)


def message_of(thing: object) -> object:
    """Return a model's message as the library's object, which knows how to translate its content."""
    recorded = pairs(thing)
    if not recorded:
        return thing
    from langchain_core.messages import AIMessage, AIMessageChunk  # noqa: PLC0415  # an extra

    kind = AIMessage if recorded.get("type") == "ai" else AIMessageChunk
    return kind.model_validate(recorded)


def messages_in(value: object) -> list[object]:
    """Return the messages in what a node gave: a message, a list, a state with ``messages``, a command."""
    if is_message(value):
        return [value]
    if isinstance(value, (list, tuple)):
        return [message for item in cast("list[object]", value) for message in messages_in(item)]
    inner = field(value, "messages") or field(value, "update")
    return [] if inner is None or inner is value else messages_in(inner)


def blocks_of(chunk: object) -> list[object]:
    """Return the standard blocks of a message or chunk.

    Its tool calls are left out where the message has them in its own fields, which say more. The
    library translates what a provider's integration wrote; only a plain text is read without it, because
    that is what most chunks are.
    """
    content = field(chunk, "content")
    if isinstance(content, str) and not pairs(chunk, "additional_kwargs"):
        return [{"type": "text", "text": content}] if content else []
    blocks = each(chunk, "content_blocks")
    has_calls = bool(each(chunk, "tool_call_chunks") or each(chunk, "tool_calls"))
    return [block for block in blocks if not (has_calls and words(block, "type") in TOOL_BLOCKS)]
