"""A turn: one run of an agent, as the agent sees it (SPEC 8).

An agent is an async function of a :class:`Turn`. It streams parts in steps. What it writes is
seen at once; a step is stored when it ends, and tool transitions, interactions, actions, errors
and the turn's end are stored at once. When the turn ends in another way (a stop, a deleted session)
the agent's task is cancelled, and nothing that it writes afterwards enters.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, get_args

from msgspec import UNSET

from midstream.agents.errors import TurnEnded
from midstream.agents.open_parts import Action, ToolCall
from midstream.agents.outcomes import Answers, Approval
from midstream.agents.step import Step
from midstream.agents.writer import absent
from midstream.protocol.agents import (
    AbsorbInputs,
    AddInternal,
    AddPart,
    Ask,
    Compact,
    ReportError,
    SetPhase,
    Withdraw,
)
from midstream.protocol.errors import InternalError, InvalidRequest, Unavailable
from midstream.protocol.model import (
    ActionPart,
    ErrorScope,
    InteractionRequest,
    Message,
    Question,
    TextPart,
    TurnPhase,
)
from midstream.protocol.transitions import TOOL, terminal

if TYPE_CHECKING:
    from midstream.agents.writer import Writer
    from midstream.protocol.agents import Context
    from midstream.protocol.model import InteractionPart, InteractionType, Summary, UserPart
    from midstream.protocol.values import Value


ENDED = terminal(TOOL)
"""The states of a tool call that nothing follows."""


class Turn:
    """One run of an agent, given to it by the server, or by the worker that it runs in."""

    def __init__(self, writer: Writer, prompt: Message) -> None:
        """Made by the server or the worker."""
        self._writer = writer
        self.session_id = writer.session_id
        self.turn_id = writer.turn_id
        self.prompt = prompt
        """The user's message that started the turn."""
        self._calls: dict[str, ToolCall] = {}

    @property
    def prompt_text(self) -> str:
        """The text of the prompt: its text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.prompt.parts if isinstance(part, TextPart))

    async def context(self, *, limit: int | None = None) -> Context:
        """Return what was said so far: the last summary, if there is one, and the messages behind it.

        Messages ascend and are whole, internal ones included. ``limit`` keeps the newest; without it all
        behind the summary are read, however many there are.
        """
        return await self._writer.context(limit)

    async def compact(self, through_sequence: int, summary: str) -> Summary:
        """Store a summary of all messages up to ``through_sequence``: later contexts begin with it.

        The messages stay where they are. To do the same again is harmless.

        Raises:
            InvalidRequest: there is no such message, or a summary covers it; or there is no text.
            Refused: a message up to there can still change (``message_open``).
            LimitExceeded: the text is longer than ``summary_bytes``.
            IdempotencyConflict: a summary with another text ends there.

        """
        written = await self._writer.write(Compact(through_sequence=through_sequence, summary=summary))
        if written.summary is UNSET:
            raise InternalError("The summary is stored, and the answer does not have it.")
        return written.summary

    def step(self) -> Step:
        """Return a step: ``async with turn.step() as step``. It is committed as one when it ends."""
        return Step(self._writer)

    @property
    def resumed(self) -> bool:
        """Say whether another process has written to this turn, and this one goes on with it.

        What that one left streaming is undone at the first step, or ended where it cannot be undone,
        unless :meth:`open_step` takes it over.
        """
        return self._writer.resumption is not None

    def open_step(self) -> Step | None:
        """Return the step that another process left open, to be gone on with by ``async with``; once.

        Its :meth:`~Step.open_texts` and :meth:`~Step.open_tools` are what still streams in it. None where
        there is none, or a step was begun.
        """
        left = self._writer.resumption
        step_id = left.open_step_id if left else None
        if left is None or step_id is None:
            return None
        left.take(step_id)
        calls = [self._left_calls()[part.part_id] for part in left.streaming_calls(step_id)]
        return Step(self._writer, begun=step_id, texts=left.texts(step_id), calls=calls)

    def calls(self) -> list[ToolCall]:
        """Return the tool calls that another process began and that have not ended, in order.

        One that is ``running`` was claimed: it may have had its effect, and must not be executed again.
        A question that was asked about a call is not asked again: :meth:`ask_approval` gives its answer.
        """
        left = self._writer.resumption
        if left is None:
            return []
        given_up = {part.part_id for part in left.calls() if left.is_given_up(part)}
        return [
            call
            for part_id, call in self._left_calls().items()
            if call.state not in ENDED and part_id not in given_up
        ]

    def _left_calls(self) -> dict[str, ToolCall]:
        left = self._writer.resumption
        if left is not None and not self._calls:
            self._calls = {part.part_id: ToolCall(self._writer, part) for part in left.calls()}
        return self._calls

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

        With a tool call, the call waits too: ``waiting-user`` until the answer, then ``ready``. Who stops
        waiting, by ``asyncio.timeout`` say, takes the question back: it is cancelled as ``withdrawn``.
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
        left = self._writer.resumption
        asked = left.asked(interaction_type, request, call.tool_call_id if call else None) if left else None
        interaction_id = asked.interaction_id if asked else self._writer.new_id("ask")
        try:
            if asked is not None:
                return await self._writer.outcome(interaction_id)
            return await self._writer.ask(
                Ask(
                    interaction_id=interaction_id,
                    interaction_type=interaction_type,
                    request=request,
                    expires_in_ms=UNSET if expires_in is None else max(0, round(expires_in * 1000)),
                    tool_part_id=UNSET if call is None else call.part_id,
                )
            )
        except asyncio.CancelledError:
            if self._writer.is_running():  # the agent gave up the question, not the turn
                with contextlib.suppress(TurnEnded, Unavailable):
                    await self._writer.write(Withdraw(interaction_id=interaction_id))
            raise
        finally:
            if call is not None and call.state == "waiting-user":
                call.state = "ready"


Agent: TypeAlias = Callable[[Turn], Awaitable[None]]
"""An agent: runs one turn and returns, or raises."""
