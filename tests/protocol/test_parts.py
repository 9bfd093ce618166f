"""Laws of input; those of single parts and responses are held by the vectors."""

from __future__ import annotations

import math

import pytest

from midstream.protocol.errors import InvalidRequest
from midstream.protocol.model import ContextPart, DataPart, FilePart, Part, ReasoningPart, TextPart
from midstream.protocol.parts import PART_NESTING, check_input, check_part
from midstream.protocol.values import Value

FILE = FilePart(url="data:,x", media_type="text/plain")


@pytest.mark.parametrize(
    "parts",
    [
        [TextPart(text="Hi")],
        [TextPart(text=""), FILE],
        [ContextPart(tag="file", context="x")],
        [DataPart(data_type="d", data=None)],
        [TextPart(text="a", part_id="p1", sequence=1), TextPart(text="b", part_id="p2", sequence=2)],
    ],
)
def test_input_with_content_passes(parts: list[Part]) -> None:
    """Text that is not blank, or anything else."""
    check_input(parts)


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ([], "parts"),
        ([TextPart(text="")], "parts"),
        ([TextPart(text=" \n"), TextPart(text="\u00a0")], "parts"),
        ([FILE, ReasoningPart(text="x", state="done")], "parts[1].type"),
        ([FILE, ContextPart(tag="Big", context="x")], "parts[1].tag"),
        ([TextPart(text="a", part_id="p"), TextPart(text="b", part_id="p")], "parts[1].part_id"),
        ([TextPart(text="a", sequence=2)], "parts[0].sequence"),
    ],
)
def test_input_without_content_or_with_a_wrong_part_is_refused(parts: list[Part], field: str) -> None:
    """The field is named in the caller's terms."""
    with pytest.raises(InvalidRequest) as raised:
        check_input(parts)
    assert raised.value.field == field


def test_values_from_code_in_the_process_are_checked_too() -> None:
    """No decoder has seen them."""
    for data, field in (({"a": math.nan}, "data.a"), ("\ud800", "data"), ((1, {2}), "data[1]")):
        with pytest.raises(InvalidRequest) as raised:
            check_part("agent", DataPart(data_type="d", data=data))  # type: ignore[arg-type]  # it is the point
        assert raised.value.field == field


def test_what_fits_in_a_prompt_fits_from_an_agent() -> None:
    """Above a part in a prompt are the frame, the params and the list of parts: 64 levels in all."""
    value: Value = 0
    for _ in range(PART_NESTING - 1):
        value = [value]
    check_part("agent", DataPart(data_type="d", data=value))
    with pytest.raises(InvalidRequest, match="nesting"):
        check_part("agent", DataPart(data_type="d", data=[value]))
    assert PART_NESTING + 3 == 64
