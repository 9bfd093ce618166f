"""Laws of the state machines; the tables themselves are held by the vectors."""

from __future__ import annotations

import pytest
from msgspec import UNSET, structs

from midstream.protocol.errors import IllegalTransition, InvalidRequest
from midstream.protocol.model import (
    ActionPart,
    FilePart,
    InteractionPart,
    InteractionRequest,
    Part,
    ReasoningPart,
    StepStartPart,
    TextPart,
    ToolPart,
)
from midstream.protocol.transitions import TABLES, check_update, is_open, state_of, terminal

TOOL = ToolPart(part_id="p", sequence=1, tool_call_id="c", tool_name="t", state="ready")
TEXT = TextPart(part_id="p", sequence=1, text="a", state="streaming")
ASK = InteractionPart(
    part_id="p",
    sequence=1,
    interaction_id="i",
    interaction_type="approval",
    status="pending",
    request=InteractionRequest(title="Go?"),
)
ACTION = ActionPart(part_id="p", sequence=1, action_id="a", action_type="t", state="running", title="x")


def test_every_machine_ends_and_leaves_its_ends_to_nothing() -> None:
    """From every state a terminal one can be reached, and none leads out of it."""
    for table in TABLES.values():
        assert all(after <= set(table) for after in table.values())
        reached, before = set(terminal(table)), set[str]()
        while reached != before:
            before = set(reached)
            reached |= {state for state, after in table.items() if after & reached}
        assert reached == set(table)


@pytest.mark.parametrize(
    ("part", "opened"),
    [
        (TEXT, True),
        (structs.replace(TEXT, state="done"), False),
        (structs.replace(TEXT, state=UNSET), False),
        (ReasoningPart(text="", state="streaming"), True),
        (TOOL, True),
        (structs.replace(TOOL, state="waiting-user"), True),
        (structs.replace(TOOL, state="failed", error="x"), False),
        (ASK, True),
        (structs.replace(ASK, status="expired"), False),
        (ACTION, True),
        (structs.replace(ACTION, state="completed"), False),
        (StepStartPart(), False),
        (FilePart(url="u", media_type="m"), False),
    ],
)
def test_a_part_is_open_while_something_must_still_end_it(part: Part, opened: bool) -> None:  # noqa: FBT001 - a parameter
    """Parts without a state never are."""
    assert is_open(part) == opened


def test_the_state_of_a_part_is_named_with_its_machine_and_id() -> None:
    """As errors name it."""
    assert state_of(TOOL) == ("tool", "c", "ready")
    assert state_of(ASK) == ("interaction", "i", "pending")
    assert state_of(ACTION) == ("action", "a", "running")
    assert state_of(TEXT) == ("stream", "p", "streaming")
    assert state_of(StepStartPart()) is None


def test_lawful_updates_pass() -> None:
    """A legal move, the same open state with other fields, and no change at all."""
    check_update(TEXT, structs.replace(TEXT, text="ab"))
    check_update(TEXT, structs.replace(TEXT, state="done"))
    check_update(TOOL, structs.replace(TOOL, title="x"))
    check_update(TOOL, structs.replace(TOOL, state="running"))
    closed = structs.replace(TOOL, state="completed", output=1)
    check_update(closed, structs.replace(closed))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TOOL, structs.replace(TOOL, state="input-streaming")),
        (structs.replace(TOOL, state="completed"), structs.replace(TOOL, state="running")),
        (structs.replace(TOOL, state="completed"), structs.replace(TOOL, state="completed", output=2)),
        (structs.replace(TEXT, state="done"), structs.replace(TEXT, state="done", text="more")),
        (TEXT, structs.replace(TEXT, state=UNSET)),
        (structs.replace(ASK, status="resolved"), structs.replace(ASK, status="cancelled")),
    ],
)
def test_an_illegal_move_is_refused(before: Part, after: Part) -> None:
    """Nothing is repaired silently; what has ended stays as it is."""
    with pytest.raises(IllegalTransition):
        check_update(before, after)


@pytest.mark.parametrize(
    ("after", "field"),
    [
        (TEXT, "type"),
        (structs.replace(TOOL, sequence=2), "sequence"),
        (structs.replace(TOOL, part_id="q"), "part_id"),
        (structs.replace(TOOL, tool_call_id="d"), "tool_call_id"),
    ],
)
def test_a_part_that_becomes_another_is_refused(after: Part, field: str) -> None:
    """A changed type, sequence or id is an error, not a guess."""
    with pytest.raises(InvalidRequest) as raised:
        check_update(TOOL, after)
    assert raised.value.field == field
