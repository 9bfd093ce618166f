"""Reading a frame token by token, to name what is wrong with it (SPEC 2.1).

The decoders of msgspec are fast, but take the last of two equal keys silently, stop at deep
nesting with a RecursionError, and do not always say where. What they refuse, or what does not look
as they would have written it, is read again here: without recursion, at about 1 µs a token, and
only as far as the first problem.
"""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import msgspec

from midstream.protocol.values import (
    BAD_KEY,
    MAX_VALUES,
    TOO_DEEP,
    TOO_MANY,
    is_unicode,
    join,
    scalar_problem,
    shorten,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Token: TypeAlias = tuple[Literal["array", "map", "end", "scalar"], object]
DUPLICATE = "stands twice in its map"
HEAD = 3
"""How many elements of the outermost array are kept: the tag, the id and the method of a call."""


class Broken(Exception):
    """The bytes are no value of the encoding."""


class Scan(msgspec.Struct):
    """What was seen up to the end, or to the first problem."""

    head: list[str | int | None] = []
    """The first elements of the outermost array; None stands for one of another type."""
    problem: tuple[str, str] | None = None
    """The path and the description of the first value that the protocol does not carry."""
    broken: str | None = None
    """Why the bytes are no value of the encoding."""


class _Level:
    __slots__ = ("index", "is_map", "key", "seen")

    def __init__(self, *, is_map: bool) -> None:
        self.is_map = is_map
        self.index = -1  # of the item that was read last; in a map, keys and values count
        self.key: object = None
        self.seen: set[str] = set()


def scan(tokens: Iterator[Token], *, nesting: int) -> Scan:
    """Read tokens until a problem comes; ``nesting`` is how many levels of arrays and maps may be."""
    found = Scan()
    levels: list[_Level] = []
    left = 2 * MAX_VALUES  # a key is an item of its own here
    try:
        for kind, item in tokens:
            left -= 1
            if left < 0:
                found.problem = _path(levels), TOO_MANY
                return found
            if kind == "end":
                levels.pop()
                continue
            found.problem = _next_item(levels, item if kind == "scalar" else levels)
            if found.problem is None and kind != "scalar" and len(levels) == nesting:
                found.problem = _path(levels), TOO_DEEP
            if len(levels) == 1 and not levels[0].is_map and len(found.head) < HEAD:
                found.head.append(item if isinstance(item, (str, int)) else None)
            if found.problem:
                return found
            if kind != "scalar":
                levels.append(_Level(is_map=kind == "map"))
    except Broken as error:
        found.broken = str(error)
    return found


def _next_item(levels: list[_Level], item: object) -> tuple[str, str] | None:
    """Take the next item into account; a container is given as the list of levels, as no scalar is."""
    if levels:
        level = levels[-1]
        level.index += 1
        if level.is_map and level.index % 2 == 0:
            level.key = None
            if not isinstance(item, str) or not is_unicode(item):
                return _path(levels[:-1]), BAD_KEY
            level.key = item
            if item in level.seen:
                return _path(levels), DUPLICATE
            level.seen.add(item)
            return None
    problem = None if item is levels else scalar_problem(item)
    return (_path(levels), problem) if problem else None


def _path(levels: list[_Level]) -> str:
    path = ""
    for level in levels:
        path = join(path, level.key if level.is_map else level.index)
    return shorten(path)


_MSGPACK_CODES: dict[int, tuple[str, int | str | None]] = {
    **{code: ("constant", code) for code in range(0x80)},
    **{0x80 + size: ("map", size) for size in range(16)},
    **{0x90 + size: ("array", size) for size in range(16)},
    **{0xA0 + size: ("text", size) for size in range(32)},
    0xC0: ("constant", None),
    0xC2: ("constant", False),
    0xC3: ("constant", True),
    **{0xC4 + index: ("binary", layout) for index, layout in enumerate((">B", ">H", ">I"))},
    **{0xC7 + index: ("extension", layout) for index, layout in enumerate((">B", ">H", ">I"))},
    **{0xCA + index: ("number", f">{layout}") for index, layout in enumerate("fdBHIQbhiq")},
    **{0xD4 + power: ("extension", 2**power) for power in range(5)},
    **{0xD9 + index: ("text", layout) for index, layout in enumerate((">B", ">H", ">I"))},
    0xDC: ("array", ">H"),
    0xDD: ("array", ">I"),
    0xDE: ("map", ">H"),
    0xDF: ("map", ">I"),
    **{0x100 + value: ("constant", value) for value in range(-0x20, 0)},
}
"""What each first byte begins, with its value or size; a text is the layout of the number that follows."""


class _Reader:
    """A position in msgpack bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) < size:
            raise Broken("it ends in the middle of a value")
        self.at += size
        return piece

    def number(self, layout: str) -> int | float:
        value: int | float = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return value

    def next(self) -> tuple[str, object]:
        """Return what begins here and its value, or its number of items."""
        code = self.take(1)[0]
        if code not in _MSGPACK_CODES:
            raise Broken(f"the code {code:#x} is not used in msgpack")
        kind, size = _MSGPACK_CODES[code]
        number = self.number(size) if isinstance(size, str) else size
        if kind == "text":
            return kind, self.take(int(number or 0)).decode("utf-8", "surrogateescape")
        if kind == "binary":
            return kind, self.take(int(number or 0))
        if kind == "extension":
            return kind, msgspec.msgpack.Ext(int(self.number(">b")), self.take(int(number or 0)))
        return kind, number


def msgpack_tokens(data: bytes) -> Iterator[Token]:
    """Yield the tokens of one msgpack value; text that is no UTF-8 comes with lone surrogates.

    Raises:
        Broken: the bytes end too early, go on after the value, or have an unused code.

    """
    reader = _Reader(data)
    left = [1]  # how many items are still to come, on each level
    while left:
        if not left[-1]:
            left.pop()
            if left:
                yield "end", None
            continue
        left[-1] -= 1
        kind, value = reader.next()
        if kind in {"map", "array"}:
            yield ("map" if kind == "map" else "array"), None
            left.append(cast("int", value) * (2 if kind == "map" else 1))
        else:
            yield "scalar", value
    if reader.at != len(data):
        raise Broken("something follows the value")


_JSON_TOKEN = re.compile(
    r"""[ \t\n\r]*+(?:
        (?P<bracket>[\[\]{}]) | (?P<between>[,:])
      | (?P<text>"(?:[^"\\\x00-\x1f]++|\\.)*+")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?P<float>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))
      | (?P<word>true|false|null|NaN|-?Infinity)
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_JSON_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
_INTEGER_DIGITS = 17  # with its sign, 2^53-1 has as many


def json_tokens(data: bytes | str) -> Iterator[Token]:
    """Yield the tokens of one JSON text, brackets in balance; commas and colons are not checked.

    ``NaN`` and ``Infinity`` are no JSON, but are read here, so that they can be named.

    Raises:
        Broken: no UTF-8, no token of JSON, or brackets that do not match.

    """
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise Broken("it is not UTF-8") from error
    opened: list[str] = []
    at, values = 0, 0
    while True:
        match = _JSON_TOKEN.match(text, at)
        if match is None:
            raise Broken(f"at character {at} there is no token of JSON")
        at = match.end()
        kind = match.lastgroup
        if kind == "end":
            break
        if kind == "between":
            continue
        values += not opened
        if kind != "bracket":
            yield "scalar", _json_scalar(match)
        elif match["bracket"] in "[{":
            opened.append(match["bracket"])
            yield "array" if match["bracket"] == "[" else "map", None
        elif not opened or opened.pop() + match["bracket"] not in {"[]", "{}"}:
            raise Broken(f"the bracket before character {at} closes nothing")
        else:
            yield "end", None
    if opened or values != 1:
        raise Broken("it is not one whole value")


def _json_scalar(match: re.Match[str]) -> object:
    if match["text"] is not None:
        try:
            text: object = json.loads(match["text"])
        except ValueError as error:
            raise Broken(f"a string has a bad escape: {error}") from error
        return text
    if match["number"] is None:
        return _JSON_WORDS.get(match["word"], float("nan"))
    if match["float"]:
        return float(match["number"])
    # int() of thousands of digits is slow, and of more refused
    return int(match["number"]) if len(match["number"]) <= _INTEGER_DIGITS else 10**_INTEGER_DIGITS
