"""Runs an agent's function for one turn, whatever it does, and says how the turn ends (SPEC 8)."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

import structlog

from midstream.agents.errors import TurnEnded, TurnFailed
from midstream.protocol.agents import EndTurn
from midstream.protocol.errors import MidstreamError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.agents.turn import Agent, Turn
    from midstream.agents.writer import Writer

log = structlog.get_logger("midstream.agent")


async def outcome(agent: Agent, turn: Turn, *, is_running: Callable[[], bool]) -> EndTurn | None:
    """Run an agent, and return how its turn ends; None where it has ended already.

    What the agent raises never gets further, but for what is meant for the process.
    """
    task = asyncio.current_task()
    try:
        running: object = agent(turn)
        if not inspect.isawaitable(running):
            log.error("agent_is_not_async", agent=repr(agent))
            return failed(TurnFailed("agent_failed", "The agent is not async: `async def agent(turn)`."))
        await running
    except TurnEnded:
        return None
    except asyncio.CancelledError:
        if not is_running():
            raise
        # the agent was not stopped: something that it awaited was cancelled
        return failed(TurnFailed("agent_failed", "The agent cancelled itself."))
    except BaseException as error:  # sys.exit too: nothing an agent does ends its process
        if isinstance(error, KeyboardInterrupt):
            raise  # meant for the process
        if isinstance(error, GeneratorExit) and _current_task() is not task:
            raise  # this coroutine is being closed, and may await nothing any more
        return failed(_failure(error))
    return EndTurn(state="completed")


async def finish(writer: Writer, end: EndTurn) -> None:
    """Write how a turn ends, or, where that is refused, that it could not be written.

    Raises:
        TurnEnded: it has ended already.
        Unavailable: the session is not there now; it is not known whether it ended.

    """
    try:
        await writer.write(end)
    except Unavailable:
        raise
    except MidstreamError as error:
        log.warning("turn_end_refused", code=error.code, error=error.message)
        await writer.write(UNWRITABLE)


def failed(error: TurnFailed) -> EndTurn:
    """Return the end of a turn that failed so."""
    return EndTurn(state="failed", failure=error.failure, recoverable=error.recoverable)


UNWRITABLE = failed(TurnFailed("agent_failed", "The agent's failure could not be written."))
"""The end of a turn whose own end was refused."""


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
    what = f"The agent failed with {type(error).__name__}. The log of its process has the cause."
    return TurnFailed("agent_failed", what)
