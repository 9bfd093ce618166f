"""A turn: one run of an agent, as the agent sees it (SPEC 9).

An agent is an async function of a :class:`Turn`. It streams parts in steps. What it writes is
seen at once; a step is stored when it ends, and tool transitions, interactions, actions, errors
and the turn's end are stored at once. When the turn ends in another way (a stop, a deleted session)
the agent's task is cancelled, and nothing that it writes afterwards enters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, get_args

from msgspec import UNSET

from midstream.agents.open_parts import Action
from midstream.agents.outcomes import Answers, Approval
from midstream.agents.step import Step
from midstream.agents.writer import absent
from midstream.protocol.agents import AbsorbInputs, AddInternal, AddPart, Ask, ReportError, SetPhase
from midstream.protocol.errors import InvalidRequest
from midstream.protocol.model import (
    ActionPart,
    ErrorScope,
    InteractionRequest,
    Message,
    Question,
    TextPart,
    TurnPhase,
)

if TYPE_CHECKING:
    from midstream.agents.open_parts import ToolCall
    from midstream.agents.writer import Writer
    from midstream.protocol.model import InteractionPart, InteractionType, UserPart
    from midstream.protocol.values import Value


class Turn:
    """One run of an agent, given to it by the server, or by the worker that it runs in."""

    def __init__(self, writer: Writer, prompt: Message) -> None:
        """Made by the server or the worker."""
        self._writer = writer
        self.session_id = writer.session_id
        self.turn_id = writer.turn_id
        self.prompt = prompt
        """The user's message that started the turn."""

    @property
    def prompt_text(self) -> str:
        """The text of the prompt: its text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.prompt.parts if isinstance(part, TextPart))

    async def context(self, *, limit: int | None = None) -> list[Message]:
        """Return the messages so far, ascending and whole, internal ones included.

        ``limit`` keeps the newest; without it all are read, however many there are.
        """
        return await self._writer.context(limit)

    def step(self) -> Step:
        """Return a step: ``async with turn.step() as step``. It is committed as one when it ends."""
        return Step(self._writer)

    async def take_inputs(self) -> list[Message]:
        """Absorb the input that waits (steering), between two steps, and return its messages.

        The next part opens a new agent message, so that the answer stands below the question.
        """
        return (await self._writer.write(AbsorbInputs())).messages

    async def internal(self, *parts: UserPart) -> Message:
        """Write an internal user message, which only readers of internal messages see; return it."""
        return (await self._writer.write(AddInternal(parts=list(parts)))).messages[0]

    async def ask_approval(
        self,
        call: ToolCall | None = None,
        *,
        title: str,
        description: str | None = None,
        expires_in: float | None = None,
    ) -> Approval:
        """Ask a person to approve, and wait for the answer, its expiry (seconds from now) or a stop.

        With a tool call, the call waits too: ``waiting-user`` until the answer, then ``ready``.
        """
        request = InteractionRequest(title=title, description=absent(description))
        return Approval(await self._ask("approval", request, call, expires_in))

    async def ask(
        self,
        *questions: Question,
        title: str,
        description: str | None = None,
        expires_in: float | None = None,
        call: ToolCall | None = None,
    ) -> Answers:
        """Ask a person one or more questions, and wait as :meth:`ask_approval` does."""
        request = InteractionRequest(title=title, description=absent(description), questions=list(questions))
        return Answers(await self._ask("question", request, call, expires_in))

    async def action(
        self,
        action_type: str,
        title: str,
        *,
        description: str | None = None,
        data: dict[str, Value] | None = None,
    ) -> Action:
        """Show that something is being done; end it with ``complete`` or ``fail``."""
        part = ActionPart(
            part_id=self._writer.new_id("part"),
            action_id=self._writer.new_id("action"),
            action_type=action_type,
            state="running",
            title=title,
            description=absent(description),
            data=absent(data),
        )
        await self._writer.write(AddPart(part=part))
        return Action(self._writer, part)

    async def error(
        self, code: str, message: str, *, recoverable: bool = True, scope: ErrorScope = "turn"
    ) -> None:
        """Keep a failure in the conversation; the turn goes on. ``scope`` says what it is a failure of."""
        await self._writer.write(
            ReportError(code=code, message=message, recoverable=recoverable, scope=scope)
        )

    async def phase(self, phase: TurnPhase) -> None:
        """Show another phase than the one that follows from what is written; seldom needed.

        Raises:
            InvalidRequest: there is no such phase.

        """
        if phase not in get_args(TurnPhase):
            raise InvalidRequest("phase", f"{phase!r} is none of {', '.join(get_args(TurnPhase))}")
        await self._writer.write(SetPhase(phase=phase))

    async def _ask(
        self,
        interaction_type: InteractionType,
        request: InteractionRequest,
        call: ToolCall | None,
        expires_in: float | None,
    ) -> InteractionPart:
        return await self._writer.ask(
            Ask(
                interaction_id=self._writer.new_id("ask"),
                interaction_type=interaction_type,
                request=request,
                expires_in_ms=UNSET if expires_in is None else max(0, round(expires_in * 1000)),
                tool_part_id=UNSET if call is None else call.part_id,
            )
        )


Agent: TypeAlias = Callable[[Turn], Awaitable[None]]
"""An agent: runs one turn and returns, or raises."""
