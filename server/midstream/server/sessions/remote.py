"""A turn that a worker runs: waiting for a taker, held, or lost with its lease running (SPEC 14)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import structlog
from msgspec import UNSET

from midstream.agents.errors import TurnEnded
from midstream.protocol.agent_calls import AttachResult
from midstream.protocol.agents import NOTHING, WriteResult
from midstream.protocol.errors import ErrorInfo, MidstreamError, Refused, Unavailable
from midstream.protocol.frames import Answered, InputsWaiting
from midstream.protocol.model import InteractionPart, TurnFailure
from midstream.server.sessions import turns
from midstream.server.sessions.attachment import Attachment
from midstream.server.sessions.writer import TurnWriter
from midstream.server.storage.records import AttachmentRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.agent_calls import AttachParams
    from midstream.protocol.agents import Write
    from midstream.protocol.model import Message
    from midstream.server.sessions.commands import WorkerLink
    from midstream.server.sessions.offers import RemoteAgents
    from midstream.server.sessions.projection import FinishedDraft
    from midstream.server.sessions.state import LoadedState

log = structlog.get_logger("midstream.agent")
OUTCOMES = 256
"""Results and refusals of a turn that are kept for a worker that did not hear of them. It waits for what has
a result, so more than a handful are never wanted."""
NO_AGENT = TurnFailure(code="no_agent", message="No agent took the turn in time.")
AGENT_LOST = TurnFailure(code="agent_lost", message="The agent was lost, and did not come back in time.")


class RemoteRun:
    """One turn's run by workers; a :class:`~midstream.server.sessions.services.Run`.

    At most one attachment holds it. Everything is decided in the session's loop, or between two
    awaits of the event loop.
    """

    def __init__(
        self,
        agents: RemoteAgents,
        state: LoadedState,
        turn_id: str,
        prompt: Message | None,
        kept: AttachmentRow | None,
    ) -> None:
        """Run a turn, from its beginning or from where an earlier process kept it."""
        self.turn_id = turn_id
        self.session_id = state.loop.session_id
        self.generation = kept.generation if kept else 0
        self.applied = kept.n if kept else 0
        """The last write that was taken."""
        self.durable = self.applied
        """The last write that is on disk."""
        self.holder = kept.worker if kept else ""
        """The name of the worker that attached last."""
        self.instance = ""
        """The life of its process, as far as this process knows."""
        self.given_up = False
        """Whether the holder gave it up to others."""
        self.outcomes: deque[tuple[int, WriteResult | ErrorInfo]] = deque(maxlen=OUTCOMES)
        self.attachment: Attachment | None = None
        self._agents = agents
        self._state = state
        self._prompt = prompt
        self._writer = TurnWriter(state, turn_id)
        self._over = False
        self._timer: asyncio.TimerHandle | None = None
        self._inputs = 0

    @property
    def is_begun(self) -> bool:
        """Whether an agent has written anything."""
        return self.applied > 0

    # What the session calls

    def mark(self) -> AttachmentRow:
        """Return how far the agent's writes have come."""
        return AttachmentRow(
            turn_id=self.turn_id, generation=self.generation, n=self.applied, worker=self.holder
        )

    def committed(self, mark: AttachmentRow | None, finished: FinishedDraft) -> None:
        """Tell the worker what it waits for."""
        if mark is not None:
            self.durable = max(self.durable, mark.n)
        attachment = self.attachment
        if attachment is None:
            return
        for part in self._answered(finished):
            attachment.send(Answered(attachment.channel, part))
        inputs = turns.absorbable(finished.queue)
        if inputs != self._inputs:
            self._inputs = inputs
            attachment.send(InputsWaiting(attachment.channel, inputs))
        attachment.acknowledge()

    def ending(self) -> None:
        """Nothing: a worker learns by its attachment's end that its turn has ended."""

    def over(self, code: str) -> None:
        """Let the worker go: the turn has ended, or this process does not run it any more."""
        self._over = True
        self._disarm()
        self._agents.remove(self)
        attachment, self.attachment = self.attachment, None
        if attachment is not None:
            attachment.detach(code)

    async def attach(self, link: WorkerLink, params: AttachParams) -> AttachResult:
        """Give the turn to a worker.

        Raises:
            Refused: another worker has it, or may still come back for it.

        """
        given = None if params.generation is UNSET else params.generation
        if given is not None and given < self.generation:
            raise Refused("fenced", "Another worker holds the turn since. Stop its agent here.")
        if not self._may_attach(link, given):
            raise Refused("turn_taken", "Another worker holds the turn, or may still come back for it.")
        mark = AttachmentRow(
            turn_id=self.turn_id, generation=self.generation + 1, n=self.durable, worker=link.name
        )
        await self._state.keep(mark)
        return await self._attached(self._hold(link, mark), params.waiting)

    # What an attachment calls

    def is_running(self) -> bool:
        """Say whether the turn runs, here."""
        return not self._over and self._writer.is_running()

    def append(self, part_id: str, text: str) -> bool:
        """Append text; return whether the worker is to be held back until it was published."""
        return self._writer.append_now(part_id, text)

    async def published(self) -> None:
        """Wait until the text that waits was published."""
        await self._state.published()

    async def write(self, attachment: Attachment, n: int, write: Write) -> WriteResult:
        """Carry out a write in the session's loop. Raises TurnEnded where another holds the turn."""

        async def work(state: LoadedState) -> WriteResult:
            if self.attachment is not attachment:
                raise TurnEnded
            self.applied = n
            try:
                result = await self._writer.carry_out(state, write)
            except Unavailable:
                raise
            except MidstreamError as error:
                self.outcomes.append((n, error.info()))
                raise
            if result != NOTHING:
                self.outcomes.append((n, result))
            return result

        return await self._state.loop.perform(work)

    def lost(self, attachment: Attachment, *, given_up: bool = False) -> None:
        """Learn that an attachment has ended; if it held the turn, the lease begins to run."""
        if self.attachment is not attachment:
            return
        self.attachment = None
        if self._over:
            return
        self.given_up = given_up
        log.info("agent_detached", session_id=self.session_id, turn_id=self.turn_id, worker=self.holder)
        self.wait(self._agents.lease_seconds, AGENT_LOST)
        self._agents.offer(self)

    def wait(self, seconds: float, failure: TurnFailure) -> None:
        """Wait so long for a worker; then the turn fails."""
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._give_over, failure)

    # The rest

    def _may_attach(self, link: WorkerLink, generation: int | None) -> bool:
        if self.generation in (0, generation):
            return True
        return self.attachment is None and self._agents.may_take(self, link)

    def _hold(self, link: WorkerLink, mark: AttachmentRow) -> Attachment:
        before, self.attachment = self.attachment, None
        if before is not None:
            before.detach("fenced")
        self._disarm()
        self.generation = mark.generation
        self.holder, self.instance, self.given_up = link.name, link.instance, False
        attachment = self.attachment = Attachment(
            self, link, next_n=self.applied + 1, window_bytes=self._agents.window_bytes
        )
        self._inputs = turns.absorbable(self._state.projection.queue)
        self._agents.held(self)
        log.info("agent_attached", session_id=self.session_id, turn_id=self.turn_id, worker=link.name)
        return attachment

    async def _attached(self, attachment: Attachment, waiting: Iterable[str]) -> AttachResult:
        state = self._state
        turn = state.projection.turn
        if turn is None:
            raise TurnEnded
        if self._prompt is None:
            self._prompt = await state.reading.prompt(self.turn_id)
        messages = [
            message.live.message()
            for _, message in sorted(state.projection.open.items())
            if message.head.turn_id == self.turn_id
        ]
        asked = {
            part.interaction_id: part
            for message in messages
            for part in message.parts
            if isinstance(part, InteractionPart)
        }
        for interaction_id in waiting:
            if interaction_id not in asked:
                part = await state.reading.closed_interaction(interaction_id)
                if part is not None:
                    asked[interaction_id] = part
        results = [(n, one) for n, one in self.outcomes if isinstance(one, WriteResult)]
        return AttachResult(
            channel=attachment.channel,
            generation=self.generation,
            next_n=self.applied + 1,
            durable_n=self.durable,
            lease_ms=round(self._agents.lease_seconds * 1000),
            window_bytes=self._agents.window_bytes,
            turn=turn,
            prompt=self._prompt,
            messages=messages,
            interactions=list(asked.values()),
            inputs=self._inputs,
            results=results,
            refused=[(n, one) for n, one in self.outcomes if isinstance(one, ErrorInfo)],
        )

    def _answered(self, finished: FinishedDraft) -> list[InteractionPart]:
        return [
            part
            for message in finished.messages
            if message.head.turn_id == self.turn_id
            for part in message.parts.values()
            if isinstance(part, InteractionPart) and part.status != "pending"
        ]

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_over(self, failure: TurnFailure) -> None:
        self._timer = None
        self._agents.fail(self, self._fail(failure))

    async def _fail(self, failure: TurnFailure) -> None:
        """End the turn, unless a worker came meanwhile: the loop decides."""

        async def work(state: LoadedState) -> None:
            if self.attachment is not None or not self.is_running():
                return
            draft = await state.draft()
            turns.end_turn(draft, "failed", reason="runtime_interrupted", failure=failure, recoverable=True)
            await state.commit(draft)

        try:
            await self._state.loop.perform(work)
        except MidstreamError as error:
            log.warning("turn_end_refused", code=error.code, error=error.message)
