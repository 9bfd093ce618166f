"""What model input is made of: the messages so far, and a summary of those before them (pure)."""

from __future__ import annotations

from typing import TypeAlias

from midstream.protocol.agents import Context
from midstream.protocol.model import Message

Composable: TypeAlias = Context | list[Message]
"""What can be composed: a context, as ``turn.context()`` gives it, or its messages alone."""


def context_of(given: Composable) -> Context:
    """Return the context that is given, or that of the messages."""
    return given if isinstance(given, Context) else Context(messages=given)


__all__ = ["Composable", "Context", "context_of"]
