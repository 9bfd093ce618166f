"""What a turn's agents produced, and what the file has of it: nothing twice, no holes, nothing of others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.record import TurnRecord
    from tests.simulation.stored import Wire


def hold(record: TurnRecord, parts: list[Wire], complain: Callable[[str], None]) -> None:
    """Hold the parts of a turn against what was produced; whatever does not agree is complained of."""
    for part in parts:
        text = part.get("input_text") if part["type"] == "tool" else part.get("text")
        if text is not None and "step_id" in part:
            _text(record, part, text, complain)
    for call_id, times in record.executed.items():
        if times > 1:
            complain(f"tool {call_id} of {record.turn_id} was executed {times} times")
    for what, names in (
        ("interaction", [part["request"]["title"] for part in parts if part["type"] == "interaction"]),
        ("error", [part["code"] for part in parts if part["type"] == "error"]),
        ("action", [part["action_type"] for part in parts if part["type"] == "action"]),
        ("part", [part["part_id"] for part in parts if "part_id" in part]),
    ):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            complain(f"{what} is there twice in {record.turn_id}: {twice}")


def _text(record: TurnRecord, part: Wire, text: str, complain: Callable[[str], None]) -> None:
    """A text is the beginning of what was appended; of one that was gone on with and committed, all of it."""
    part_id = part["part_id"]
    produced = record.produced.get(part_id, "")
    if not produced.startswith(text):
        complain(f"{part_id} of {record.turn_id} is {text!r}; appended was {produced!r}")
    whole = record.whole.get(part_id)
    if whole is not None and text != whole:
        complain(f"{part_id} of {record.turn_id} was committed as {whole!r}, and is {text!r}")
