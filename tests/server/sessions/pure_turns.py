"""Turns of a session without store and loop: what users and agents do, each as one committed change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.calls import Delivery, PromptParams
from midstream.protocol.model import (
    ActionPart,
    FilePart,
    InteractionPart,
    InteractionRequest,
    ReasoningPart,
    TextPart,
    ToolPart,
    TurnFailure,
    TurnState,
)
from midstream.server.sessions import turns
from tests.server.sessions.pure_session import PureSession, streaming_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.protocol.model import Part, Turn, UserPart
    from midstream.server.storage.records import InputRow

DELIVERIES: tuple[Delivery, ...] = ("auto", "queue", "reject", "interrupt")
OPEN_PARTS: list[Part] = [
    streaming_text("half"),
    ReasoningPart(text="hm", state="streaming"),
    ToolPart(tool_call_id="a", tool_name="t", state="input-streaming", input_text='{"x'),
    ToolPart(tool_call_id="b", tool_name="t", state="ready", input=1),
    ToolPart(tool_call_id="c", tool_name="t", state="running", input=1, output=2, preliminary=True),
    ToolPart(tool_call_id="d", tool_name="t", state="waiting-user", input=1),
    ToolPart(tool_call_id="e", tool_name="t", state="completed", input=1, output=2),
    InteractionPart(
        interaction_id="i",
        interaction_type="approval",
        status="pending",
        request=InteractionRequest(title="?"),
        tool_call_id="d",
    ),
    ActionPart(action_id="x", action_type="t", state="running", title="doing"),
    FilePart(url="u", media_type="m"),
]
"""Every kind of part that may be open, and two that are not."""


def prompt(
    session: PureSession,
    message_id: str,
    delivery: Delivery = "auto",
    *,
    subject: str = "ann",
    parts: Sequence[UserPart] | None = None,
) -> InputRow:
    """Hand in an input and commit what comes of it."""
    content: list[UserPart] = list(parts or [TextPart(text=f"text of {message_id}")])
    draft = session.draft()
    item = turns.accept(
        draft,
        PromptParams(session_id="s", message_id=message_id, parts=content, delivery=delivery),
        content,
        content_hash="hash",
        subject=subject,
        order=session.versions.published + 1,
    )
    session.commit(draft)
    return item


def running(session: PureSession) -> Turn:
    """The turn that runs."""
    assert session.projection.turn is not None
    return session.projection.turn


def answer(session: PureSession, *parts: Part) -> int:
    """Let the agent write parts, and commit them."""
    draft = session.draft()
    sequence = draft.streaming() or draft.start_message("agent", turn_id=running(session).turn_id)
    for part in parts:
        draft.add_part(sequence, part)
    session.commit(draft)
    return sequence


def end(session: PureSession, state: TurnState = "completed", failure: TurnFailure | None = None) -> None:
    """End the turn as its agent does."""
    draft = session.draft()
    turns.end_turn(draft, state, reason="turn_stopped", failure=failure)
    session.commit(draft)
