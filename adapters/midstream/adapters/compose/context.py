"""What model input is made of: the messages so far, and a summary of those before them (pure)."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from midstream.protocol.model import Message


class Context(Struct, frozen=True):
    """Messages in ascending order, internal ones included, after what ``summary`` stands for."""

    messages: list[Message]
    summary: str | None = None


Composable: TypeAlias = Context | list[Message]
"""What can be composed: a context, or its messages alone."""


def context_of(given: Composable) -> Context:
    """Return the context that is given, or that of the messages."""
    return given if isinstance(given, Context) else Context(given)
