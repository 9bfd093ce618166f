"""Whether a provider's own library takes what was composed: its types, made exact.

The libraries type their parameters as TypedDicts that hold an ``Iterable`` here and there, which pydantic
reads only when it is iterated and which a dict or a text passes for. Here each is a list, and no
TypedDict takes a field that it does not name.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    Never,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, TypeAdapter
from typing_extensions import TypedDict, is_typeddict


def exact(library_type: object) -> TypeAdapter[Any]:
    """Return what validates values of the type, and refuses everything else."""
    return TypeAdapter(_exact(library_type))


@cache
def _exact(hint: Any) -> Any:  # noqa: ANN401  # types are values here
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or is_typeddict(hint):
        return object if hint is Any else _exact_fields(hint)
    if origin in {Required, NotRequired, Annotated}:
        return _exact(args[0])
    if origin in {Union, types.UnionType}:
        kept = tuple(arg for arg in map(_exact, args) if arg is not Never)
        return Union[kept] if kept else Never  # noqa: UP007  # the members are known only now
    if origin in {Iterable, Sequence, list} or getattr(origin, "__name__", "") == "SequenceNotStr":
        return types.GenericAlias(list, (_exact(args[0]),))
    if origin is dict:
        return types.GenericAlias(dict, (args[0], _exact(args[1])))
    # what a response holds may be given back as it is, and files may be open: here nothing is
    foreign = origin not in {None, Literal} or (isinstance(hint, type) and issubclass(hint, BaseModel))
    return Never if foreign else cast("object", hint)


def _exact_fields(library_type: Any) -> Any:  # noqa: ANN401  # types are values here
    required = cast("frozenset[str]", library_type.__required_keys__)
    hints = get_type_hints(library_type, include_extras=True)
    fields: dict[str, object] = {
        name: Required[_exact(hint)] if name in required else NotRequired[_exact(hint)]
        for name, hint in hints.items()
    }
    make = cast("Callable[[str, dict[str, object]], Any]", TypedDict)  # its fields are known only now
    made = make(library_type.__name__, fields)
    made.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return made
