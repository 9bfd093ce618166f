"""The tool calls of one Chat Completions choice, however its provider numbers and cuts them (pure).

OpenAI sends an index with every piece, and id and name with the first. Others repeat the id, leave out the
index, number every call 0, or send all arguments at once, as text or as an object. A piece belongs to
a new call when it brings an id that the call at its place does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from midstream.adapters.events import ToolInputDelta, ToolInputReady, ToolStarted
from midstream.adapters.plain import at, carried, mapping, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.adapters.events import Event
    from midstream.adapters.reader import Blocks
    from midstream.protocol.values import Value


class _Call:
    def __init__(self, block: str, call_id: str) -> None:
        self.block = block
        self.call_id = call_id
        self.started = False
        self.held = ""
        self.input: Value = None


class ChatTools:
    """Joins the pieces of tool calls."""

    def __init__(self, blocks: Blocks) -> None:
        """Begin with no call."""
        self._blocks = blocks
        self._calls: list[_Call] = []
        self._places: dict[int, _Call] = {}

    def piece(self, piece: object) -> Iterator[Event]:
        """Return what a piece of a call says."""
        call = self._call(text(piece, "id"), whole(piece, "index"))
        name = text(piece, "function", "name")
        given = at(piece, "function", "arguments")
        if isinstance(given, str):
            call.held += given
        elif isinstance(given, dict):
            call.input = carried(cast("object", given))
        if not call.started and name:
            call.started = True
            yield ToolStarted(call.block, call.call_id, name)
        if call.started and call.held:
            yield ToolInputDelta(call.block, call.held)
            call.held = ""

    def end(self) -> Iterator[Event]:
        """Say that the arguments of all calls are complete."""
        for call in self._calls:
            if not call.started:
                yield ToolStarted(call.block, call.call_id, "")
                yield ToolInputDelta(call.block, call.held)
            yield ToolInputReady(call.block) if call.input is None else ToolInputReady(call.block, call.input)
        self._calls.clear()
        self._places.clear()

    def _call(self, call_id: str, place: int | None) -> _Call:
        found = self._places.get(place) if place is not None else (self._calls[-1] if self._calls else None)
        if found is not None and (not call_id or call_id == found.call_id):
            return found
        if found is not None and not found.call_id and not found.started:
            found.call_id = call_id
            return found
        found = next((call for call in self._calls if call_id and call.call_id == call_id), None)
        if found is None:
            found = _Call(self._blocks.open(("tool", call_id, place)), call_id)
            self._calls.append(found)
        if place is not None:
            self._places[place] = found
        return found


def as_piece(function_call: object) -> dict[str, object]:
    """Return the piece for a ``function_call``, the form from before there were several."""
    return {"function": mapping(function_call)}
