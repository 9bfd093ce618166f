"""The canonical model: session, message, part, turn (SPEC 2).

Entities are frozen: a change makes a new one with :func:`msgspec.structs.replace`, so what was
given out never changes under its reader. Optional fields that are absent are
:data:`msgspec.UNSET` and are not written; ``null`` is a value.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from midstream.protocol.values import Value

ProviderMetadata: TypeAlias = dict[str, dict[str, Value]]
"""Maps a provider's name to an object of its own; kept for the next request to that provider."""

Role: TypeAlias = Literal["user", "agent"]
Visibility: TypeAlias = Literal["visible", "internal"]
StreamState: TypeAlias = Literal["streaming", "done"]
ToolState: TypeAlias = Literal["input-streaming", "ready", "waiting-user", "running", "completed", "failed"]
InteractionType: TypeAlias = Literal["approval", "question"]
InteractionStatus: TypeAlias = Literal["pending", "resolved", "expired", "cancelled"]
CancelReason: TypeAlias = Literal["turn_stopped", "session_disposed", "runtime_interrupted", "withdrawn"]
ApprovalMode: TypeAlias = Literal["ask", "always-allow"]
ActionState: TypeAlias = Literal["running", "completed", "failed"]
ErrorScope: TypeAlias = Literal["session", "turn"]
TurnState: TypeAlias = Literal["running", "completed", "failed", "stopped"]
TurnPhase: TypeAlias = Literal["starting", "waiting-model", "streaming", "running-tool", "waiting-user"]


class _Part(msgspec.Struct, tag_field="type", frozen=True, omit_defaults=True, kw_only=True):
    """What every part has. In input both may be absent: the server gives them."""

    part_id: str = ""
    sequence: int = 0
    step_id: str | UnsetType = UNSET


class TextPart(_Part, tag="text", frozen=True, omit_defaults=True, kw_only=True):
    """Text of either role. ``state`` is there exactly in agent messages."""

    text: str
    state: StreamState | UnsetType = UNSET
    provider_metadata: ProviderMetadata | UnsetType = UNSET


class ReasoningPart(_Part, tag="reasoning", frozen=True, omit_defaults=True, kw_only=True):
    """What the model thought on its way, as far as it says so."""

    text: str
    state: StreamState
    provider_metadata: ProviderMetadata | UnsetType = UNSET


class ContextPart(_Part, tag="context", frozen=True, omit_defaults=True, kw_only=True):
    """User context; only the composer turns it into ``<tag>escaped</tag>`` for the model."""

    tag: str
    context: str


class FilePart(_Part, tag="file", frozen=True, omit_defaults=True, kw_only=True):
    """A file by its URL, which may be a data URL (RFC 2397)."""

    url: str
    media_type: str
    filename: str | UnsetType = UNSET
    provider_metadata: ProviderMetadata | UnsetType = UNSET


class DataPart(_Part, tag="data", frozen=True, omit_defaults=True, kw_only=True):
    """Data for the user interface only, never for the model."""

    data_type: str
    data: Value
    data_id: str | UnsetType = UNSET


class SourcePart(_Part, tag="source", frozen=True, omit_defaults=True, kw_only=True):
    """What an answer rests on: ``url {url, title?}`` or ``document {media_type, title, filename?}``."""

    source_type: Literal["url", "document"]
    source_id: str
    url: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    media_type: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    provider_metadata: ProviderMetadata | UnsetType = UNSET


class ToolPart(_Part, tag="tool", frozen=True, omit_defaults=True, kw_only=True):
    """One tool call from its first character to its outcome, updated in place."""

    tool_call_id: str
    tool_name: str
    state: ToolState
    input_text: str | UnsetType = UNSET
    input: Value | UnsetType = UNSET
    output: Value | UnsetType = UNSET
    error: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    tool_metadata: dict[str, Value] | UnsetType = UNSET
    dynamic: bool | UnsetType = UNSET
    raw_input: str | UnsetType = UNSET
    preliminary: bool | UnsetType = UNSET
    call_provider_metadata: ProviderMetadata | UnsetType = UNSET
    result_provider_metadata: ProviderMetadata | UnsetType = UNSET
    provider_executed: bool | UnsetType = UNSET


class QuestionOption(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One offered answer."""

    value: str
    label: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class Question(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One question. Without ``options`` any string answers it; with ``multiple`` a list of strings."""

    question_id: str
    question: str
    options: list[QuestionOption] | UnsetType = UNSET
    multiple: bool | UnsetType = UNSET


class InteractionRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is asked. ``questions`` is there exactly for a question; ``expires_at`` is ms since the epoch."""

    title: str
    description: str | UnsetType = UNSET
    questions: list[Question] | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET


class ApprovalResponse(
    msgspec.Struct, tag_field="kind", tag="approval", frozen=True, omit_defaults=True, kw_only=True
):
    """``{kind: approval, decision, reason?}``."""

    decision: Literal["approved", "denied"]
    reason: str | UnsetType = UNSET


class QuestionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question: a string, or a list of strings where ``multiple`` is set."""

    question_id: str
    value: str | list[str]


class QuestionResponse(msgspec.Struct, tag_field="kind", tag="question", frozen=True, kw_only=True):
    """``{kind: question, answers}``: all questions, existing options."""

    answers: list[QuestionAnswer]


InteractionResponse: TypeAlias = ApprovalResponse | QuestionResponse


class InteractionPart(_Part, tag="interaction", frozen=True, omit_defaults=True, kw_only=True):
    """A question to a person: an approval or a set of questions.

    ``approval_mode`` is there where nobody was asked: the session's mode gave the approval, and
    ``resolved_by`` is who set that mode.
    """

    interaction_id: str
    interaction_type: InteractionType
    status: InteractionStatus
    request: InteractionRequest
    response: InteractionResponse | UnsetType = UNSET
    resolved_at: int | UnsetType = UNSET
    resolved_by: str | UnsetType = UNSET
    cancel_reason: CancelReason | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    approval_mode: Literal["always-allow"] | UnsetType = UNSET


class ActionPart(_Part, tag="action", frozen=True, omit_defaults=True, kw_only=True):
    """Something that the agent or the server did, for people to see."""

    action_id: str
    action_type: str
    state: ActionState
    title: str
    description: str | UnsetType = UNSET
    data: dict[str, Value] | UnsetType = UNSET


class ErrorPart(_Part, tag="error", frozen=True, omit_defaults=True, kw_only=True):
    """A failure that is kept in the conversation."""

    scope: ErrorScope
    code: str
    message: str
    recoverable: bool


class StepStartPart(_Part, tag="step-start", frozen=True, omit_defaults=True, kw_only=True):
    """A step boundary, where the agent asks for one to be seen."""


Part: TypeAlias = (
    TextPart
    | ReasoningPart
    | ContextPart
    | FilePart
    | DataPart
    | SourcePart
    | ToolPart
    | InteractionPart
    | ActionPart
    | ErrorPart
    | StepStartPart
)
UserPart: TypeAlias = TextPart | ContextPart | FilePart | DataPart
"""The parts that a user message, and so a ``prompt``, may have."""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where a forked message came from."""

    session_id: str
    message_id: str
    turn_id: str | UnsetType = UNSET


class Message(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One message. Times are ms since the epoch by the server's clock; ``state`` is the agent's only."""

    message_id: str
    session_id: str
    turn_id: str | UnsetType = UNSET
    sequence: int
    revision: int
    role: Role
    visibility: Visibility
    created_at: int
    updated_at: int
    origin: Origin | UnsetType = UNSET
    state: StreamState | UnsetType = UNSET
    parts: list[Part]


class TurnFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn failed."""

    code: str
    message: str


class Turn(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run of the agent, from the input that started it to its end."""

    turn_id: str
    revision: int
    state: TurnState
    phase: TurnPhase
    phase_since: int
    started_at: int
    finished_at: int | UnsetType = UNSET
    error: TurnFailure | UnsetType = UNSET


class Summary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the messages of one segment said. Derived: no message, no sequence, in no page of them.

    ``subject`` is who made it; it is absent where the session's agent did.
    """

    from_sequence: int
    through_sequence: int
    text: str
    created_at: int
    subject: str | UnsetType = UNSET


class Session(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The session's own state. Messages below ``first_sequence`` no longer exist.

    What has its usual value is not written: no ``metadata``, an empty ``queue``, nothing pending,
    nothing cleared, nothing summarized, the approval mode ``ask``. ``approval_mode_by`` is who set another
    mode.
    """

    session_id: str
    revision: int
    title: str | UnsetType = UNSET
    metadata: dict[str, Value] = {}
    created_at: int
    updated_at: int
    archived_at: int | UnsetType = UNSET
    first_sequence: int = 1
    message_count: int
    running_turn_id: str | UnsetType = UNSET
    queue: list[str] = []
    pending_interactions: int = 0
    approval_mode: ApprovalMode = "ask"
    approval_mode_by: str | UnsetType = UNSET
    summarized_through: int = 0
