"""Which parts a message may have, what must stand in them, and which response fits a request (SPEC 2.3).

The Structs say what each field is; this says what they cannot: which role has which parts, and
which fields belong together.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.protocol.errors import InvalidRequest
from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.protocol.model import (
    ActionPart,
    ApprovalResponse,
    ContextPart,
    DataPart,
    ErrorPart,
    FilePart,
    InteractionPart,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolPart,
)
from midstream.protocol.transitions import TERMINAL_INTERACTION
from midstream.protocol.values import join, problem_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.protocol.model import (
        InteractionRequest,
        InteractionResponse,
        InteractionType,
        Part,
        Question,
        QuestionAnswer,
        QuestionResponse,
        Role,
    )

USER_PARTS = (TextPart, ContextPart, FilePart, DataPart)
AGENT_PARTS = (
    TextPart,
    ReasoningPart,
    ToolPart,
    InteractionPart,
    FilePart,
    DataPart,
    SourcePart,
    ActionPart,
    ErrorPart,
    StepStartPart,
)
PART_NESTING = DEFAULT_LIMITS.nesting - 3
"""Levels of a part, its own map included: in a ``prompt`` the frame, the params and a list are above it."""

_CONTEXT_TAG = re.compile(r"[a-z][a-z0-9_-]*")
_NAMES = ("tool_call_id", "tool_name", "interaction_id", "action_id", "action_type", "source_id", "data_type")
"""Fields that must not be empty where a part has them."""


def check_input(parts: Sequence[Part], path: str = "parts") -> None:
    """Refuse what cannot be a user's message: a wrong part, an id that stands twice, or nothing to say.

    Raises:
        InvalidRequest: names the field, below ``path``.

    """
    seen: set[str] = set()
    for index, part in enumerate(parts):
        where = join(path, index)
        check_part("user", part, where)
        if part.part_id and part.part_id in seen:
            raise InvalidRequest(f"{where}.part_id", f"{part.part_id!r} is the id of another part")
        seen.add(part.part_id)
        if part.sequence not in {0, index + 1}:
            problem = f"is given by the position, {index + 1}; leave it out"
            raise InvalidRequest(f"{where}.sequence", problem)
    if not any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        raise InvalidRequest(path, "has no content; send text that is not blank, a file, context or data")


def check_part(role: Role, part: Part, path: str = "") -> None:
    """Refuse a part that a message of this role may not have, or whose fields do not belong together.

    Also refuses values that the protocol does not carry, which code in the process can give.

    Raises:
        InvalidRequest: names the field, below ``path``.

    """
    _check_any(role, part, path)
    _require(part, "step_id", path, given=None if role == "agent" else False, when="in a message of a user")
    if isinstance(part, TextPart):
        _require(part, "state", path, given=role == "agent", when=f"in a message of role {role!r}")
    elif isinstance(part, ContextPart):
        if not _CONTEXT_TAG.fullmatch(part.tag):
            raise InvalidRequest(join(path, "tag"), f"{part.tag!r} does not match {_CONTEXT_TAG.pattern}")
    elif isinstance(part, SourcePart):
        _check_source(part, path)
    elif isinstance(part, ToolPart):
        _check_tool(part, path)
    elif isinstance(part, InteractionPart):
        _check_interaction(part, path)


def _check_any(role: Role, part: Part, path: str) -> None:
    """Refuse what is wrong in a part of any type."""
    kinds: tuple[type[Part], ...] = USER_PARTS if role == "user" else AGENT_PARTS
    if type(part) not in kinds:
        kind = part.__struct_config__.tag
        raise InvalidRequest(join(path, "type"), f"a message of role {role!r} has no part of type {kind!r}")
    problem = problem_in(part, nesting=PART_NESTING, path=path)
    if problem:
        raise InvalidRequest(*problem)
    for name in _names_of(type(part)):
        if getattr(part, name) == "":
            raise InvalidRequest(join(path, name), "must not be empty")


@cache
def _names_of(kind: type[Part]) -> tuple[str, ...]:
    return tuple(name for name in _NAMES if name in kind.__struct_fields__)


def _require(part: Part, field: str, path: str, *, given: bool | None, when: str) -> None:
    """Refuse a field that is absent but must be given, or the other way round; with None either may be."""
    present = getattr(part, field) is not UNSET
    if given is True and not present:
        raise InvalidRequest(join(path, field), f"must be there {when}")
    if given is False and present:
        raise InvalidRequest(join(path, field), f"must not be there {when}")


def _check_tool(part: ToolPart, path: str) -> None:
    _require(part, "error", path, given=part.state == "failed", when=f"in state {part.state!r}")
    if part.preliminary is True and part.state != "running":
        raise InvalidRequest(join(path, "preliminary"), "only a running tool has preliminary output")


def _check_source(part: SourcePart, path: str) -> None:
    document = part.source_type == "document"
    when = f"where source_type is {part.source_type!r}"
    _require(part, "url", path, given=not document, when=when)
    _require(part, "media_type", path, given=document, when=when)
    _require(part, "title", path, given=True if document else None, when=when)
    _require(part, "filename", path, given=None if document else False, when=when)


def _check_interaction(part: InteractionPart, path: str) -> None:
    _check_request(part, part.request, join(path, "request"))
    when = f"where status is {part.status!r}"
    _require(part, "response", path, given=part.status == "resolved", when=when)
    _require(part, "resolved_at", path, given=part.status in TERMINAL_INTERACTION, when=when)
    _require(part, "resolved_by", path, given=None if part.status == "resolved" else False, when=when)
    _require(part, "cancel_reason", path, given=part.status == "cancelled", when=when)
    approved = isinstance(part.response, ApprovalResponse) and part.response.decision == "approved"
    _require(part, "approval_mode", path, given=None if approved else False, when="where nobody approved")
    if part.response is not UNSET:
        check_response(part.request, part.interaction_type, part.response, join(path, "response"))


def _check_request(part: InteractionPart, request: InteractionRequest, path: str) -> None:
    where = join(path, "questions")
    questions = [] if request.questions is UNSET else request.questions
    if part.interaction_type == "approval":
        if request.questions is not UNSET:
            raise InvalidRequest(where, "an approval has no questions")
        return
    if not questions:
        raise InvalidRequest(where, "a question has at least one")
    if len({question.question_id for question in questions}) < len(questions):
        raise InvalidRequest(where, "two questions have the same question_id")
    for index, question in enumerate(questions):
        if question.options is UNSET:
            continue
        values = {option.value for option in question.options}
        if not values or len(values) < len(question.options):
            raise InvalidRequest(f"{where}[{index}].options", "must be there and differ, or be left out")


def check_response(
    request: InteractionRequest,
    interaction_type: InteractionType,
    response: InteractionResponse,
    path: str = "response",
) -> None:
    """Refuse a response that does not fit the request.

    An approval is answered by an approval. A question is answered by an answer to each of its
    questions, once, in any order: with existing options where there are any, with a list exactly
    where ``multiple`` is set.

    Raises:
        InvalidRequest: names the field, below ``path``.

    """
    if isinstance(response, ApprovalResponse):
        if interaction_type != "approval":
            raise InvalidRequest(
                f"{path}.kind", "this interaction is a question; answer with kind 'question'"
            )
        return
    if interaction_type != "question":
        raise InvalidRequest(f"{path}.kind", "this interaction is an approval; answer with kind 'approval'")
    questions = [] if request.questions is UNSET else request.questions
    _check_answers({question.question_id: question for question in questions}, response, path)


def _check_answers(open_questions: dict[str, Question], response: QuestionResponse, path: str) -> None:
    for index, answer in enumerate(response.answers):
        where = f"{path}.answers[{index}]"
        question = open_questions.pop(answer.question_id, None)
        if question is None:
            problem = f"there is no question {answer.question_id!r}, or it has an answer already"
            raise InvalidRequest(f"{where}.question_id", problem)
        _check_answer(question, answer, f"{where}.value")
    if open_questions:
        names = ", ".join(repr(name) for name in open_questions)
        raise InvalidRequest(f"{path}.answers", f"every question needs an answer; missing: {names}")


def _check_answer(question: Question, answer: QuestionAnswer, path: str) -> None:
    multiple = question.multiple is True
    if multiple and isinstance(answer.value, str):
        raise InvalidRequest(path, "this question takes a list of strings")
    if not multiple and not isinstance(answer.value, str):
        raise InvalidRequest(path, "this question takes one string")
    values = [answer.value] if isinstance(answer.value, str) else answer.value
    if len(set(values)) < len(values):
        raise InvalidRequest(path, "names an option twice")
    if question.options is UNSET:
        return
    offered = [option.value for option in question.options]
    for value in values:
        if value not in offered:
            raise InvalidRequest(
                path, f"{value!r} is not offered; choose from: {', '.join(map(repr, offered))}"
            )
