"""The values that both encodings carry alike (SPEC 2.1).

Maps have string keys; integers are below 2^53 in magnitude; floats are finite; text is valid
Unicode without lone surrogates; there is no binary and no extension type.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
    """Anything that both encodings can carry."""
else:
    # msgspec has no recursive alias: values are decoded as they come and checked afterwards
    from typing import Any as Value

MAX_INTEGER = 2**53 - 1
"""The greatest magnitude of any integer on the wire: what a double holds exactly (RFC 8259, section 6)."""


def problem_in(value: object, *, nesting: int, path: str = "") -> tuple[str, str] | None:
    """Return the path and the description of the first thing in ``value`` that may not be on the wire.

    Walks without recursion, so that the depth of hostile input cannot exhaust the stack.
    ``nesting`` is how many levels of lists and maps are allowed below here. Returns None for a good
    value.
    """
    todo: list[tuple[object, str, int]] = [(value, path, nesting)]
    while todo:
        item, where, left = todo.pop()
        problem = _scalar_problem(item)
        if problem:
            return where, problem
        if isinstance(item, (list, tuple, dict)) and left == 0:
            return where, f"is nested deeper than {nesting} levels"
        if isinstance(item, dict):
            for key, inner in item.items():
                if not isinstance(key, str) or _scalar_problem(key):
                    return where, "has a key that is not a valid Unicode string"
                todo.append((inner, f"{where}.{key}" if where else key, left - 1))
        elif isinstance(item, (list, tuple)):
            todo.extend((inner, f"{where}[{index}]", left - 1) for index, inner in enumerate(item))
    return None


def _scalar_problem(item: object) -> str | None:
    if item is None or isinstance(item, (bool, list, tuple, dict)):
        return None
    if isinstance(item, str):
        # isascii is a flag of the string; only other text has to be encoded to be proved
        return None if item.isascii() or _is_unicode(item) else "has a lone surrogate; send whole code points"
    if isinstance(item, int):
        return None if -MAX_INTEGER <= item <= MAX_INTEGER else "is an integer beyond 2^53-1; send it as a string"
    if isinstance(item, float):
        return None if math.isfinite(item) else "is not a finite number"
    return f"is of type {type(item).__name__}, which the protocol does not carry"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
