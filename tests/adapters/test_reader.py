"""What all readers share: names for what grows, arguments, usage, metadata."""

from __future__ import annotations

import json

import pytest
from msgspec import UNSET

from midstream.adapters.openai_chat import OpenAIChatReader
from midstream.adapters.reader import Blocks, arguments, usage


def test_a_name_is_never_given_twice() -> None:
    """Also where the provider uses the same id again, before or after the first was closed."""
    blocks = Blocks()
    first = blocks.open("0")
    second = blocks.open("0")
    assert blocks.name("0") == second
    assert blocks.close("0") == second
    third = blocks.open("0")
    blocks.forget()
    fourth = blocks.open("0")
    assert len({first, second, third, fourth}) == 4


def test_what_is_not_open_has_no_name() -> None:
    """And the open ones are listed, the oldest first."""
    blocks = Blocks()
    blocks.open("a")
    blocks.open("b")
    assert blocks.keys() == ["a", "b"]
    blocks.close("a")
    assert (blocks.name("a"), blocks.close("a"), blocks.keys()) == (None, None, ["b"])
    blocks.forget()
    assert blocks.keys() == []


@pytest.mark.parametrize("words", ["", " \n"])
def test_no_arguments_are_an_empty_object(words: str) -> None:
    """A tool that takes nothing."""
    assert arguments(words) == {}


@pytest.mark.parametrize(
    "words",
    [
        "{",
        '{"a":1}}',
        "nul",
        '{"a":"\ud800"}',
        "[" * 100_000,
        "[" * 60 + "]" * 60,
        "[9007199254740993]",
        "[NaN]",
    ],
)
def test_arguments_that_the_protocol_cannot_carry_are_none(words: str) -> None:
    """Broken, too deep, or numbers that not every reader can hold."""
    assert arguments(words) is UNSET


def test_arguments_are_what_their_json_says() -> None:
    """Any value, not only objects."""
    for value in ({"a": [1, 2.5, None, "é"]}, [1], "a", 1, None):
        assert arguments(json.dumps(value)) == value


def test_usage_leaves_out_what_is_not_known_and_adds_up_what_is() -> None:
    """A total that is given is kept."""
    assert usage() == {}
    assert usage(input_tokens=1) == {"input_tokens": 1}
    assert usage(input_tokens=1, output_tokens=2)["total_tokens"] == 3
    assert usage(input_tokens=1, output_tokens=2, total_tokens=9)["total_tokens"] == 9
    assert usage(raw={"odd": float("inf")}) == {"raw": {"odd": "inf"}}


def test_metadata_stands_under_the_providers_name() -> None:
    """There is none where no field has a value."""
    reader = OpenAIChatReader()
    assert reader.metadata(a=None) is None
    assert reader.metadata(a=1, b=None) == {"openai-chat": {"a": 1}}
