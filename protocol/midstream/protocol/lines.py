"""Lines of JSON from outside: read strictly, and refused by the line and the field. Pure."""

from __future__ import annotations

import json
from functools import partial
from typing import cast

import msgspec

from midstream.protocol.errors import InvalidRequest
from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.protocol.model import Message
from midstream.protocol.parts import check_part
from midstream.protocol.scan import json_tokens, scan
from midstream.protocol.values import TOO_MANY, Value, join, problem_in
from midstream.protocol.wording import translated

LINE_BYTES = 256 * 1024 * 1024
"""Bytes of one line: the longest message (32 MiB as msgpack) in the longest form that JSON gives it."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Value).decode


class BadLine(Exception):
    """A line is not what it must be. Nothing was imported."""

    def __init__(self, line: int, field: str, problem: str) -> None:
        """Name the line, from 1, and the field by its path; empty for the line as a whole."""
        super().__init__(f"line {line}: {field}: {problem}" if field else f"line {line}: {problem}")
        self.line = line
        self.field = field
        self.problem = problem


def read_value(data: bytes, line: int) -> dict[str, Value]:
    """Return the map that a line of JSON holds, with nothing in it that the protocol does not carry.

    Raises:
        BadLine: it holds something else; names the field where one is at fault.

    """
    body = data.rstrip(b"\r\n")
    try:
        value = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        found = scan(json_tokens(body), nesting=DEFAULT_LIMITS.nesting)
        problem = found.problem if found.problem and found.problem[1] != TOO_MANY else None
        raise BadLine(line, *(problem or ("", f"is no JSON: {found.broken or error}"))) from None
    problem = problem_in(value, nesting=DEFAULT_LIMITS.nesting)
    if problem is not None:
        raise BadLine(line, *problem)
    if _encode(value) != body:
        # bytes of ours prove that no key stands twice; others have to be looked through
        json.loads(body, object_pairs_hook=partial(_distinct, line))
    if not isinstance(value, dict):
        raise BadLine(line, "", "is no map; every line is a JSON object")
    return value


def _distinct(line: int, pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise BadLine(line, key, "stands twice in its map")
        seen.add(key)


def convert(value: Value, kind: object, line: int, path: str) -> msgspec.Struct:
    """Return the Struct of a plain value; ``kind`` is its type, or a union of types that have tags.

    Raises:
        BadLine: a field is missing or of a wrong type, or is none that the Struct has.

    """
    try:
        entity: msgspec.Struct = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        where, problem = translated(str(error))
        raise BadLine(line, f"{path}.{where}" if path and where else path or where, problem) from None
    unknown = _unknown(entity, value, path)
    if unknown is not None:
        raise BadLine(line, unknown, "is no field that midstream knows; it would be lost")
    return entity


def _unknown(entity: object, value: Value, path: str) -> str | None:
    """Return the path of the first key of ``value`` that has no place in the Structs made of it."""
    inner: list[tuple[object, Value, str]] = []
    if isinstance(entity, list) and isinstance(value, list):
        pairs = zip(cast("list[object]", entity), value, strict=True)
        inner = [(one, plain, join(path, index)) for index, (one, plain) in enumerate(pairs)]
    elif isinstance(entity, msgspec.Struct) and isinstance(value, dict):
        for key, plain in value.items():
            if key in entity.__struct_fields__:
                inner.append((getattr(entity, key), plain, join(path, key)))
            elif key != entity.__struct_config__.tag_field:
                return join(path, key)
    return next((found for one in inner if (found := _unknown(*one)) is not None), None)


def check_parts(message: Message, line: int, path: str) -> None:
    """Refuse a message whose parts are not those of a message of its role.

    Raises:
        BadLine: names the field.

    """
    seen: set[str] = set()
    for index, part in enumerate(message.parts):
        where = join(path, index)
        if part.sequence != index + 1:
            raise BadLine(line, f"{where}.sequence", f"must be {index + 1}, its place")
        if not part.part_id or part.part_id in seen:
            raise BadLine(line, f"{where}.part_id", "must be there, and no other part may have it")
        seen.add(part.part_id)
        try:
            check_part(message.role, part, where)
        except InvalidRequest as error:
            raise located(line, error) from None


def located(line: int, error: InvalidRequest) -> BadLine:
    """Return a refused value as a refused line."""
    return BadLine(line, error.field, error.message.removeprefix(f"{error.field}: "))
