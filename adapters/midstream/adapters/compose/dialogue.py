"""A conversation as a model takes it: who said what, in turns and steps, before any provider's form (pure).

Left out is what no model is to see: ``data``, sources, actions, errors and interactions. What a person
decided about a tool call stands in the call's result.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, Struct

from midstream.adapters.compose.results import Result, result_of
from midstream.protocol.model import (
    ApprovalResponse,
    ContextPart,
    FilePart,
    InteractionPart,
    Message,
    Part,
    ReasoningPart,
    StepStartPart,
    TextPart,
    ToolPart,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from midstream.adapters.compose.context import Context
    from midstream.protocol.values import Value

OPENING = "The conversation before this point is not shown."
"""What people are made to say first, where the agent's message is the first and a provider refuses that."""
SUMMARY = "summary"
"""The tag that a summary of earlier messages stands in."""


class UserSaid(Struct, frozen=True):
    """What people said since the agent spoke last: texts that are not blank, and files."""

    content: list[str | FilePart]


class Call(Struct, frozen=True):
    """A tool call and its result. Every call has one: where there was none, it says so."""

    part: ToolPart
    result: Result
    approved: bool | None = None
    """What a person decided about it, where one was asked and did."""

    @property
    def arguments(self) -> dict[str, Value]:
        """The arguments as the map that every provider asks for; empty where they never came."""
        given = self.part.input
        if given is UNSET:
            return {}
        return given if isinstance(given, dict) else {"input": given}


Spoken: TypeAlias = TextPart | ReasoningPart | FilePart | Call


class AgentSaid(Struct, frozen=True):
    """One answer of a model, in its order: the parts of one step."""

    parts: list[Spoken]

    def calls(self) -> list[Call]:
        """Return the calls that the agent ran, in order; a provider's own are not among them."""
        return [part for part in self.parts if isinstance(part, Call) and not part.part.provider_executed]


Said: TypeAlias = UserSaid | AgentSaid


def dialogue(context: Context) -> list[Said]:
    """Return what was said: messages of people that follow each other as one, the agent's by their steps."""
    said: list[Said] = []
    if context.summary is not None:
        said.append(UserSaid([tagged(SUMMARY, context.summary.text)]))
    for message in context.messages:
        for one in _user(message) if message.role == "user" else _steps(message):
            before = said[-1] if said else None
            if isinstance(one, UserSaid) and isinstance(before, UserSaid):
                said[-1] = UserSaid([*before.content, *one.content])
            else:
                said.append(one)
    return said


def tagged(tag: str, words: str) -> str:
    """Return ``<tag>words</tag>``, in which nothing of the words can end the tag."""
    return f"<{tag}>{escape(words, quote=False)}</{tag}>"


def _user(message: Message) -> Iterator[UserSaid]:
    content: list[str | FilePart] = []
    for part in message.parts:
        if isinstance(part, ContextPart):
            content.append(tagged(part.tag, part.context))
        elif isinstance(part, FilePart) or (isinstance(part, TextPart) and part.text.strip()):
            content.append(part if isinstance(part, FilePart) else part.text)
    if content:
        yield UserSaid(content)


def _steps(message: Message) -> Iterator[AgentSaid]:
    decisions = dict(_decisions(message.parts))
    parts: list[Spoken] = []
    step: object = UNSET
    for part in message.parts:
        spoken = _spoken(part, decisions)
        begins = isinstance(part, StepStartPart) or (spoken is not None and part.step_id != step)
        if begins:
            step = part.step_id
            if parts:
                yield AgentSaid(parts)
                parts = []
        if spoken is not None:
            parts.append(spoken)
    if parts:
        yield AgentSaid(parts)


def _spoken(part: Part, decisions: dict[str, ApprovalResponse]) -> Spoken | None:
    if isinstance(part, ToolPart):
        response = decisions.get(part.tool_call_id)
        approved = None if response is None else response.decision == "approved"
        return Call(part, result_of(part, response), approved)
    return part if isinstance(part, (TextPart, ReasoningPart, FilePart)) else None


def _decisions(parts: Iterable[Part]) -> Iterator[tuple[str, ApprovalResponse]]:
    for part in parts:
        if isinstance(part, InteractionPart) and isinstance(part.response, ApprovalResponse):
            yield "" if part.tool_call_id is UNSET else part.tool_call_id, part.response
