"""Interactions: asked once, answered once (SPEC 8). Pure; every function fills a draft.

The loop decides in the order of its mailbox, so of two answers, or of an answer and an expiry, the
first one wins, and the tool that waited moves in the same commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.errors import InteractionClosed
from midstream.protocol.model import InteractionPart, ToolPart

if TYPE_CHECKING:
    from midstream.protocol.model import InteractionRequest, InteractionResponse, InteractionType, Message
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Projection


def ask(
    draft: Draft,
    sequence: int,
    *,
    interaction_type: InteractionType,
    request: InteractionRequest,
    tool: tuple[int, ToolPart] | None,
) -> str:
    """Add a pending interaction, and let its tool wait for it; return the interaction's id."""
    interaction_id = draft.ids.new("ask")
    if tool is not None:
        where, part = tool
        draft.put_part(where, structs.replace(part, state="waiting-user", preliminary=UNSET))
    draft.add_part(
        sequence,
        InteractionPart(
            interaction_id=interaction_id,
            interaction_type=interaction_type,
            status="pending",
            request=request,
            tool_call_id=tool[1].tool_call_id if tool else UNSET,
        ),
    )
    draft.set_phase("waiting-user")
    return interaction_id


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


def pending(projection: Projection) -> list[tuple[Message, InteractionPart]]:
    """Return what waits for an answer, in order of appearance, each with the head of its message."""
    if projection.session.pending_interactions == 0:
        return []  # the usual case, which must not cost a look at every part
    return [
        (message.head, part)
        for message, part in projection.open_parts()
        if isinstance(part, InteractionPart) and part.status == "pending"
    ]


def next_expiry(projection: Projection) -> int | None:
    """Return when the next pending interaction expires, in ms since the epoch."""
    times = (part.request.expires_at for _, part in pending(projection))
    return min((time for time in times if time is not UNSET), default=None)


def expired(projection: Projection, now: int) -> list[tuple[int, InteractionPart]]:
    """Return the pending interactions whose time has come, and the sequences of their messages."""
    return [
        (head.sequence, part)
        for head, part in pending(projection)
        if part.request.expires_at is not UNSET and part.request.expires_at <= now
    ]


def closed(part: InteractionPart) -> InteractionClosed:
    """Return the error that tells the outcome."""
    return InteractionClosed(
        part.interaction_id,
        part.status,
        None if part.response is UNSET else msgspec.to_builtins(part.response),
        None if part.resolved_by is UNSET else part.resolved_by,
    )


def _resolve(draft: Draft, sequence: int, part: InteractionPart) -> None:
    """End an interaction. Like every end, no limit hinders it: what it adds, a frame's limit bounds."""
    with draft.without_limits():
        draft.put_part(sequence, part)
    draft.set_phase("waiting-model")
    if part.tool_call_id is UNSET:
        return
    for where in draft.open_sequences():
        for tool in draft.peek(where):
            if (
                isinstance(tool, ToolPart)
                and tool.tool_call_id == part.tool_call_id
                and tool.state == "waiting-user"
            ):
                with draft.without_limits():
                    draft.put_part(where, structs.replace(tool, state="ready"))
                return
