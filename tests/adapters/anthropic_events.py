"""Small streams of Anthropic's Messages, written by hand."""

from __future__ import annotations

from typing import TypeAlias

Plain: TypeAlias = "dict[str, object]"

USAGE: Plain = {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 1}
STOP: Plain = {"type": "message_stop"}


def begun(**fields: object) -> Plain:
    """A message begins."""
    message: Plain = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
        **fields,
    }
    return {"type": "message_start", "message": message}


def start(index: int, kind: str, **fields: object) -> Plain:
    """A block begins."""
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: object) -> Plain:
    """A block grows."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Plain:
    """A block ends."""
    return {"type": "content_block_stop", "index": index}


def over(reason: str = "end_turn", **fields: object) -> list[Plain]:
    """The message ends, for this reason."""
    change: Plain = {"stop_reason": reason, "stop_sequence": None, **fields}
    return [{"type": "message_delta", "delta": change, "usage": {"output_tokens": 7}}, STOP]


def text(index: int, *words: str) -> list[Plain]:
    """A whole text."""
    pieces = [delta(index, "text_delta", text=word) for word in words]
    return [start(index, "text", text=""), *pieces, stop(index)]


def call(index: int, kind: str, *pieces: str, **fields: object) -> list[Plain]:
    """A whole call, its arguments in pieces."""
    deltas = [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return [start(index, kind, input={}, **fields), *deltas, stop(index)]


def message(*events: Plain, reason: str = "end_turn") -> list[Plain]:
    """A whole message around these events."""
    return [begun(), *events, *over(reason)]
