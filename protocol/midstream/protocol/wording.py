"""What msgspec says of bytes that it refuses, as the path and the problem that an error names (SPEC 11.1)."""

from __future__ import annotations

import re

from midstream.protocol.values import join

_LOCATION = re.compile(r"(?P<problem>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_SHORT = re.compile(r"Expected `array` of at least length \d+, got (\d+)")


def translated(text: str, names: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return the path and the problem of a message of msgspec; ``names`` are those of a frame's elements."""
    match = _LOCATION.fullmatch(text)
    problem, path = (match["problem"], match["path"] or "") if match else (text, "")
    path = path.removeprefix(".")
    missing = _MISSING.fullmatch(problem)
    if missing:
        return join(path, missing[1]), "is missing"
    short = _SHORT.fullmatch(problem)
    if short and not path and int(short[1]) < len(names):
        return join("", int(short[1])), "is missing"
    return path, problem


def named(path: str, names: tuple[str, ...]) -> str:
    """Return the path with its first index, that of a frame's element, replaced by the element's name."""
    match = re.match(r"\[(\d+)\]", path)
    if match is None or int(match[1]) >= len(names):
        return path
    name, rest = names[int(match[1])], path[match.end() :]
    return rest.removeprefix(".") if name in {"params", "write"} and rest else name + rest
