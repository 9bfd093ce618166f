"""Fields of a library's objects and of plain dicts alike, read without copying them (pure).

As the accessors of :mod:`.plain`, these are total: what is not there, or not of the wanted type, is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast


def field(thing: object, *path: str) -> object:
    """Return what stands at the path of keys or attributes, or None."""
    for name in path:
        if isinstance(thing, Mapping):
            thing = cast("Mapping[str, object]", thing).get(name)
        elif isinstance(thing, (str, int, float, list, tuple)) or thing is None:
            return None
        else:
            try:
                thing = getattr(thing, name, None)
            except Exception:  # noqa: BLE001  # a property of a library may raise whatever it likes
                return None
    return thing


def words(thing: object, *path: str) -> str:
    """Return the text at the path, or an empty one."""
    value = field(thing, *path)
    return value if isinstance(value, str) else ""


def number(thing: object, *path: str) -> int | None:
    """Return the integer at the path."""
    value = field(thing, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def each(thing: object, *path: str) -> list[object]:
    """Return the items of the list or tuple at the path, or none."""
    value = field(thing, *path)
    return list(cast("list[object]", value)) if isinstance(value, (list, tuple)) else []


def pairs(thing: object, *path: str) -> dict[str, object]:
    """Return the map at the path, or an empty one."""
    value = field(thing, *path)
    if not isinstance(value, Mapping):
        return {}
    return {str(key): item for key, item in cast("Mapping[object, object]", value).items()}
