"""One turn that a worker has: its attachment, its writer, and the task that runs the agent (SPEC 14)."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import cast

import structlog

from midstream.agents.errors import TurnEnded
from midstream.agents.resumption import Resumption
from midstream.agents.run import finish, outcome
from midstream.agents.turn import Agent, Turn
from midstream.protocol.agent_calls import AttachResult
from midstream.protocol.errors import Unavailable
from midstream.protocol.frames import Ack
from midstream.worker.attachment import AttachAgain, Attachment, AttachmentFrame, Event, Over
from midstream.worker.writer import RemoteWriter, Way

log = structlog.get_logger("midstream.worker")


class HeldTurn:
    """A turn from the offer that is taken up to the end of the agent's task.

    Attributes:
        attachment: what goes out and what came back.
        is_asking: whether ``agent.attach`` was called and is not answered yet.
        is_over: whether the agent may write no more.
        is_ended: whether the turn's end was written.
        attempts: how often it was attached to again since the server last took something.

    """

    def __init__(self, attachment: Attachment, way: Way, agent: Agent, new_id: Callable[[str], str]) -> None:
        """Begin without an attachment."""
        self.attachment = attachment
        self.is_asking = False
        self.is_over = False
        self.is_ended = False
        self.attempts = 0
        self._agent = agent
        self._way = way
        self._writer = RemoteWriter(attachment, way, new_id)
        self._task: asyncio.Task[None] | None = None

    @property
    def turn_id(self) -> str:
        """The turn's id."""
        return self.attachment.turn_id

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The agent's task; None until the turn was first attached to."""
        return self._task

    def attached(self, result: AttachResult) -> str | None:
        """Take the answer to ``agent.attach``; the first lets the agent begin. See :meth:`frame`."""
        again = self._take(self.attachment.attached(result))
        if self._task is None and not self.is_over:
            self._begin(result)
        return again

    def frame(self, frame: AttachmentFrame) -> str | None:
        """Take a frame of the attachment's channel; return why to attach again, where that is to be done."""
        if isinstance(frame, Ack):
            self.attempts = 0
        return self._take(self.attachment.frame(frame))

    def end(self, why: str) -> None:
        """Stop the agent: whatever it still writes does not enter."""
        if self.is_over:
            return
        self.is_over = True
        self.attachment.lost()
        self._writer.end()
        if self._task is not None and not self._task.done():
            log.info("agent_stopped", turn_id=self.turn_id, why=why)
            self._task.cancel()

    def _take(self, events: Iterable[Event]) -> str | None:
        again: str | None = None
        for event in events:
            if isinstance(event, Over):
                self.end(event.why)
            elif isinstance(event, AttachAgain):
                again = event.why
            else:
                self._writer.take(event)
        self._writer.look()
        return again

    def _begin(self, result: AttachResult) -> None:
        if result.next_n > 1:  # somebody has written before
            self._writer.resumption = Resumption(result.messages)
        turn = Turn(self._writer, result.prompt)
        self._task = asyncio.get_running_loop().create_task(self._run(turn), name=f"agent {self.turn_id}")

    async def _run(self, turn: Turn) -> None:
        structlog.contextvars.bind_contextvars(session_id=turn.session_id, turn_id=turn.turn_id)
        writer = self._writer
        end = await outcome(self._settled, turn, is_running=writer.is_running)
        if end is None:
            return
        with contextlib.suppress(TurnEnded, Unavailable):
            await finish(writer, end)
            self.is_ended = True

    def _settled(self, turn: Turn) -> Awaitable[None]:
        """Run the agent, and fail with what was refused of its last writes, as it would in the server."""
        running: object = self._agent(turn)
        # one that is not async is for `outcome` to complain of
        return self._settling(running) if inspect.isawaitable(running) else cast("Awaitable[None]", running)

    async def _settling(self, running: Awaitable[object]) -> None:
        await running
        await self._writer.settled()
