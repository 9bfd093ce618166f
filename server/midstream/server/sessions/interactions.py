"""Interactions: asked once, answered once (SPEC 8). Pure; every function fills a draft.

The loop decides in the order of its mailbox, so of two answers, or of an answer and an expiry, the
first one wins, and the tool that waited moves in the same commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.errors import InteractionClosed
from midstream.protocol.model import ActionPart, ApprovalResponse, InteractionPart, ToolPart
from midstream.protocol.transitions import check

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from midstream.protocol.model import (
        ApprovalMode,
        InteractionRequest,
        InteractionResponse,
        InteractionType,
        Message,
    )
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Projection

_MODE_TITLES: Mapping[ApprovalMode, str] = {
    "ask": "Approvals are asked for",
    "always-allow": "Approvals are given without asking",
}


def ask(
    draft: Draft,
    sequence: int,
    *,
    interaction_id: str,
    interaction_type: InteractionType,
    request: InteractionRequest,
    tool: tuple[int, ToolPart] | None,
) -> None:
    """Add a pending interaction, and let its tool wait for it.

    Where the session's mode gives approvals, an approval is resolved from the start, and nothing waits.
    """
    asked = InteractionPart(
        interaction_id=interaction_id,
        interaction_type=interaction_type,
        status="pending",
        request=request,
        tool_call_id=tool[1].tool_call_id if tool else UNSET,
    )
    given = interaction_type == "approval" and draft.session.approval_mode == "always-allow"
    if tool is not None:
        _let_wait(draft, *tool, given=given)
    draft.add_part(sequence, _given(draft, asked) if given else asked)
    draft.set_phase("waiting-model" if given else "waiting-user")


def set_approval_mode(
    draft: Draft, mode: ApprovalMode, waiting: Iterable[tuple[Message, InteractionPart]], *, subject: str
) -> None:
    """Take another approval mode, and say so in a message of its own; the mode that it is changes nothing.

    Of the interactions that wait, ``always-allow`` gives the approvals at once, in the same change:
    whoever chose it saw them. Questions stay.
    """
    if draft.session.approval_mode == mode:
        return
    by = UNSET if mode == "ask" else subject
    draft.session = structs.replace(draft.session, approval_mode=mode, approval_mode_by=by)
    sequence = draft.start_message("agent")
    action = ActionPart(
        action_id=draft.ids.new("action"),
        action_type="approval_mode",
        state="completed",
        title=_MODE_TITLES[mode],
        data={"approval_mode": mode, "set_by": subject, "set_at": draft.now},
    )
    draft.add_part(sequence, action)
    draft.close_message(sequence)
    for head, part in waiting:
        if mode == "always-allow" and part.interaction_type == "approval":
            _resolve(draft, head.sequence, _given(draft, part))


def respond(
    draft: Draft, sequence: int, part: InteractionPart, response: InteractionResponse, *, subject: str
) -> InteractionPart:
    """Take the first answer.

    Raises:
        InvalidRequest: the response does not fit the request.
        InteractionClosed: another outcome came first.

    """
    if part.status != "pending":
        raise closed(part)
    # the draft refuses a response that does not fit, as it refuses every part that is not well formed
    answered = structs.replace(
        part, status="resolved", response=response, resolved_at=draft.now, resolved_by=subject
    )
    _resolve(draft, sequence, answered)
    return answered


def is_repeat(part: InteractionPart, response: InteractionResponse, subject: str) -> bool:
    """Say whether this is the winner's own answer once more."""
    return part.status == "resolved" and part.response == response and part.resolved_by == subject


def expire(draft: Draft, sequence: int, part: InteractionPart) -> None:
    """End an interaction whose time has come."""
    _resolve(draft, sequence, structs.replace(part, status="expired", resolved_at=draft.now))


def withdraw(draft: Draft, interaction_id: str) -> None:
    """Cancel an interaction whose agent does not wait any more; one that is not pending stays as it is."""
    found = asked(draft, interaction_id)
    if found is not None and found[1].status == "pending":
        sequence, part = found
        now = draft.now
        cancelled = structs.replace(part, status="cancelled", cancel_reason="withdrawn", resolved_at=now)
        _resolve(draft, sequence, cancelled)


def asked(draft: Draft, interaction_id: str) -> tuple[int, InteractionPart] | None:
    """Return an interaction of a message that is open, and the message's sequence."""
    for sequence in draft.open_sequences():
        for part in draft.peek(sequence):
            if isinstance(part, InteractionPart) and part.interaction_id == interaction_id:
                return sequence, part
    return None


def pending(projection: Projection) -> list[tuple[Message, InteractionPart]]:
    """Return what waits for an answer, in order of appearance, each with the head of its message."""
    if projection.session.pending_interactions == 0:
        return []  # the usual case, which must not cost a look at every part
    return [
        (message.head, part)
        for message, part in projection.open_parts()
        if isinstance(part, InteractionPart) and part.status == "pending"
    ]


def closed(part: InteractionPart) -> InteractionClosed:
    """Return the error that tells the outcome."""
    return InteractionClosed(
        part.interaction_id,
        part.status,
        None if part.response is UNSET else msgspec.to_builtins(part.response),
        None if part.resolved_by is UNSET else part.resolved_by,
    )


def _let_wait(draft: Draft, sequence: int, tool: ToolPart, *, given: bool) -> None:
    """Move a tool to where it waits for an answer; where that is given already, to where it is then."""
    check("tool", tool.tool_call_id, tool.state, "waiting-user")
    if given and tool.state == "ready":
        return
    draft.put_part(sequence, structs.replace(tool, state="waiting-user", preliminary=UNSET))
    if given:
        draft.put_part(sequence, structs.replace(tool, state="ready", preliminary=UNSET))


def _given(draft: Draft, part: InteractionPart) -> InteractionPart:
    """Return an approval as the session's mode gives it."""
    return structs.replace(
        part,
        status="resolved",
        response=ApprovalResponse(decision="approved"),
        resolved_at=draft.now,
        resolved_by=draft.session.approval_mode_by,
        approval_mode="always-allow",
    )


def _resolve(draft: Draft, sequence: int, part: InteractionPart) -> None:
    """End an interaction. Like every end, no limit hinders it: what it adds, a frame's limit bounds."""
    with draft.without_limits():
        draft.put_part(sequence, part)
    draft.set_phase("waiting-model")
    tool = None if part.tool_call_id is UNSET else _waiting_tool(draft, part)
    if tool is not None:
        with draft.without_limits():
            draft.put_part(tool[0], structs.replace(tool[1], state="ready"))


def _waiting_tool(draft: Draft, part: InteractionPart) -> tuple[int, ToolPart] | None:
    """Return the tool that waits for an interaction, and the sequence of its message.

    Providers number their calls anew, so several of one id may wait: the first for what was asked first.
    """
    waiting: list[tuple[int, ToolPart]] = []
    before = found = 0
    for where in draft.open_sequences():
        for one in draft.peek(where):
            if isinstance(one, ToolPart):
                if one.tool_call_id == part.tool_call_id and one.state == "waiting-user":
                    waiting.append((where, one))
            elif isinstance(one, InteractionPart) and one.tool_call_id == part.tool_call_id:
                if one.interaction_id == part.interaction_id:
                    before = found
                found += one.status == "pending"
    return waiting[min(before, len(waiting) - 1)] if waiting else None
