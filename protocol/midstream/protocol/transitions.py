"""The state machines as tables: what is not in them is refused, never repaired (SPEC 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import UNSET

from midstream.protocol.errors import IllegalTransition, InvalidRequest
from midstream.protocol.model import ActionPart, InteractionPart, ReasoningPart, TextPart, ToolPart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from midstream.protocol.model import Part

Table: TypeAlias = "Mapping[str, frozenset[str]]"
"""Maps each state to the states that may follow it; a terminal state to none."""

TOOL: Table = {
    "input-streaming": frozenset({"ready", "failed"}),
    "ready": frozenset({"waiting-user", "running", "completed", "failed"}),
    "waiting-user": frozenset({"ready", "running", "completed", "failed"}),
    # to itself: preliminary output
    "running": frozenset({"running", "waiting-user", "completed", "failed"}),
    "completed": frozenset(),
    "failed": frozenset(),
}
INTERACTION: Table = {
    "pending": frozenset({"resolved", "expired", "cancelled"}),
    "resolved": frozenset(),
    "expired": frozenset(),
    "cancelled": frozenset(),
}
ACTION: Table = {
    "running": frozenset({"completed", "failed"}),
    "completed": frozenset(),
    "failed": frozenset(),
}
STREAM: Table = {"streaming": frozenset({"done"}), "done": frozenset()}
"""Of text and reasoning parts, and of agent messages."""
TURN: Table = {
    "running": frozenset({"completed", "failed", "stopped"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "stopped": frozenset(),
}

Kind: TypeAlias = Literal["tool", "interaction", "action", "stream", "turn"]
TABLES: Mapping[Kind, Table] = {
    "tool": TOOL,
    "interaction": INTERACTION,
    "action": ACTION,
    "stream": STREAM,
    "turn": TURN,
}
"""All the machines, by the name that errors use."""


def terminal(table: Table) -> frozenset[str]:
    """Return the states of a table that nothing follows."""
    return frozenset(state for state, after in table.items() if not after)


TERMINAL_INTERACTION = terminal(INTERACTION)


def check(kind: Kind, identifier: str, before: str, after: str) -> None:
    """Refuse a move that the machine's table does not have.

    Raises:
        IllegalTransition: names the machine, the entity and both states.

    """
    if after not in TABLES[kind].get(before, frozenset()):
        raise IllegalTransition(kind, identifier, before, after)


def state_of(part: Part) -> tuple[Kind, str, str] | None:
    """Return the machine, the id to name in errors and the state of a part; None where it has no state."""
    if isinstance(part, (TextPart, ReasoningPart)):
        return None if part.state is UNSET else ("stream", part.part_id, part.state)
    if isinstance(part, ToolPart):
        return "tool", part.tool_call_id, part.state
    if isinstance(part, InteractionPart):
        return "interaction", part.interaction_id, part.status
    if isinstance(part, ActionPart):
        return "action", part.action_id, part.state
    return None


def is_open(part: Part) -> bool:
    """Say whether the part has a state that something must still end."""
    state = state_of(part)
    return state is not None and bool(TABLES[state[0]][state[2]])


def check_update(before: Part, after: Part) -> None:
    """Refuse a part that is not a lawful successor of ``before``.

    A part keeps its type, sequence and ids for life, and its state moves by its table. The same
    state again is no move, so the other fields may change with it while the part is open.

    Raises:
        InvalidRequest: names the field that may not change.
        IllegalTransition: the state may not follow.

    """
    if type(before) is not type(after):
        raise InvalidRequest(
            "type", f"a part keeps its type, which is {_type(before)!r}, not {_type(after)!r}"
        )
    for field in ("sequence", "part_id", "tool_call_id", "interaction_id", "action_id"):
        was, now = getattr(before, field, None), getattr(after, field, None)
        if was != now:
            raise InvalidRequest(field, f"a part keeps its {field}, which is {was!r}, not {now!r}")
    old, new = state_of(before), state_of(after)
    if old and (new is None or old[2] != new[2] or not TABLES[old[0]][old[2]]) and before != after:
        check(old[0], old[1], old[2], new[2] if new else "none")


def _type(part: Part) -> str:
    return str(part.__struct_config__.tag)
