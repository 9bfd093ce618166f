"""A turn that a worker runs: waiting for a taker, held, or lost with its lease running (SPEC 14)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from msgspec import UNSET

from midstream.agents.errors import TurnEnded
from midstream.protocol.agent_calls import AttachResult
from midstream.protocol.agents import WriteResult, is_stored
from midstream.protocol.errors import MidstreamError, Overloaded, Refused, Unavailable
from midstream.protocol.frames import Answered, InputsWaiting
from midstream.protocol.model import InteractionPart, TurnFailure
from midstream.server.sessions import turns
from midstream.server.sessions.access import SessionRef
from midstream.server.sessions.attachment import Attachment
from midstream.server.sessions.outcomes import Outcome, Outcomes
from midstream.server.sessions.writer import TurnWriter
from midstream.server.storage.records import AttachmentRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from midstream.protocol.agent_calls import AttachParams
    from midstream.protocol.agents import Write
    from midstream.protocol.frames import DetachCode
    from midstream.protocol.model import Message
    from midstream.server.sessions.commands import WorkerLink
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.offers import RemoteAgents
    from midstream.server.sessions.projection import FinishedDraft
    from midstream.server.sessions.state import LoadedState

log = structlog.get_logger("midstream.agent")
NO_AGENT = TurnFailure(code="no_agent", message="No agent took the turn in time.")
AGENT_LOST = TurnFailure(code="agent_lost", message="The agent was lost, and did not come back in time.")
AGENT_CRASHES = TurnFailure(
    code="agent_lost", message="One process after another was lost with the turn before it wrote anything."
)
MOST_CRASHES = 8
"""Processes in a row that may be lost like that: chance has done that much, and a turn that kills its process
would do it for ever."""


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
        self.ref = SessionRef(self.session_id, state.loop.owner)
        self.generation = kept.generation if kept else 0
        self.applied = kept.n if kept else 0
        """The last write that was taken."""
        self.durable = self.applied
        """The last write that is on disk."""
        self.holder = kept.worker if kept else ""
        """The name of the worker that attached last."""
        self.instance = kept.instance if kept else ""
        """The life of its process."""
        self.given_up = False
        """Whether the holder gave it up to others."""
        self.outcomes = Outcomes(kept.outcomes if kept else b"", window_bytes=agents.window_bytes)
        self.attachment: Attachment | None = None
        self._agents = agents
        self._state = state
        self._prompt = prompt
        self._writer = TurnWriter(state, turn_id)
        self._over = False
        self._timer: asyncio.TimerHandle | None = None
        self._inputs = 0
        self._crashes = 0
        """Processes in a row that were lost soon, and had written nothing."""
        self._is_new_process = False
        self._held_since = 0.0
        self._held_from = 0

    @property
    def is_begun(self) -> bool:
        """Whether an agent has written anything."""
        return self.applied > 0

    # What the session calls

    def mark(self) -> AttachmentRow:
        """Return how far the agent's writes have come."""
        return AttachmentRow(
            turn_id=self.turn_id,
            generation=self.generation,
            n=self.applied,
            worker=self.holder,
            instance=self.instance,
            outcomes=self.outcomes.encoded(),
        )

    def stored(self, mark: AttachmentRow) -> None:
        """Note that all is on disk up to a mark."""
        self.durable = max(self.durable, mark.n)

    def committed(self, mark: AttachmentRow | None, finished: FinishedDraft) -> None:
        """Tell the worker what it waits for."""
        if mark is not None:
            self.stored(mark)
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

    def watch(self, wrote: Callable[[Write], None]) -> None:
        """Tell somebody of each write that was carried out."""
        self._writer.wrote = wrote

    def over(self, code: DetachCode) -> None:
        """Let the worker go: the turn has ended, or this process does not run it any more."""
        self._over = True
        self._disarm()
        attachment, self.attachment = self.attachment, None
        if attachment is not None:
            attachment.detach(code)
        # only now: a worker that hears of the next turn first may think that it has no room
        self._agents.remove(self)

    async def attach(self, link: WorkerLink, params: AttachParams) -> AttachResult:
        """Give the turn to a worker.

        Raises:
            Refused: another worker has it, or may still come back for it.
            Unavailable: the worker is gone, and is not told.
            Overloaded: the worker does not read what it is sent.

        """
        if link.is_gone:
            raise Unavailable("The worker's connection is gone. Attach again on a new one.")
        if link.is_behind:
            raise _overloaded()
        self._check_holder(link, None if params.generation is UNSET else params.generation)
        before, self.attachment = self.attachment, None
        if before is not None:
            before.detach("fenced")
        self._disarm()
        # what was taken is stored too: a new holder could not send again what the one before had written
        await self._state.keep(
            {"generation": self.generation + 1, "worker": link.name, "instance": link.instance}
        )
        attachment = self._hold(link)
        if link.is_gone:  # since the commit began: nobody else would end it
            attachment.lost()
        answer = await self._attached(attachment, params.waiting)
        if link.is_behind:  # by the answers of other sessions: this one is as long as the messages in it
            attachment.detach("overloaded")
            raise _overloaded()
        return answer

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
                result = await self._writer.carry_out(state, write, decided=decided)
            except Unavailable:
                raise
            except MidstreamError as error:
                self.outcomes.add(Outcome(n, error=error.info()))
                await self._keep_answer(n, write)
                raise
            await self._keep_answer(n, write)
            return result

        def decided(draft: Draft, result: WriteResult, sequences: list[int]) -> None:
            if sequences:
                self.outcomes.add(Outcome(n, sequences[0], len(sequences)))
            elif result.undone is not UNSET:
                self.outcomes.add(Outcome(n, undone=result.undone))
            elif result.summary is not UNSET:
                self.outcomes.add(Outcome(n, through=result.summary.through_sequence))
            draft.mark = self.mark()

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
        self._crashes = self._crashes + 1 if self._looks_crashed() else 0
        if self._crashes >= MOST_CRASHES:
            # it would take one process after another down, and with each all its other turns
            self.wait(0, AGENT_CRASHES)
            return
        self.wait(self._agents.lease_seconds, AGENT_LOST)
        self._agents.offer(self)

    def _looks_crashed(self) -> bool:
        """Say whether a process was lost soon after it got the turn, and before it wrote anything."""
        age = asyncio.get_running_loop().time() - self._held_since
        fruitless = self._is_new_process and self.applied == self._held_from and not self.given_up
        return fruitless and age < self._agents.lease_seconds

    def wait(self, seconds: float, failure: TurnFailure) -> None:
        """Wait so long for a worker; then the turn fails."""
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._give_over, failure)

    # The rest

    async def _keep_answer(self, n: int, write: Write) -> None:
        """Store the number of a write whose answer must stay true, though it changed nothing."""
        if is_stored(write) and self.durable < n and self.is_running():
            await self._state.keep()

    def _check_holder(self, link: WorkerLink, generation: int | None) -> None:
        if self.generation == 0 or (link.name, link.instance) == (self.holder, self.instance):
            return
        if generation is not None and generation != self.generation:
            raise Refused("fenced", "Another worker has attached to the turn since. Stop its agent here.")
        if self.attachment is not None or not self._agents.may_take(self, link):
            raise Refused("turn_taken", "Another worker holds the turn, or may still come back for it.")

    def _hold(self, link: WorkerLink) -> Attachment:
        self.generation += 1
        self._is_new_process = link.instance != self.instance
        self._held_since, self._held_from = asyncio.get_running_loop().time(), self.applied
        self.holder, self.instance, self.given_up = link.name, link.instance, False
        attachment = self.attachment = Attachment(
            self,
            link,
            next_n=self.applied + 1,
            window_bytes=self._agents.window_bytes,
            most_handles=self._state.limits.parts,
        )
        self._inputs = turns.absorbable(self._state.projection.queue)
        self._agents.held(self)
        log.info("agent_attached", session_id=self.session_id, turn_id=self.turn_id, worker=link.name)
        return attachment

    async def _attached(self, attachment: Attachment, waiting: Iterable[str]) -> AttachResult:
        state = self._state
        turn = state.projection.turn
        if turn is None:
            raise Refused("turn_ended", f"Turn {self.turn_id!r} does not run. Stop its agent.")
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
        newest = self.outcomes.newest()
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
            results=[(one.n, await self._result(one)) for one in newest if one.error is None],
            refused=[(one.n, one.error) for one in newest if one.error is not None],
        )

    async def _result(self, outcome: Outcome) -> WriteResult:
        if outcome.undone is not None:
            return WriteResult(undone=outcome.undone)
        if outcome.through:
            summary = await self._state.reading.summary_through(outcome.through)
            return WriteResult(summary=UNSET if summary is None else summary)
        return WriteResult(messages=await self._state.reading.finished_messages(outcome.first, outcome.count))

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
            # a timer that runs is that of a worker that came, and was lost, since this was decided
            if self.attachment is not None or self._timer is not None or not self.is_running():
                return
            draft = await state.draft()
            turns.end_turn(draft, "failed", reason="runtime_interrupted", failure=failure, recoverable=True)
            await state.commit(draft)

        try:
            await self._state.loop.perform(work)
        except MidstreamError as error:
            log.warning("turn_end_refused", code=error.code, error=error.message)


def _overloaded() -> Overloaded:
    return Overloaded("More waits to be sent than this worker reads. Read, then attach again.")
