"""Agents in the server's process: the API that they are written to (SPEC 8).

An agent is an async function of a :class:`Turn`. It streams parts in steps. What it writes is
seen at once; a step is stored when it ends, and tool transitions, interactions, actions, errors
and the turn's end are stored at once. When the turn ends in another way (a stop, a deleted session,
a server that goes down) the agent's task is cancelled, and nothing that it writes afterwards enters.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar, get_args

import structlog

from midstream.protocol.errors import InvalidRequest, MidstreamError, Unavailable
from midstream.protocol.model import (
    ActionPart,
    ApprovalResponse,
    ErrorScope,
    InteractionPart,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
    Message,
    Question,
    QuestionResponse,
    TextPart,
    TurnFailure,
    TurnPhase,
)
from midstream.server.sessions import turns
from midstream.server.sessions.open_parts import Action, ToolCall
from midstream.server.sessions.state import LoadedState, TurnEnded
from midstream.server.sessions.steps import Step
from midstream.server.sessions.writer import TurnWriter, absent
from midstream.server.storage import rows

if TYPE_CHECKING:
    from midstream.protocol.model import Turn as TurnEntity
    from midstream.protocol.model import UserPart
    from midstream.protocol.values import Value

log = structlog.get_logger("midstream.agent")
T = TypeVar("T")


class TurnFailed(Exception):  # what an agent raises to end its turn, in the model's word
    """Raised by an agent: its turn fails with exactly this error part."""

    def __init__(self, code: str, message: str, *, recoverable: bool = False) -> None:
        """Give the code for programs, the text for people, and whether trying again may help."""
        super().__init__(message)
        self.failure = TurnFailure(code=code, message=message.encode(errors="replace").decode())
        self.recoverable = recoverable


class Approval:
    """The outcome of an approval."""

    def __init__(self, part: InteractionPart) -> None:
        """Read it from the interaction's terminal state."""
        response = part.response
        self.status: InteractionStatus = part.status
        self.approved = isinstance(response, ApprovalResponse) and response.decision == "approved"
        """True only where somebody said so; an expired approval was not given."""
        self.reason = response.reason if isinstance(response, ApprovalResponse) and response.reason else None
        self.resolved_by = part.resolved_by or None


class Answers:
    """The outcome of questions."""

    def __init__(self, part: InteractionPart) -> None:
        """Read it from the interaction's terminal state."""
        response = part.response
        self.status: InteractionStatus = part.status
        self.answered = isinstance(response, QuestionResponse)
        self.values: dict[str, str | list[str]] = (
            {answer.question_id: answer.value for answer in response.answers}
            if isinstance(response, QuestionResponse)
            else {}
        )
        """The answers by question; empty where nobody answered in time."""
        self.resolved_by = part.resolved_by or None


class Turn:
    """One run of an agent, given to it by the server."""

    def __init__(self, writer: TurnWriter, prompt: Message) -> None:
        """Made by the server."""
        self._writer = writer
        self.session_id = writer.session_id
        self.turn_id = writer.turn_id
        self.prompt = rows.copied(prompt)
        """The user's message that started the turn."""

    @property
    def prompt_text(self) -> str:
        """The text of the prompt: its text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.prompt.parts if isinstance(part, TextPart))

    async def context(self, *, limit: int | None = None) -> list[Message]:
        """Return the messages so far, ascending and whole, internal ones included.

        ``limit`` keeps the newest; without it all are read, however many there are.
        """
        return await self._writer.read(lambda state: state.reading.context(limit))

    def step(self) -> Step:
        """Return a step: ``async with turn.step() as step``. It is committed as one when it ends."""
        return Step(self._writer)

    async def take_inputs(self) -> list[Message]:
        """Absorb the input that waits (steering), between two steps, and return its messages.

        The next part opens a new agent message, so that the answer stands below the question.
        """
        return await self._writer.write_messages(turns.absorb)

    async def internal(self, *parts: UserPart) -> Message:
        """Write an internal user message, which only readers of internal messages see; return it."""
        written = await self._writer.write_messages(
            lambda draft, turn: [turns.write_internal(draft, turn, parts)]
        )
        return written[0]

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
        action_id = self._writer.new_id("action")
        part = ActionPart(
            action_id=action_id,
            action_type=action_type,
            state="running",
            title=title,
            description=absent(description),
            data=absent(data),
        )
        place = await self._writer.add_to_turn(part)
        return Action(self._writer, place, title)

    async def error(
        self, code: str, message: str, *, recoverable: bool = True, scope: ErrorScope = "turn"
    ) -> None:
        """Keep a failure in the conversation; the turn goes on. ``scope`` says what it is a failure of."""
        failure = TurnFailure(code=code, message=message)
        await self._writer.store(
            lambda draft, turn: turns.add_error(
                draft, turn.turn_id, failure, recoverable=recoverable, scope=scope
            )
        )

    async def phase(self, phase: TurnPhase) -> None:
        """Show another phase than the one that follows from what is written; seldom needed.

        Raises:
            InvalidRequest: there is no such phase.

        """
        if phase not in get_args(TurnPhase):
            raise InvalidRequest("phase", f"{phase!r} is none of {', '.join(get_args(TurnPhase))}")
        await self._writer.show(lambda draft, _: draft.set_phase(phase))

    async def _ask(
        self,
        interaction_type: InteractionType,
        request: InteractionRequest,
        call: ToolCall | None,
        expires_in: float | None,
    ) -> InteractionPart:
        return await self._writer.ask(
            interaction_type, request, None if call is None else call.place, expires_in
        )


Agent: TypeAlias = Callable[[Turn], Awaitable[None]]
"""An agent: runs one turn and returns, or raises."""


class InProcessAgents:
    """Runs every turn with one function, each in a task of its own."""

    def __init__(self, agent: Agent | None) -> None:
        """Run turns with ``agent``; without one, every turn fails with ``no_agent``."""
        self._agent = agent
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, state: LoadedState, turn: TurnEntity, prompt: Message) -> asyncio.Task[None]:
        """Begin to run a turn."""
        task = asyncio.create_task(self._run(TurnWriter(state, turn.turn_id), prompt), name=turn.turn_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finished(self, seconds: float | None) -> None:
        """Wait, up to ``seconds``, until no agent runs."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def close(self) -> None:
        """Cancel the agents that still run, and wait for those that heed it."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)

    async def _run(self, writer: TurnWriter, prompt: Message) -> None:
        structlog.contextvars.bind_contextvars(session_id=writer.session_id, turn_id=writer.turn_id)
        failed = await self._outcome(Turn(writer, prompt), writer)
        with contextlib.suppress(TurnEnded, Unavailable):
            try:
                await _end(writer, failed)
            except MidstreamError as error:
                log.warning("turn_end_refused", code=error.code, error=error.message)
                await _end(writer, TurnFailed("agent_failed", "The agent's failure could not be written."))

    async def _outcome(self, turn: Turn, writer: TurnWriter) -> TurnFailed | None:
        """Run the agent; return how it failed, if it did. What it raises never gets further."""
        if self._agent is None:
            return TurnFailed("no_agent", "No agent serves this session.")
        task = asyncio.current_task()
        try:
            running: object = self._agent(turn)
            if not inspect.isawaitable(running):
                log.error("agent_is_not_async", agent=repr(self._agent))
                return TurnFailed("agent_failed", "The agent is not async: `async def agent(turn)`.")
            await running
        except TurnEnded:
            return None
        except asyncio.CancelledError:
            if not writer.is_running():
                raise
            # the agent was not stopped: something that it awaited was cancelled
            return TurnFailed("agent_failed", "The agent cancelled itself.")
        except BaseException as error:  # sys.exit too: nothing an agent does ends the server
            if isinstance(error, KeyboardInterrupt):
                raise  # meant for the process
            if isinstance(error, GeneratorExit) and _current_task() is not task:
                raise  # this coroutine is being closed, and may await nothing any more
            return _failure(error)
        return None


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None


def _failure(error: BaseException) -> TurnFailed:
    """Return what becomes of the turn of an agent that raised this."""
    if isinstance(error, TurnFailed):
        return error
    if isinstance(error, MidstreamError):
        log.warning("agent_refused", code=error.code, error=error.message)
        return TurnFailed(error.code, error.message)
    log.error("agent_failed", exc_info=error)
    what = f"The agent failed with {type(error).__name__}. The server's log has the cause."
    return TurnFailed("agent_failed", what)


async def _end(writer: TurnWriter, failed: TurnFailed | None) -> None:
    if failed is None:
        await writer.end("completed", None, recoverable=False)
    else:
        await writer.end("failed", failed.failure, recoverable=failed.recoverable)
