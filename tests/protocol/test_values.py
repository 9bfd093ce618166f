"""Laws of the values that both encodings carry."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.codec import CODECS
from midstream.protocol.errors import InvalidRequest
from midstream.protocol.model import DataPart, ToolPart
from midstream.protocol.values import (
    BAD_KEY,
    MAX_INTEGER,
    MAX_VALUES,
    NOT_FINITE,
    TOO_BIG,
    TOO_DEEP,
    is_unicode,
    problem_in,
)
from tests.protocol.strategies import values

if TYPE_CHECKING:
    from midstream.protocol.codec import Codec
    from midstream.protocol.values import Value


def nested(levels: int) -> Value:
    """Lists in lists, so many levels deep."""
    value: Value = None
    for _ in range(levels):
        value = [value]
    return value


@given(value=values)
def test_every_value_is_good(value: Value) -> None:
    """What the strategies call a value has no problem, as a tuple neither."""
    assert problem_in(value, nesting=64) is None
    assert problem_in((value, [value]), nesting=64) is None


@given(good=values, path=st.lists(st.integers(0, 3) | st.sampled_from(["a", "b"]), max_size=5))
@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (MAX_INTEGER + 1, TOO_BIG),
        (-MAX_INTEGER - 1, TOO_BIG),
        (10**400, TOO_BIG),
        (math.nan, NOT_FINITE),
        (-math.inf, NOT_FINITE),
        ("a\udc80", "Unicode"),
        ({1: 2}, BAD_KEY),
        ({"\ud800": 2}, BAD_KEY),
        (b"", "bytes"),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "datetime"),
        ({1, 2}, "set"),
        (msgspec.msgpack.Ext(1, b""), "Ext"),
    ],
)
def test_what_is_bad_is_found_at_its_path(
    bad: object, problem: str, good: Value, path: list[int | str]
) -> None:
    """However deep it stands, and among good values."""
    value, where = bad, ""
    for key in reversed(path):
        value = [good] * key + [value] if isinstance(key, int) else {"good": good, key: value}
    for key in path:
        where += f"[{key}]" if isinstance(key, int) else f".{key}"
    found = problem_in(value, nesting=64)
    assert found is not None
    assert found[0] == where.removeprefix(".")
    assert problem in found[1]


def test_the_greatest_integers_pass() -> None:
    """2^53-1 is held exactly by a double, and so by every language."""
    assert problem_in([MAX_INTEGER, -MAX_INTEGER, True, None], nesting=1) is None


def test_levels_are_counted_from_the_value_itself() -> None:
    """A scalar has none."""
    assert problem_in(1, nesting=0) is None
    assert problem_in([], nesting=1) is None
    assert problem_in(nested(2), nesting=1) == ("[0]", TOO_DEEP)
    assert problem_in({"a": {"b": {}}}, nesting=2, path="x") == ("x.a.b", TOO_DEEP)


def test_a_million_levels_are_counted_without_recursion() -> None:
    """Hostile depth cannot exhaust the stack."""
    assert problem_in(nested(1_000_000), nesting=10) == ("[0]" * 10, TOO_DEEP)


def test_a_structs_fields_are_looked_into_and_absent_ones_are_not() -> None:
    """Agents in the process give Structs, with anything inside."""
    assert problem_in(ToolPart(tool_call_id="c", tool_name="t", state="ready"), nesting=2) is None
    part = DataPart(data_type="d", data={"when": cast("Value", dt.date(2020, 1, 1))})
    assert problem_in([part], nesting=3, path="parts") == (
        "parts[0].data.when",
        "is of type date, which the protocol does not carry",
    )


def test_a_long_path_is_cut_in_the_middle() -> None:
    """It may be made of a stranger's keys."""
    found = problem_in({"k" * 5_000: math.nan}, nesting=2)
    assert found is not None
    assert len(found[0]) <= 101


@given(text=st.text(st.characters(), max_size=5))
def test_is_unicode_means_that_utf8_can_carry_it(text: str) -> None:
    """Lone surrogates are the only text that it cannot."""
    assert is_unicode(text) == (not any(0xD800 <= ord(character) <= 0xDFFF for character in text))


@pytest.mark.parametrize("codec", CODECS.values(), ids=lambda codec: codec.name)
@pytest.mark.parametrize(
    "value", [[1] * MAX_VALUES, [[1] * 1_000] * 66, {str(n): n for n in range(MAX_VALUES)}]
)
def test_a_frame_of_too_many_values_is_refused_without_looking_at_all(codec: Codec, value: Value) -> None:
    """What a stranger can make us look at is bounded, whatever its shape."""
    params = codec.raw({"session_id": "s", "name": "n", "data": value})
    with pytest.raises(InvalidRequest, match="holds more than 65536 values"):
        codec.decode_params("signal", params)
