"""Hypothesis strategies for everything of the model: each gives only what the protocol allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st
from msgspec import UNSET, UnsetType, structs

from midstream.protocol.model import (
    ActionPart,
    ApprovalMode,
    ApprovalResponse,
    ContextPart,
    DataPart,
    ErrorPart,
    FilePart,
    InteractionPart,
    InteractionRequest,
    InteractionResponse,
    InteractionStatus,
    InteractionType,
    Message,
    Origin,
    Part,
    Question,
    QuestionAnswer,
    QuestionOption,
    QuestionResponse,
    ReasoningPart,
    Role,
    Session,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolState,
    Turn,
    TurnFailure,
    TurnState,
)
from midstream.protocol.values import MAX_INTEGER

if TYPE_CHECKING:
    from midstream.protocol.values import Value

T = TypeVar("T")

MODES: tuple[ApprovalMode, ...] = ("ask", "always-allow")
texts = st.text(max_size=12)
"""Text of valid Unicode, rarely long: what is long is a matter of limits, which have tests of their own."""
names = st.text("abcdefghijklmnopqrstuvwxyz_-.0123456789é🙂", min_size=1, max_size=8)
"""Ids and names: not empty."""
integers = st.integers(-MAX_INTEGER, MAX_INTEGER)
counts = st.integers(0, MAX_INTEGER)
times = st.integers(1_600_000_000_000, 1_900_000_000_000)
"""Milliseconds since the epoch, from 2020 to 2030."""
scalars: st.SearchStrategy[Value] = (
    st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | texts
)


def _nest(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)


values: st.SearchStrategy[Value] = st.recursive(scalars, _nest, max_leaves=6)
"""Anything that both encodings carry."""
maps = st.dictionaries(texts, values, max_size=3)
provider_metadata = st.dictionaries(names, maps, max_size=2)


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | UnsetType]:
    """A field that may be absent."""
    return st.just(UNSET) | strategy


# Parts

user_texts = st.builds(TextPart, text=texts, provider_metadata=maybe(provider_metadata))
contexts = st.builds(ContextPart, tag=st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True), context=texts)
files = st.builds(
    FilePart,
    url=texts,
    media_type=names,
    filename=maybe(texts),
    provider_metadata=maybe(provider_metadata),
)
datas = st.builds(DataPart, data_type=names, data=values, data_id=maybe(names))
user_parts: st.SearchStrategy[Part] = user_texts | contexts | files | datas
"""A part of a user's message, as it is sent: without id, sequence and step."""

agent_texts = st.builds(
    TextPart,
    text=texts,
    state=st.sampled_from(["streaming", "done"]),
    provider_metadata=maybe(provider_metadata),
)
reasonings = st.builds(
    ReasoningPart,
    text=texts,
    state=st.sampled_from(["streaming", "done"]),
    provider_metadata=maybe(provider_metadata),
)
errors = st.builds(
    ErrorPart,
    scope=st.sampled_from(["session", "turn"]),
    code=names,
    message=texts,
    recoverable=st.booleans(),
)
actions = st.builds(
    ActionPart,
    action_id=names,
    action_type=names,
    state=st.sampled_from(["running", "completed", "failed"]),
    title=texts,
    description=maybe(texts),
    data=maybe(maps),
)
step_starts = st.builds(StepStartPart)
url_sources = st.builds(
    SourcePart, source_type=st.just("url"), source_id=names, url=texts, title=maybe(texts)
)
document_sources = st.builds(
    SourcePart,
    source_type=st.just("document"),
    source_id=names,
    media_type=names,
    title=texts,
    filename=maybe(texts),
)
sources = st.builds(
    structs.replace, url_sources | document_sources, provider_metadata=maybe(provider_metadata)
)


@st.composite
def tools(draw: st.DrawFn) -> ToolPart:
    """A tool call in any of its states."""
    states: list[ToolState] = [
        "input-streaming", "ready", "waiting-user", "running", "completed", "failed"
    ]  # fmt: skip
    state = draw(st.sampled_from(states))
    return ToolPart(
        tool_call_id=draw(names),
        tool_name=draw(names),
        state=state,
        input_text=draw(maybe(texts)),
        input=draw(maybe(values)),
        output=draw(maybe(values)),
        error=draw(texts) if state == "failed" else UNSET,
        title=draw(maybe(texts)),
        tool_metadata=draw(maybe(maps)),
        dynamic=draw(maybe(st.booleans())),
        raw_input=draw(maybe(texts)),
        preliminary=draw(maybe(st.booleans())) if state == "running" else UNSET,
        call_provider_metadata=draw(maybe(provider_metadata)),
        result_provider_metadata=draw(maybe(provider_metadata)),
        provider_executed=draw(maybe(st.booleans())),
    )


options = st.builds(QuestionOption, value=texts, label=maybe(texts), description=maybe(texts))
questions = st.builds(
    Question,
    question_id=names,
    question=texts,
    options=maybe(st.lists(options, min_size=1, max_size=3, unique_by=lambda option: option.value)),
    multiple=maybe(st.booleans()),
)
question_lists = st.lists(questions, min_size=1, max_size=3, unique_by=lambda asked: asked.question_id)


@st.composite
def requests(draw: st.DrawFn, kind: InteractionType) -> InteractionRequest:
    """What an interaction of this type asks."""
    return InteractionRequest(
        title=draw(texts),
        description=draw(maybe(texts)),
        questions=draw(question_lists) if kind == "question" else UNSET,
        expires_at=draw(maybe(times)),
    )


@st.composite
def responses(draw: st.DrawFn, request: InteractionRequest) -> InteractionResponse:
    """An answer that fits the request."""
    if request.questions is UNSET:
        decision = draw(st.sampled_from(["approved", "denied"]))
        return ApprovalResponse(
            decision="approved" if decision == "approved" else "denied", reason=draw(maybe(texts))
        )
    return QuestionResponse(
        answers=[
            QuestionAnswer(question_id=question.question_id, value=draw(_answers(question)))
            for question in draw(st.permutations(request.questions))
        ]
    )


def _answers(question: Question) -> st.SearchStrategy[str | list[str]]:
    one = texts
    if question.options is not UNSET:
        one = st.sampled_from([option.value for option in question.options])
    return st.lists(one, max_size=3, unique=True) if question.multiple is True else one


@st.composite
def interactions(draw: st.DrawFn) -> InteractionPart:
    """An approval or a question, in any status."""
    kind: InteractionType = "approval" if draw(st.booleans()) else "question"
    statuses: list[InteractionStatus] = ["pending", "resolved", "expired", "cancelled"]
    status = draw(st.sampled_from(statuses))
    request = draw(requests(kind))
    resolved = status == "resolved"
    response = draw(responses(request)) if resolved else UNSET
    return InteractionPart(
        interaction_id=draw(names),
        interaction_type=kind,
        status=status,
        request=request,
        response=response,
        resolved_at=UNSET if status == "pending" else draw(times),
        resolved_by=draw(maybe(names)) if resolved else UNSET,
        cancel_reason=draw(st.sampled_from(["turn_stopped", "session_disposed", "runtime_interrupted"]))
        if status == "cancelled"
        else UNSET,
        tool_call_id=draw(maybe(names)),
        approval_mode=draw(maybe(st.just("always-allow"))) if _is_given(response) else UNSET,
    )


def _is_given(response: InteractionResponse | UnsetType) -> bool:
    return isinstance(response, ApprovalResponse) and response.decision == "approved"


def _in_step(part: Part, step_id: str | UnsetType) -> Part:
    return structs.replace(part, step_id=step_id)


agent_parts: st.SearchStrategy[Part] = st.builds(
    _in_step,
    agent_texts
    | reasonings
    | tools()
    | interactions()
    | files
    | datas
    | sources
    | actions
    | errors
    | step_starts,
    maybe(names),
)
"""A part of an agent's message, of every type and in every state: without id and sequence."""


# Entities


@st.composite
def messages(
    draw: st.DrawFn, *, sequence: int = 1, session_id: str = "s", max_parts: int = 3, role: Role | None = None
) -> Message:
    """A whole message; its parts have their places and ids, its id has its sequence in it."""
    who: Role = role or ("user" if draw(st.booleans()) else "agent")
    drawn = draw(st.lists(user_parts if who == "user" else agent_parts, max_size=max_parts))
    parts = [
        structs.replace(part, part_id=f"p{number}", sequence=number) for number, part in enumerate(drawn, 1)
    ]
    created = draw(times)
    return Message(
        message_id=f"m{sequence}{draw(names)}",
        session_id=session_id,
        turn_id=draw(maybe(names)),
        sequence=sequence,
        revision=draw(st.integers(1, 1_000)),
        role=who,
        visibility="internal" if who == "user" and draw(st.booleans()) else "visible",
        created_at=created,
        updated_at=created + draw(st.integers(0, 10_000)),
        origin=draw(maybe(st.builds(Origin, session_id=names, message_id=names, turn_id=maybe(names)))),
        state=UNSET if who == "user" else draw(st.sampled_from(["streaming", "done"])),
        parts=parts,
    )


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """A turn in any state."""
    states: list[TurnState] = ["running", "completed", "failed", "stopped"]
    state = draw(st.sampled_from(states))
    return Turn(
        turn_id=draw(names),
        revision=draw(st.integers(1, 1_000)),
        state=state,
        phase=draw(
            st.sampled_from(["starting", "waiting-model", "streaming", "running-tool", "waiting-user"])
        ),
        phase_since=draw(times),
        started_at=draw(times),
        finished_at=UNSET if state == "running" else draw(times),
        error=TurnFailure(code=draw(names), message=draw(texts)) if state == "failed" else UNSET,
    )


@st.composite
def sessions(draw: st.DrawFn, *, session_id: str = "s") -> Session:
    """A session without queue, which is no field of its own in the store."""
    first = draw(st.integers(1, 50))
    return Session(
        session_id=session_id,
        revision=draw(st.integers(1, 1_000)),
        title=draw(maybe(texts)),
        metadata=draw(maps),
        created_at=draw(times),
        updated_at=draw(times),
        archived_at=draw(maybe(times)),
        first_sequence=first,
        message_count=draw(st.integers(first - 1, 200)),
        running_turn_id=draw(maybe(names)),
        queue=[],
        pending_interactions=draw(st.integers(0, 3)),
        approval_mode=draw(st.sampled_from(MODES)),
        approval_mode_by=draw(maybe(names)),
    )
