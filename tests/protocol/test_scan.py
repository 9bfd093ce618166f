"""Laws of the scan: it reads what the decoders read, and stops at the first problem."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.scan import Broken, json_tokens, msgpack_tokens, scan
from midstream.protocol.values import TOO_DEEP
from tests.protocol.strategies import values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.protocol.scan import Token
    from midstream.protocol.values import Value


def tokens_of(value: Value) -> Iterator[Token]:
    """The tokens of a value, by recursion over the value itself."""
    if isinstance(value, list):
        yield "array", None
        for item in value:
            yield from tokens_of(item)
        yield "end", None
    elif isinstance(value, dict):
        yield "map", None
        for key, item in value.items():
            yield "scalar", key
            yield from tokens_of(item)
        yield "end", None
    else:
        yield "scalar", value


@given(value=values)
def test_the_tokens_are_those_of_the_value(value: Value) -> None:
    """In both encodings, however the text is spaced and escaped."""
    expected = list(tokens_of(value))
    assert list(msgpack_tokens(msgpack.packb(value))) == expected
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
        assert list(json_tokens(text)) == expected
        assert list(json_tokens(text.encode())) == expected


@given(value=values)
def test_a_good_value_has_no_problem(value: Value) -> None:
    """And is not broken."""
    for tokens in (msgpack_tokens(msgpack.packb(value)), json_tokens(json.dumps(value))):
        found = scan(tokens, nesting=64)
        assert (found.problem, found.broken) == (None, None)


@given(value=values, data=st.data())
def test_what_is_cut_or_followed_is_broken(value: Value, data: st.DataObject) -> None:
    """Every byte of a msgpack value counts, and not one more."""
    packed = msgpack.packb(value)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    for bad in (cut, packed + b"\xc0"):
        with pytest.raises(Broken):
            list(msgpack_tokens(bad))
    with pytest.raises(Broken):
        list(json_tokens(json.dumps(value) + " null"))
    if isinstance(value, (list, dict)):
        with pytest.raises(Broken):
            list(json_tokens(json.dumps(value)[:-1]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "]",
        "[}",
        "{]",
        '"',
        '"\\x"',
        '"\n"',
        "01",
        "1.",
        ".5",
        "+1",
        "tru",
        "'a'",
        "1 2",
        "[] []",
        b"\xff",
    ],
)
def test_what_is_no_json_is_broken(text: str | bytes) -> None:
    """Also what some parsers forgive."""
    with pytest.raises(Broken):
        list(json_tokens(text))


@given(data=st.binary(max_size=60))
def test_bytes_of_any_kind_end_in_tokens_or_in_broken(data: bytes) -> None:
    """No other error, and no endless reading."""
    for tokens in (msgpack_tokens(data), json_tokens(data)):
        try:
            for _ in tokens:
                pass
        except Broken:
            continue


def test_the_head_is_kept_as_far_as_it_was_read() -> None:
    """Tag, id and method; None for what is neither text nor integer."""
    assert scan(json_tokens('["call", 7, "prompt", {}]'), nesting=64).head == ["call", 7, "prompt"]
    assert scan(json_tokens('["call", [7], null, {}]'), nesting=64).head == ["call", None, None]
    assert scan(json_tokens('["call", 7'), nesting=64).head == ["call", 7]
    assert scan(json_tokens('{"call": 7}'), nesting=64).head == []


def test_a_hostile_string_is_read_in_one_pass() -> None:
    """A quote that never comes makes the token's pattern try once, not once for every character."""
    assert scan(json_tokens('"' + "a\\" * 500_000), nesting=64).broken is not None
    assert scan(json_tokens("[" + '"' + "a" * 1_000_000), nesting=64).broken is not None


def test_the_first_problem_ends_the_reading() -> None:
    """A gigabyte of levels costs as much as sixty-five."""

    def endless() -> Iterator[Token]:
        while True:
            yield "array", None

    assert scan(endless(), nesting=3).problem == ("[0][0][0]", TOO_DEEP)
