"""Ids and names as a provider takes them: a conversation can come from another one (pure)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midstream.protocol.model import ToolPart


class CallIds:
    """Ids of tool calls, each legal and none given twice, the same ones for the same messages.

    An id that is legal and new stays as it is.
    """

    def __init__(self, illegal: str, longest: int) -> None:
        """Allow what has no character of the class ``illegal``, up to ``longest`` characters."""
        self._illegal = re.compile(illegal)
        self._longest = longest
        self._given: set[str] = set()

    def of(self, part: ToolPart) -> str:
        """Return the id for the next call."""
        wanted = self._illegal.sub("_", part.tool_call_id)[: self._longest] or "call"
        given, count = wanted, 1
        while given in self._given:
            count += 1
            ending = f"_{count}"
            given = wanted[: self._longest - len(ending)] + ending
        self._given.add(given)
        return given


def legal_name(name: str, illegal: str, longest: int) -> str:
    """Return a tool's name without the characters that are illegal, cut to the length."""
    return re.sub(illegal, "_", name)[:longest] or "tool"
