"""What each write of an agent does to the session (SPEC 8). Pure; every function fills a draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, UnsetType, structs

from midstream.protocol.agents import (
    NOTHING,
    AbandonStep,
    AbsorbInputs,
    AddInternal,
    AddPart,
    Ask,
    BeginStep,
    ChangeAction,
    Compact,
    EndStep,
    EndText,
    EndTurn,
    MoveTool,
    ReportError,
    SetPhase,
    Withdraw,
    WriteResult,
    check_write,
)
from midstream.protocol.errors import IllegalTransition, InvalidRequest, LimitExceeded
from midstream.protocol.live import can_append
from midstream.protocol.model import (
    ActionPart,
    ErrorPart,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolState,
    TurnPhase,
)
from midstream.protocol.transitions import check, is_open
from midstream.server.sessions import interactions, summaries, turns
from midstream.server.sessions.endings import ended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from midstream.protocol.agents import Write
    from midstream.protocol.model import Turn
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Place, Projection

P = TypeVar("P", ToolPart, ActionPart)
_PHASES: Mapping[ToolState, TurnPhase] = {
    "ready": "waiting-model",
    "running": "running-tool",
    "completed": "waiting-model",
    "failed": "waiting-model",
}
"""What the turn does after a tool's move. A tool waits for a person by an interaction only."""

_CLAIMED = "It was claimed already, and a tool runs at most once: whoever claimed it runs it, nobody else."


class Places:
    """Where the parts of one turn are, by the ids that its agent gave them."""

    def __init__(self, projection: Projection, turn_id: str) -> None:
        """Start with the parts of the turn's messages that are open."""
        self._places: dict[str, Place] = {}
        for message in projection.open.values():
            if message.head.turn_id == turn_id:
                self._places.update(message.places())

    def of(self, part_id: str) -> Place:
        """Return the place of a part. Raises IllegalTransition where there is none."""
        place = self._places.get(part_id)
        if place is None:
            raise _gone(part_id)
        return place

    def has(self, part_id: str) -> bool:
        """Say whether there is, or was, a part with this id."""
        return part_id in self._places

    def put(self, place: Place) -> None:
        """Note a part that is there now."""
        self._places[place.part_id] = place


def apply(draft: Draft, turn: Turn, write: Write, places: Places) -> tuple[WriteResult, list[int]]:  # noqa: C901, PLR0912  # a table of the writes
    """Make one write; return what it gives back, and the sequences of messages that it wrote for that.

    Raises:
        MidstreamError: the write is refused; the draft is to be dropped.

    """
    check_write(write)
    match write:
        case BeginStep():
            draft.set_phase("waiting-model")
        case AddPart():
            _add_part(draft, turn, write, places)
        case EndText():
            _end_text(draft, write, places)
        case MoveTool():
            _move_tool(draft, write, places)
        case ChangeAction():
            _change_action(draft, write, places)
        case EndStep():
            _end_step(draft, write.step_id)
        case AbandonStep():
            return WriteResult(undone=_abandon_step(draft, write.step_id)), []
        case Ask():
            _ask(draft, turn, write, places)
        case Withdraw():
            interactions.withdraw(draft, write.interaction_id)
        case ReportError():
            _report_error(draft, turn, write)
        case SetPhase():
            draft.set_phase(write.phase)
        case AbsorbInputs():
            return NOTHING, turns.absorb(draft, turn)
        case AddInternal():
            return NOTHING, [turns.write_internal(draft, turn, write.parts)]
        case Compact():
            made = summaries.compact(draft, write.through_sequence, write.summary, subject=None)
            return WriteResult(summary=made), []
        case EndTurn():
            _check_failure(draft, write)
            turns.end_turn(
                draft,
                write.state,
                reason="turn_stopped",
                failure=None if write.failure is UNSET else write.failure,
                recoverable=write.recoverable,
            )
    return NOTHING, []


def _check_failure(draft: Draft, write: EndTurn) -> None:
    """Refuse a failure that is longer than a part may be. An end has no limit, but what it says has one."""
    if write.failure is UNSET:
        return
    length = len(str(write.failure.message).encode(errors="replace"))
    if length > draft.limits.part_bytes:
        raise LimitExceeded("part_bytes", draft.limits.part_bytes, length)


def _add_part(draft: Draft, turn: Turn, write: AddPart, places: Places) -> None:
    part = write.part
    if places.has(part.part_id):
        raise InvalidRequest("part.part_id", f"{part.part_id!r} is the id of another part of this turn")
    if isinstance(part, ActionPart):
        sequence, number = turns.add_to_turn(draft, turn.turn_id, part)
    else:
        sequence = draft.streaming() or draft.start_message("agent", turn_id=turn.turn_id)
        if can_append(part):
            draft.set_phase("streaming")
        number = draft.add_part(sequence, part)
    draft.added = draft.place_of(sequence, number)


def _report_error(draft: Draft, turn: Turn, write: ReportError) -> None:
    part = ErrorPart(
        scope=write.scope,
        code=write.code,
        message=write.message,
        recoverable=write.recoverable,
        step_id=write.step_id,
    )
    if write.step_id is UNSET:
        turns.add_to_turn(draft, turn.turn_id, part)
    else:  # where the step's parts are, or will be
        draft.add_part(draft.streaming() or draft.start_message("agent", turn_id=turn.turn_id), part)


def _end_text(draft: Draft, write: EndText, places: Places) -> None:
    if not places.has(write.part_id):
        return  # it was dropped with its step, which a server that started since does not know
    place = places.of(write.part_id)
    part = draft.part_if(place)
    if part is not None and not isinstance(part, (TextPart, ReasoningPart)):
        raise InvalidRequest("part_id", f"{write.part_id!r} is no text or reasoning part")
    if part is not None and is_open(part):
        metadata = part.provider_metadata if write.provider_metadata is UNSET else write.provider_metadata
        draft.put_part(place.message, structs.replace(part, state="done", provider_metadata=metadata))


def _move_tool(draft: Draft, write: MoveTool, places: Places) -> None:
    place = places.of(write.part_id)
    part = _part(draft, place, ToolPart)
    check("tool", part.tool_call_id, part.state, write.state)
    if part.state == write.state == "running" and write.preliminary is not True:
        raise IllegalTransition("tool", part.tool_call_id, "running", "running", why=_CLAIMED)
    if write.state not in _PHASES:
        raise InvalidRequest("state", f"a tool gets to {write.state!r} by a question to a person; ask one")
    metadata = ("call_provider_metadata", "result_provider_metadata")
    given = _given(write, "input", "raw_input", "output", "error", *metadata)
    draft.put_part(
        place.message, structs.replace(part, state=write.state, preliminary=write.preliminary, **given)
    )
    draft.set_phase(_PHASES[write.state])


def _change_action(draft: Draft, write: ChangeAction, places: Places) -> None:
    place = places.of(write.part_id)
    part = _part(draft, place, ActionPart)
    given = _given(write, "state", "title", "description", "data")
    draft.put_part(place.message, structs.replace(part, **given))


def _ask(draft: Draft, turn: Turn, write: Ask, places: Places) -> None:
    if interactions.asked(draft, write.interaction_id) is not None:
        raise InvalidRequest("interaction_id", f"{write.interaction_id!r} was asked already")
    request = write.request
    if write.expires_in_ms is not UNSET:
        request = structs.replace(request, expires_at=draft.now + write.expires_in_ms)
    tool: tuple[int, ToolPart] | None = None
    if write.tool_part_id is not UNSET:
        place = places.of(write.tool_part_id)
        tool = place.message, _part(draft, place, ToolPart)
    interactions.ask(
        draft,
        draft.streaming() or draft.start_message("agent", turn_id=turn.turn_id),
        interaction_id=write.interaction_id,
        interaction_type=write.interaction_type,
        request=request,
        tool=tool,
    )


def _end_step(draft: Draft, step_id: str) -> None:
    sequence = draft.streaming()
    if sequence is None:
        return
    if draft.has_unstored(sequence):
        # taken up even where nothing is left to end, so that what was streamed is stored
        draft.message(sequence)
    for part in draft.peek(sequence):
        if isinstance(part, (TextPart, ReasoningPart)) and part.step_id == step_id and is_open(part):
            draft.put_part(sequence, structs.replace(part, state="done"))


def _abandon_step(draft: Draft, step_id: str) -> bool:
    sequence = draft.streaming()
    parts = draft.peek(sequence) if sequence else []
    mine = [part for part in parts if part.step_id == step_id]
    if sequence is None or not mine:
        return True
    first = mine[0].sequence
    begun = any(isinstance(part, ToolPart) and part.state != "input-streaming" for part in mine)
    if not begun and len(mine) == len(parts) - first + 1:
        draft.truncate(sequence, first - 1)
        return True
    for part in mine:
        if is_open(part):
            end = ended(part, now=draft.now, reason="runtime_interrupted", why="step_abandoned")
            draft.put_part(sequence, end)
    return False


def _part(draft: Draft, place: Place, kind: type[P]) -> P:
    part = draft.part_at(place)
    if not isinstance(part, kind):
        expected = kind.__struct_config__.tag
        raise InvalidRequest("part_id", f"{place.part_id!r} is no {expected} part")
    return part


def _given(write: Write, *fields: str) -> dict[str, object]:
    """Return the fields that a write gives."""
    values = {name: getattr(write, name) for name in fields}
    return {name: value for name, value in values.items() if not isinstance(value, UnsetType)}


def _gone(part_id: str) -> IllegalTransition:
    return IllegalTransition("part", part_id, "gone", "open")
