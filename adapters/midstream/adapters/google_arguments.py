"""Arguments of a Gemini function call that come in pieces, each with the JSON path it belongs to (pure)."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, cast

from midstream.adapters.plain import NESTING, carried, text

if TYPE_CHECKING:
    from midstream.adapters.plain import Plain
    from midstream.protocol.values import Value

_STEP = re.compile(r"""\.([^.\[]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
MAX_INDEX = 10_000
"""The highest index of an array that is believed: a path is a stranger's word, and makes what it names."""


class PartialArguments:
    """The arguments as far as they have come."""

    def __init__(self, arguments: Plain) -> None:
        """Begin with those that were given whole."""
        self._root: dict[str, Value] = {name: carried(value) for name, value in arguments.items()}
        self._growing = ""  # the path of the text that grows, and its last pieces: joined once, not at each
        self._pieces: list[str] = []

    def add(self, piece: Plain) -> bool:
        """Put a value at its path, or append text to the text that is there; say whether it could be done."""
        path, value = text(piece, "jsonPath"), _value(piece)
        if isinstance(value, str) and path and path == self._growing:
            self._pieces.append(value)
            return True
        self._join()
        if value is _ABSENT or not self._place(path, cast("Value", value)):
            return False
        self._growing = path if isinstance(value, str) else ""
        return True

    def value(self) -> dict[str, Value]:
        """Return the arguments."""
        self._join()
        return self._root

    def _join(self) -> None:
        if self._pieces:
            self._place(self._growing, "".join(self._pieces))
        self._growing, self._pieces = "", []

    def _place(self, path: str, value: Value) -> bool:
        trail = steps(path)
        if not trail or len(trail) > NESTING:
            return False
        place: object = self._root
        for step, following in itertools.pairwise(trail):
            place = _entered(place, step, [] if isinstance(following, int) else {})
        return _put(place, trail[-1], value)


def steps(path: str) -> list[str | int] | None:
    """Return the keys and indices of a JSON path (RFC 9535, names and indices only); None for any other."""
    if not path.startswith("$"):
        return None
    found: list[str | int] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return None
        name, index, single, double = match.groups()
        if index is not None and int(index) > MAX_INDEX:
            return None
        found.append(int(index) if index is not None else name or single or double or "")
        at = match.end()
    return found


_ABSENT = object()


def _value(piece: Plain) -> object:
    for name in ("stringValue", "numberValue", "boolValue"):
        if piece.get(name) is not None:
            return carried(piece[name])
    return None if "nullValue" in piece else _ABSENT


def _entered(place: object, step: str | int, empty: Value) -> object:
    if isinstance(step, int):
        if not isinstance(place, list):
            return None
        entries = cast("list[Value]", place)
        entries.extend([None] * (step + 1 - len(entries)))
        if entries[step] is None:
            entries[step] = empty
        return entries[step]
    return cast("dict[str, Value]", place).setdefault(step, empty) if isinstance(place, dict) else None


def _put(place: object, step: str | int, value: Value) -> bool:
    before = _entered(place, step, None)
    if isinstance(before, str) and isinstance(value, str):
        value = before + value
    if isinstance(step, int) and isinstance(place, list):
        cast("list[Value]", place)[step] = value
        return True
    if isinstance(step, str) and isinstance(place, dict):
        cast("dict[str, Value]", place)[step] = value
        return True
    return False
