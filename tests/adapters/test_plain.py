"""Any event as plain values, and any value as the protocol carries it."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType, SimpleNamespace

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.adapters.plain import (
    NESTING,
    at,
    carried,
    in_words,
    items,
    mapping,
    plain,
    text,
    unicode,
    whole,
)
from midstream.protocol.values import problem_in


class Inner(pydantic.BaseModel):
    """A nested model."""

    name: str | None = None


class Model(pydantic.BaseModel):
    """As the libraries' own events are."""

    model_config = pydantic.ConfigDict(extra="allow")
    kind: str = pydantic.Field(alias="type")
    inner: Inner
    missing: int = 3
    snapshot: str = ""


class Structure(msgspec.Struct):
    """As a faster library's could be."""

    a: int


@dataclasses.dataclass
class Data:
    """As a framework's own events are."""

    a: int


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ({"a": 1}, {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ('{"a":1}', {"a": 1}),
        (b'{"a":1}', {"a": 1}),
        ("[1]", {}),
        ("[DONE]", {}),
        (b"\xff", {}),
        ("[" * 100_000, {}),
        (Structure(a=1), {"a": 1}),
        (Data(a=1), {"a": 1}),
        (SimpleNamespace(a=1), {"a": 1}),
        (None, {}),
        (7, {}),
    ],
)
def test_an_event_of_any_kind_is_a_dict(event: object, fields: object) -> None:
    """What cannot be one is empty."""
    assert plain(event) == fields


def test_a_librarys_object_is_the_event_that_was_on_the_wire() -> None:
    """By the wire's names, with fields that the library does not know, and without what was not sent.

    What repeats all that came before is left out: it would cost the square.
    """
    sent = {"type": "x", "inner": {"name": None}, "new": [1]}
    model = Model.model_validate({**sent, "snapshot": "all so far"})
    assert plain(model) == sent


def test_bytes_that_are_no_text_are_no_error() -> None:
    """The plain values then hold the bytes as they are."""

    class Image(pydantic.BaseModel):
        data: bytes

    assert plain(Image(data=b"\xff")) == {"data": b"\xff"}


def test_the_accessors_return_an_empty_value_where_there_is_none() -> None:
    """Of the wrong type, beyond the end, below a scalar."""
    event = {"a": [{"b": "c", "n": 1, "t": True}]}
    assert (text(event, "a", 0, "b"), whole(event, "a", 0, "n")) == ("c", 1)
    assert (mapping(event, "a", -1), len(items(event, "a"))) == ({"b": "c", "n": 1, "t": True}, 1)
    for path in (("x",), ("a", 1), ("a", -2), ("a", "b"), ("a", 0, "b", "c"), ("a", 0, "n", 0)):
        assert at(event, *path) is None
        assert (text(event, *path), mapping(event, *path), items(event, *path)) == ("", {}, [])
    assert whole(event, "a", 0, "t") is None


def test_a_value_that_the_protocol_carries_is_returned_as_it_is() -> None:
    """The very same object."""
    value = {"a": [1, 2.5, None, "é", {"b": True}]}
    assert carried(value) is value


HALVES = st.sampled_from("\ud83d\ude00\ud800\udfff")
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters() | HALVES)
    | st.binary()
    | st.builds(Structure, st.integers())
    | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(HALVES) | st.integers() | st.none(), inner, max_size=3)
    ),
)


@given(ODD, st.integers(0, 4))
def test_any_value_becomes_one_that_the_protocol_carries(value: object, nesting: int) -> None:
    """Nothing that a provider sends keeps a part from being written."""
    assert problem_in(carried(value, nesting), nesting=nesting) is None


def test_what_nests_too_deep_says_so() -> None:
    """Everything above it is kept."""
    value: object = "deepest"
    for _ in range(NESTING + 5):
        value = [value]
    kept: object = carried(value)
    for _ in range(NESTING):
        assert isinstance(kept, list)
        (kept,) = kept
    assert kept == "(list left out: nested too deep)"


@given(st.text(st.characters() | HALVES))
def test_text_is_unicode_with_its_pairs_joined(words: str) -> None:
    """Halves that belong together are one code point, a lone one is U+FFFD; the rest is unchanged."""
    halves = words.encode("utf-16-le", "surrogatepass")
    split = "".join(chr(int.from_bytes(halves[i : i + 2], "little")) for i in range(0, len(halves), 2))
    expected = halves.decode("utf-16-le", "replace")
    assert unicode(words) == unicode(split) == expected
    expected.encode()


def test_a_value_in_words_is_text_as_it_is_and_json_otherwise() -> None:
    """For formats that take nothing but text."""
    assert (in_words("a"), in_words({"a": [1]})) == ("a", '{"a":[1]}')
