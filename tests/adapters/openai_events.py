"""Small streams of OpenAI's two formats, written by hand."""

from __future__ import annotations

from typing import TypeAlias

Plain: TypeAlias = "dict[str, object]"


def chunk(finish: str | None = None, *, index: int = 0, **delta: object) -> Plain:
    """One chunk of Chat Completions with one choice."""
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [{"index": index, "delta": delta, "finish_reason": finish}],
    }


def call_piece(arguments: object = None, *, index: int | None = 0, **fields: object) -> Plain:
    """One chunk with a piece of a tool call; ``name`` stands in its function."""
    function = {"arguments": arguments} if arguments is not None else {}
    if "name" in fields:
        function["name"] = fields.pop("name")
    piece: Plain = {"function": function, **fields}
    if index is not None:
        piece["index"] = index
    return chunk(tool_calls=[piece])


def response(*inner: Plain, status: str = "completed", **fields: object) -> list[Plain]:
    """A whole response around these events."""
    return [
        {"type": "response.created", "response": {"id": "r", "output": []}},
        *inner,
        {"type": f"response.{status}", "response": {"id": "r", "status": status, "output": [], **fields}},
    ]


def added(item: Plain, index: int = 0) -> Plain:
    """An item begins."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item: Plain, index: int = 0) -> Plain:
    """An item is complete."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def event(kind: str, index: int = 0, **fields: object) -> Plain:
    """Another event of the response."""
    return {"type": f"response.{kind}", "output_index": index, **fields}


def said_text(text: str, index: int = 0, content: int = 0) -> Plain:
    """More of a text."""
    return event("output_text.delta", index, content_index=content, delta=text, item_id=f"msg_{index}")
