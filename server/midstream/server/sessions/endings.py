"""How each kind of part ends when its turn does, and not by itself (SPEC 8, 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.model import ActionPart, InteractionPart, ReasoningPart, TextPart, ToolPart

if TYPE_CHECKING:
    from midstream.protocol.model import CancelReason, Part


def ended(part: Part, *, now: int, reason: CancelReason, why: str) -> Part:
    """Return an open part in its terminal state.

    What was streamed stays. ``reason`` goes into a cancelled interaction, ``why`` into a failed
    tool's ``error``, as one of the words of SPEC 8.4.
    """
    if isinstance(part, (TextPart, ReasoningPart)):
        return structs.replace(part, state="done")
    if isinstance(part, ToolPart):
        return structs.replace(part, state="failed", error=why, preliminary=UNSET)
    if isinstance(part, InteractionPart):
        return structs.replace(part, status="cancelled", cancel_reason=reason, resolved_at=now)
    if isinstance(part, ActionPart):
        return structs.replace(part, state="failed")
    message = f"a {type(part).__name__} has no state to end"
    raise TypeError(message)
