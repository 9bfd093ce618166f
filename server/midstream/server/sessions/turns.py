"""Input and turns: what each call does to the session (SPEC 8). Pure; every function fills a draft.

An accepted input ends in exactly one way that everybody can see: it starts a turn, it is absorbed
into one, or it is cancelled. So whatever ends a turn also starts the next one where input waits,
in the same draft.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.calls import InputState, PromptParams, PromptResult
from midstream.protocol.errors import IdempotencyConflict, Refused
from midstream.protocol.model import (
    CancelReason,
    ErrorPart,
    ErrorScope,
    ReasoningPart,
    TextPart,
    Turn,
    TurnFailure,
    TurnState,
)
from midstream.protocol.transitions import is_open
from midstream.server.sessions.endings import ended
from midstream.server.storage.records import InputRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.protocol.model import Part
    from midstream.server.sessions.draft import Draft


def accept(
    draft: Draft, params: PromptParams, parts: Sequence[Part], *, content_hash: str, subject: str, order: int
) -> InputRow:
    """Take a new input: it starts a turn, or it waits in the queue.

    Raises:
        Refused: the session is archived, ``reject`` was asked while a turn runs, or the queue is full.
        InvalidRequest, LimitExceeded: the parts cannot be a message.

    """
    draft.check_input(parts)
    refuse_archived(draft)
    item = InputRow(
        message_id=params.message_id,
        content_hash=content_hash,
        subject=subject,
        delivery=params.delivery,
        state="queued",
        turn_id=None,
        accepted=order,
        parts=list(parts),
    )
    if draft.turn is not None and params.delivery == "interrupt":
        end_turn(draft, "stopped", reason="turn_stopped", start_next=False)
    if draft.turn is None:
        return start_turn(draft, item)
    if params.delivery == "reject":
        raise Refused(
            "turn_running", "A turn is running. Wait for its end, stop it, or send with another delivery."
        )
    if len(draft.queue) >= draft.limits.queue:
        raise Refused(
            "queue_full", f"{len(draft.queue)} inputs wait already. Cancel one, or send this one later."
        )
    draft.set_input(item)
    return item


def refuse_archived(draft: Draft) -> None:
    """Refuse to write into a session that is archived. Raises Refused."""
    if draft.session.archived_at is not UNSET:
        raise Refused("archived", "This session is archived. Take it out of the archive, then send again.")


def start_turn(draft: Draft, item: InputRow) -> InputRow:
    """Write the user's message and begin a turn with it."""
    turn_id = draft.ids.new("turn")
    started = _consume(draft, item, "started", turn_id)
    draft.set_turn(
        Turn(
            turn_id=turn_id,
            revision=0,
            state="running",
            phase="starting",
            phase_since=draft.now,
            started_at=draft.now,
        )
    )
    return started


def start_waiting(draft: Draft) -> None:
    """Begin the next turn, where none runs and input waits."""
    if draft.turn is None and draft.queue:
        start_turn(draft, draft.queue[0])


def absorb(draft: Draft, turn: Turn) -> list[int]:
    """Write the waiting input into the running turn, and return the sequences of its messages.

    The agent's message is closed first, so that what it says next stands below the question. Input
    that was sent to be queued (``delivery: queue``) stays where it is.
    """
    waiting = [item for item in draft.queue if item.delivery != "queue"]
    if not waiting:
        return []
    close_streaming(draft)
    for item in waiting:
        _consume(draft, item, "absorbed", turn.turn_id)
    return list(range(draft.session.message_count - len(waiting) + 1, draft.session.message_count + 1))


def absorbable(queue: Sequence[InputRow]) -> int:
    """Return how many of the inputs that wait :func:`absorb` would write."""
    return sum(item.delivery != "queue" for item in queue)


def write_internal(draft: Draft, turn: Turn, parts: Sequence[Part]) -> int:
    """Write an internal user message of this turn, and return its sequence."""
    close_streaming(draft)
    return _write_user(draft, parts, turn_id=turn.turn_id, message_id=None, internal=True)


def cancel_input(draft: Draft, item: InputRow) -> InputRow:
    """Take a queued input back."""
    cancelled = structs.replace(item, state="cancelled", parts=[])
    draft.set_input(cancelled)
    return cancelled


def end_turn(
    draft: Draft,
    state: TurnState,
    *,
    reason: CancelReason,
    failure: TurnFailure | None = None,
    recoverable: bool = False,
    start_next: bool = True,
) -> None:
    """End the running turn, everything in it that is open, and start the next where input waits.

    ``reason`` is what cancelled interactions say. A failure becomes an ``error`` part, in the turn's
    streaming message, or in a message of its own, unless the last part says it already.
    """
    turn = draft.turn
    if turn is None:
        return
    why = f"turn_{state}" if reason == "turn_stopped" else reason
    with draft.without_limits():
        end_open_parts(draft, turn, reason=reason, why=why)
        if failure is not None and not _is_told(draft, failure):
            add_error(draft, turn.turn_id, failure, recoverable=recoverable)
        close_streaming(draft)
    draft.set_turn(structs.replace(turn, state=state, finished_at=draft.now, error=failure or UNSET))
    if start_next:
        start_waiting(draft)


def _is_told(draft: Draft, failure: TurnFailure) -> bool:
    """Say whether the agent reported this very failure last, before it failed with it."""
    sequence = draft.streaming()
    parts = draft.peek(sequence) if sequence else []
    last = parts[-1] if parts else None
    return isinstance(last, ErrorPart) and (last.code, last.message) == (failure.code, failure.message)


def end_open_parts(draft: Draft, turn: Turn | None, *, reason: CancelReason, why: str) -> None:
    """Give every open part a terminal state: of this turn, or, without one, of every message."""
    for sequence in draft.open_sequences():
        message = draft.message_if(sequence, turn.turn_id if turn else None)
        for part in message.all_parts() if message else ():
            if is_open(part):
                draft.put_part(sequence, ended(part, now=draft.now, reason=reason, why=why))


def add_error(
    draft: Draft, turn_id: str, failure: TurnFailure, *, recoverable: bool, scope: ErrorScope = "turn"
) -> int:
    """Put a failure into the turn's streaming message, or into one of its own; return the sequence."""
    part = ErrorPart(scope=scope, code=failure.code, message=failure.message, recoverable=recoverable)
    return add_to_turn(draft, turn_id, part)[0]


def add_to_turn(draft: Draft, turn_id: str, part: Part) -> tuple[int, int]:
    """Append a part to the turn's streaming message; where there is none, to a message of its own.

    Returns:
        The sequences of the message and of the part. A message of its own is ``done`` at once; its
        part may still end.

    """
    sequence = draft.streaming()
    if sequence is not None:
        return sequence, draft.add_part(sequence, part)
    sequence = draft.start_message("agent", turn_id=turn_id)
    number = draft.add_part(sequence, part)
    draft.close_message(sequence)
    return sequence, number


def close_streaming(draft: Draft) -> None:
    """End the agent message that streams; text in it that is open is done."""
    sequence = draft.streaming()
    if sequence is None:
        return
    for part in draft.message(sequence).all_parts():
        if isinstance(part, (TextPart, ReasoningPart)) and is_open(part):
            draft.put_part(sequence, structs.replace(part, state="done"))
    draft.close_message(sequence)


def prompt_result(item: InputRow, queue: Sequence[InputRow]) -> PromptResult:
    """Say where an input is now."""
    position = next(
        (index for index, other in enumerate(queue, 1) if other.message_id == item.message_id), None
    )
    return PromptResult(
        state=item.state,
        message_id=item.message_id,
        turn_id=item.turn_id or UNSET,
        position=UNSET if position is None else position,
    )


def check_repeated(item: InputRow | None, content_hash: str, message_id: str, *, taken: bool) -> None:
    """Refuse an id that stands for something else.

    Raises:
        IdempotencyConflict: the id was accepted with other content, or another message has it.

    """
    if (item is None and taken) or (item is not None and item.content_hash != content_hash):
        raise IdempotencyConflict("message_id", message_id)


def _consume(draft: Draft, item: InputRow, state: InputState, turn_id: str) -> InputRow:
    with draft.without_limits():  # they were held when it was accepted, by the configuration of then
        _write_user(draft, item.parts, turn_id=turn_id, message_id=item.message_id, internal=False)
    consumed = structs.replace(item, state=state, turn_id=turn_id, parts=[])
    draft.set_input(consumed)
    return consumed


def _write_user(
    draft: Draft, parts: Sequence[Part], *, turn_id: str, message_id: str | None, internal: bool
) -> int:
    sequence = draft.start_message(
        "user", visibility="internal" if internal else "visible", turn_id=turn_id, message_id=message_id
    )
    for part in parts:
        draft.add_part(sequence, part)
    return sequence
