"""Hypothesis strategies for everything on the wire, made from the types themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from midstream.protocol.values import MAX_INTEGER

if TYPE_CHECKING:
    from midstream.protocol.values import Value

TEXT_SIZE = 8
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=TEXT_SIZE)
integers = st.integers(-MAX_INTEGER, MAX_INTEGER)
scalars = st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | texts
values: st.SearchStrategy[Value] = cast(
    "st.SearchStrategy[Value]",
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    ),
)
"""Any value that the protocol carries."""


def of(kind: object) -> st.SearchStrategy[object]:
    """Anything of a type of the protocol, within the limits that stand in the type."""
    return _of(inspect.type_info(kind))


def struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[msgspec.Struct]:
    """Any Struct of this kind, each optional field there or not."""
    return cast("st.SearchStrategy[msgspec.Struct]", of(kind))


def _of(info: inspect.Type) -> st.SearchStrategy[object]:
    if isinstance(info, inspect.StructType):
        return _struct(info)
    if isinstance(info, inspect.UnionType):
        return st.one_of(*map(_of, info.types))
    if isinstance(info, inspect.LiteralType):
        return st.sampled_from(info.values)
    return _container(info)


def _container(info: inspect.Type) -> st.SearchStrategy[object]:
    if isinstance(info, inspect.ListType):
        return st.lists(_of(info.item_type), min_size=info.min_length or 0, max_size=3)
    if isinstance(info, inspect.TupleType):
        return st.tuples(*map(_of, info.item_types))
    if isinstance(info, inspect.DictType):
        return st.dictionaries(texts, _of(info.value_type), max_size=3)
    return _scalar(info)


def _scalar(info: inspect.Type) -> st.SearchStrategy[object]:
    if isinstance(info, inspect.StrType):
        shortest = info.min_length or 0
        return st.text(st.characters(exclude_categories=["Cs"]), min_size=shortest, max_size=TEXT_SIZE)
    if isinstance(info, inspect.IntType):
        lowest = -MAX_INTEGER if info.ge is None else info.ge
        return st.integers(lowest, MAX_INTEGER if info.le is None else info.le)
    return _SIMPLE[type(info)]


_SIMPLE: dict[type[inspect.Type], st.SearchStrategy[object]] = {
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    inspect.AnyType: values,
}


def _struct(info: inspect.StructType) -> st.SearchStrategy[object]:
    """An optional field is left out at times: that is how it is absent."""
    required = {field.name: _of(field.type) for field in info.fields if field.required}
    optional = {field.name: _of(field.type) for field in info.fields if not field.required}
    made: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(required, optional=optional)
    return made.map(lambda fields: info.cls(**fields))
