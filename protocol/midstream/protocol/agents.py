"""What an agent writes to its turn, as data: the same for an agent in the server and a remote one (SPEC 14).

A write is decided by the session's loop, in order. It names a part by the ``part_id`` that the
agent gave it, so nothing has to be answered before the next write goes out. The one thing that is no
write is text that is appended: that is the hot path, and goes by itself.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from midstream.protocol.errors import InvalidRequest
from midstream.protocol.model import (
    ActionPart,
    ActionState,
    DataPart,
    ErrorScope,
    FilePart,
    InteractionRequest,
    InteractionType,
    Message,
    ProviderMetadata,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    Summary,
    TextPart,
    ToolPart,
    ToolState,
    TurnFailure,
    TurnPhase,
    UserPart,
)
from midstream.protocol.values import MAX_INTEGER, Value

AgentId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
"""An id that an agent chooses, for a part, a step or an interaction."""
AddedPart: TypeAlias = (
    TextPart | ReasoningPart | ToolPart | FilePart | DataPart | SourcePart | ActionPart | StepStartPart
)
"""The parts that an agent adds as parts. Interactions are asked, and errors are reported."""


class _Write(msgspec.Struct, tag_field="op", frozen=True, omit_defaults=True, kw_only=True):
    pass


class BeginStep(_Write, tag="begin_step", frozen=True, kw_only=True):
    """The model is asked: the turn's phase is ``waiting-model``."""


class EndStep(_Write, tag="end_step", frozen=True, omit_defaults=True, kw_only=True):
    """A step is complete: its open texts end, and all of it is committed."""

    step_id: AgentId


class AbandonStep(_Write, tag="abandon_step", frozen=True, omit_defaults=True, kw_only=True):
    """A step is to be undone; the result says whether its parts are gone (``undone``)."""

    step_id: AgentId


class AddPart(_Write, tag="add_part", frozen=True, omit_defaults=True, kw_only=True):
    """A part appears, with an id that no other part of the turn has.

    It joins the turn's streaming message, or opens one. A tool that is ``ready`` and an action are
    committed; any other part is stored with the next commit.
    """

    part: AddedPart


class EndText(_Write, tag="end_text", frozen=True, omit_defaults=True, kw_only=True):
    """A text or reasoning is complete; harmless where it has ended or is gone."""

    part_id: AgentId
    provider_metadata: ProviderMetadata | UnsetType = UNSET


class MoveTool(_Write, tag="move_tool", frozen=True, omit_defaults=True, kw_only=True):
    """A tool call goes to its next state, by the table of SPEC 2.6; committed before it is seen."""

    part_id: AgentId
    state: ToolState
    input: Value | UnsetType = UNSET
    raw_input: str | UnsetType = UNSET
    output: Value | UnsetType = UNSET
    preliminary: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET
    call_provider_metadata: ProviderMetadata | UnsetType = UNSET
    result_provider_metadata: ProviderMetadata | UnsetType = UNSET


class ChangeAction(_Write, tag="change_action", frozen=True, omit_defaults=True, kw_only=True):
    """An action says something else, or ends; committed."""

    part_id: AgentId
    state: ActionState | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    data: dict[str, Value] | UnsetType = UNSET


class Ask(_Write, tag="ask", frozen=True, omit_defaults=True, kw_only=True):
    """A person is asked, and a tool call may wait for the answer; committed.

    ``expires_in_ms`` is from the moment at which the server takes the question.
    """

    interaction_id: AgentId
    interaction_type: InteractionType
    request: InteractionRequest
    expires_in_ms: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] | UnsetType = UNSET
    tool_part_id: AgentId | UnsetType = UNSET


class Withdraw(_Write, tag="withdraw", frozen=True, omit_defaults=True, kw_only=True):
    """A question is taken back: where it is pending it is cancelled, else this changes nothing; committed."""

    interaction_id: AgentId


class ReportError(_Write, tag="report_error", frozen=True, omit_defaults=True, kw_only=True):
    """A failure is kept in the conversation, and the turn goes on; committed.

    With ``step_id`` it belongs to the step: it stands below its parts, and is undone with them.
    """

    code: str
    message: str
    recoverable: bool = True
    scope: ErrorScope = "turn"
    step_id: AgentId | UnsetType = UNSET


class SetPhase(_Write, tag="set_phase", frozen=True, omit_defaults=True, kw_only=True):
    """The turn is in another phase than what is written says."""

    phase: TurnPhase


class AbsorbInputs(_Write, tag="absorb_inputs", frozen=True, omit_defaults=True, kw_only=True):
    """Input that waits becomes messages of this turn (``messages`` of the result); committed."""


class AddInternal(_Write, tag="add_internal", frozen=True, omit_defaults=True, kw_only=True):
    """An internal user message is written (``messages`` of the result); committed."""

    parts: Annotated[list[UserPart], Meta(min_length=1)]


class Compact(_Write, tag="compact", frozen=True, omit_defaults=True, kw_only=True):
    """The messages up to ``through_sequence`` are summarized (``summary`` of the result); committed.

    The same write again is harmless.
    """

    through_sequence: Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
    summary: str


class EndTurn(_Write, tag="end_turn", frozen=True, omit_defaults=True, kw_only=True):
    """The turn is over: completed, or failed with ``failure``; committed. Nothing follows it."""

    state: Literal["completed", "failed"]
    failure: TurnFailure | UnsetType = UNSET
    recoverable: bool = False


Write: TypeAlias = (
    BeginStep
    | EndStep
    | AbandonStep
    | AddPart
    | EndText
    | MoveTool
    | ChangeAction
    | Ask
    | Withdraw
    | ReportError
    | SetPhase
    | AbsorbInputs
    | AddInternal
    | Compact
    | EndTurn
)
"""Everything that an agent writes but the text that it appends."""


class WriteResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a write gives back; most give nothing."""

    messages: list[Message] = []
    """The messages that ``absorb_inputs`` or ``add_internal`` wrote."""
    undone: bool | UnsetType = UNSET
    """Of ``abandon_step``: whether the step's parts are gone."""
    summary: Summary | UnsetType = UNSET
    """Of ``compact``: the summary as it is stored."""


class Context(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What an agent knows of the conversation: the last summary, and the messages behind it.

    ``summary`` is None where nothing was summarized: then the messages are all there are.
    """

    summary: Summary | None = None
    messages: list[Message]


NOTHING = WriteResult()
"""The result of most writes."""

_LIVE = (BeginStep, EndText, SetPhase)


def is_stored(write: Write) -> bool:
    """Say whether a write is committed before it is seen; else the next commit stores it."""
    if isinstance(write, AddPart):
        part = write.part
        return isinstance(part, ActionPart) or (
            isinstance(part, ToolPart) and part.state != "input-streaming"
        )
    return not isinstance(write, _LIVE)


def check_write(write: Write) -> None:
    """Refuse a write whose fields do not belong together, before it is looked at in its turn (SPEC 14.7).

    Raises:
        InvalidRequest: names the field by its path in the write.

    """
    if isinstance(write, AddPart):
        check_added(write.part)
    elif isinstance(write, EndTurn) and (write.state == "failed") != (write.failure is not UNSET):
        raise InvalidRequest("failure", "must be there where state is 'failed', and not where 'completed'")


def check_added(part: AddedPart) -> None:
    """Refuse a part that cannot begin as it is.

    Raises:
        InvalidRequest: names the field, below ``part``.

    """
    if not part.part_id:
        raise InvalidRequest("part.part_id", "is missing; give each part an id of its own")
    if part.sequence:
        raise InvalidRequest("part.sequence", "is given by the server; leave it out")
    if isinstance(part, ToolPart) and part.state not in {"input-streaming", "ready"}:
        raise InvalidRequest(
            "part.state", f"a tool call begins as 'input-streaming' or 'ready', not {part.state!r}"
        )
