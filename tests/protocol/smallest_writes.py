"""Each write of a remote agent with no more than it must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec

from midstream.protocol.agents import Write

if TYPE_CHECKING:
    from midstream.protocol.values import Value

OPS: dict[str, type[msgspec.Struct]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Write)}
"""The kinds of writes, by the name that they have on the wire."""
_FIELDS: dict[str, dict[str, Value]] = {
    "begin_step": {},
    "end_step": {"step_id": "s"},
    "abandon_step": {"step_id": "s"},
    "add_part": {"part": {"type": "step-start", "part_id": "p"}},
    "end_text": {"part_id": "p"},
    "move_tool": {"part_id": "p", "state": "running"},
    "change_action": {"part_id": "p"},
    "ask": {"interaction_id": "i", "interaction_type": "approval", "request": {"title": "t"}},
    "withdraw": {"interaction_id": "i"},
    "report_error": {"code": "c", "message": "m"},
    "set_phase": {"phase": "streaming"},
    "absorb_inputs": {},
    "add_internal": {"parts": [{"type": "text", "text": "t"}]},
    "compact": {"through_sequence": 1, "summary": "s"},
    "end_turn": {"state": "completed"},
}


def smallest(op: str) -> dict[str, Value]:
    """Return the smallest write with this name, as it is on the wire."""
    return {"op": op, **_FIELDS[op]}


def made(op: str) -> Write:
    """Return the smallest write with this name."""
    write: Write = msgspec.convert(smallest(op), Write)
    return write
