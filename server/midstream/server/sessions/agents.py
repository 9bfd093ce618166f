"""Agents in the server's process: each turn is a task that runs the one function (SPEC 8)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from midstream.agents.errors import TurnEnded, TurnFailed
from midstream.agents.run import failed, finish, outcome
from midstream.agents.turn import Agent, Turn
from midstream.protocol.errors import Unavailable
from midstream.server.sessions.commands import not_remote
from midstream.server.sessions.writer import TurnWriter
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.protocol.agent_calls import AttachParams, AttachResult
    from midstream.protocol.agents import Write
    from midstream.protocol.frames import DetachCode
    from midstream.protocol.model import Message
    from midstream.protocol.model import Turn as TurnEntity
    from midstream.server.sessions.commands import WorkerLink
    from midstream.server.sessions.projection import FinishedDraft
    from midstream.server.sessions.state import LoadedState
    from midstream.server.storage.records import AttachmentRow


class _TaskRun:
    """A turn that a task of this process runs; a :class:`~midstream.server.sessions.services.Run`."""

    def __init__(self, task: asyncio.Task[None], writer: TurnWriter) -> None:
        self._task: asyncio.Task[None] | None = task
        self._writer = writer

    def mark(self) -> AttachmentRow | None:
        return None

    def stored(self, mark: AttachmentRow) -> None:
        pass

    def committed(self, mark: AttachmentRow | None, finished: FinishedDraft) -> None:
        del mark
        self._writer.settle(finished)

    def ending(self) -> None:
        self._task = None

    def watch(self, wrote: Callable[[Write], None]) -> None:
        self._writer.wrote = wrote

    def over(self, code: DetachCode) -> None:
        del code
        self._writer.over()
        if self._task is not None:
            self._task.cancel()

    async def attach(self, link: WorkerLink, params: AttachParams) -> AttachResult:
        del link, params
        raise not_remote()


class InProcessAgents:
    """Runs every turn with one function, each in a task of its own."""

    outlive_server = False

    def __init__(self, agent: Agent | None) -> None:
        """Run turns with ``agent``; without one, every turn fails with ``no_agent``."""
        self._agent = agent
        self._tasks: set[asyncio.Task[None]] = set()

    def start(
        self, state: LoadedState, turn: TurnEntity, prompt: Message | None, kept: AttachmentRow | None
    ) -> _TaskRun:
        """Begin to run a turn."""
        del kept
        if prompt is None:
            message = f"turn {turn.turn_id} was begun by another process"
            raise RuntimeError(message)
        writer = TurnWriter(state, turn.turn_id)
        task = asyncio.create_task(self._run(writer, prompt), name=turn.turn_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return _TaskRun(task, writer)

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
        if self._agent is None:
            end = failed(TurnFailed("no_agent", "No agent serves this session."))
        else:
            turn = Turn(writer, rows.copied(prompt))
            ran = await outcome(self._agent, turn, is_running=writer.is_running)
            if ran is None:
                return
            end = ran
        with contextlib.suppress(TurnEnded, Unavailable):
            await finish(writer, end)
