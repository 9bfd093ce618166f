"""Small streams of Gemini, written by hand: chunks with parts in their first candidate."""

from __future__ import annotations

from typing import TypeAlias

Plain: TypeAlias = "dict[str, object]"


def chunk(*parts: Plain, finish: str | None = None, response: str = "r1", **fields: object) -> Plain:
    """One chunk; ``fields`` are those of the candidate."""
    candidate: Plain = {"index": 0, "content": {"role": "model", "parts": list(parts)}, **fields}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"responseId": response, "candidates": [candidate]}


def text(words: str, **fields: object) -> Plain:
    """A part of text."""
    return {"text": words, **fields}


def call(name: str, arguments: object = None, *, signature: str | None = None, **fields: object) -> Plain:
    """A part that calls a function."""
    called: Plain = {"name": name, **({} if arguments is None else {"args": arguments}), **fields}
    return {"functionCall": called, **({"thoughtSignature": signature} if signature else {})}


def pieces(*given: tuple[str, object], more: bool = True) -> Plain:
    """A part with more of the arguments of the call before it, each value by its JSON path."""
    names: dict[object, str] = {
        str: "stringValue",
        bool: "boolValue",
        float: "numberValue",
        type(None): "nullValue",
    }
    partial = [{"jsonPath": path, names[type(value)]: value} for path, value in given]
    return {"functionCall": {"partialArgs": partial, **({"willContinue": True} if more else {})}}
