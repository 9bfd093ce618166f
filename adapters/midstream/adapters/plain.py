"""Any event as plain values: a library's object, a mapping or a line of JSON alike (pure).

The accessors are total: they return an empty value where there is none of the wanted type, so that
a reader never fails on odd input.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import cast

import msgspec

from midstream.protocol.values import MAX_INTEGER, Value, problem_in

Plain = dict[str, object]
NESTING = 48
"""Levels of a value that is kept, so that the part that holds it is within the limit `nesting`."""
SNAPSHOTS = {"snapshot", "parsed"}
"""Fields of events that repeat all that came before: copied for each event they would cost the square."""


def plain(event: object) -> Plain:  # noqa: PLR0911  # one return for each kind of object
    """Return the event as a dict, by the names that are on the wire; empty where it cannot be one.

    Takes a dict as it is, another mapping, a line of JSON, and objects of pydantic, msgspec and
    dataclasses.
    """
    if isinstance(event, dict):
        return cast("Plain", event)
    if isinstance(event, Mapping):
        return dict(cast("Mapping[str, object]", event))
    if isinstance(event, (str, bytes)):
        return _parsed(event)
    dump = getattr(event, "model_dump", None)
    if callable(dump):
        return _dumped(event)
    if isinstance(event, msgspec.Struct):
        return cast("Plain", msgspec.to_builtins(event))
    if dataclasses.is_dataclass(event) and not isinstance(event, type):
        return {field.name: getattr(event, field.name, None) for field in dataclasses.fields(event)}
    fields = getattr(event, "__dict__", None)
    return dict(cast("Plain", fields)) if isinstance(fields, dict) else {}


def _parsed(line: str | bytes) -> Plain:
    try:
        value: object = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return cast("Plain", value) if isinstance(value, dict) else {}


def _dumped(event: object) -> Plain:
    dump = event.model_dump  # type: ignore[attr-defined]  # pydantic's, which is not imported for it
    asked = {"by_alias": True, "exclude_unset": True, "exclude": SNAPSHOTS, "warnings": False}
    try:
        return cast("Plain", dump(mode="json", **asked))
    except ValueError:  # bytes that are no text
        return cast("Plain", dump(mode="python", **asked))


def text(event: object, *path: str | int) -> str:
    """Return the text at the path, or an empty one."""
    value = at(event, *path)
    return value if isinstance(value, str) else ""


def whole(event: object, *path: str | int) -> int | None:
    """Return the integer at the path."""
    value = at(event, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(event: object, *path: str | int) -> Plain:
    """Return the map at the path, or an empty one."""
    value = at(event, *path)
    return cast("Plain", value) if isinstance(value, dict) else {}


def items(event: object, *path: str | int) -> list[object]:
    """Return the list at the path, or an empty one."""
    value = at(event, *path)
    return cast("list[object]", value) if isinstance(value, list) else []


def at(event: object, *path: str | int) -> object:
    """Return what stands at the path of keys and indices, or None."""
    for key in path:
        if isinstance(event, dict):
            event = cast("Plain", event).get(cast("str", key))
        elif isinstance(event, list) and isinstance(key, int):
            found = cast("list[object]", event)
            if not -len(found) <= key < len(found):
                return None
            event = found[key]
        else:
            return None
    return event


_CONVERTED: tuple[type, ...] = (tuple, msgspec.Struct)
"""What the protocol's codecs take as a list or a map, and readers give back as one."""


def carried(value: object, nesting: int = NESTING) -> Value:
    """Return the value as the protocol can carry it (SPEC 2.1); what already can be is returned as it is.

    Integers beyond 2^53-1 and numbers that are not finite become text, lone surrogates U+FFFD, objects plain
    values, and what nests too deep a note that something was left out.
    """
    is_odd = isinstance(value, _CONVERTED) or problem_in(value, nesting=nesting) is not None
    return _carried(value, nesting) if is_odd else cast("Value", value)


def _carried(value: object, left: int) -> Value:  # noqa: PLR0911  # one return for each kind of value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return unicode(value)
    if isinstance(value, int):
        return int(value) if -MAX_INTEGER <= value <= MAX_INTEGER else f"{value:#x}"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not left:
        return f"({type(value).__name__} left out: nested too deep)"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {unicode(str(key)): _carried(item, left - 1) for key, item in pairs}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_carried(item, left - 1) for item in cast("list[object]", value)]
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="replace")
    fields = plain(value)
    return _carried(fields, left) if fields else unicode(str(value))


def in_words(value: Value) -> str:
    """Return the value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def unicode(words: str) -> str:
    """Return the text with surrogate pairs joined, and U+FFFD for each half that stands alone."""
    if words.isascii():
        return words
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
