"""How an agent's writes enter its session: each as work of the loop, refused once the turn has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET

from midstream.agents.errors import TurnEnded
from midstream.protocol.agents import Compact, EndText, EndTurn, MoveTool, WriteResult, is_stored
from midstream.protocol.model import InteractionPart
from midstream.server.sessions import summaries
from midstream.server.sessions.agent_writes import Places, apply
from midstream.server.sessions.state import LoadedState
from midstream.server.sessions.ticks import GrowingPart
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from midstream.agents.resumption import Resumption
    from midstream.protocol.agents import Ask, Context, Write
    from midstream.protocol.model import Turn
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import FinishedDraft

_YIELD_EVERY = 64
"""Appends after which a producer lets others run, though nothing makes it wait."""

Decided: TypeAlias = "Callable[[Draft, WriteResult, list[int]], None]"
"""Is told the draft, the result of a write, and the sequences of the messages that belong to the result."""


class TurnWriter:
    """The one way in which a turn is written, whoever runs its agent (:mod:`midstream.agents.writer`).

    Every method raises TurnEnded once the turn has ended.
    """

    def __init__(self, state: LoadedState, turn_id: str) -> None:
        """Write to the turn ``turn_id`` of a loaded session."""
        self._state = state
        self._places = Places(state.projection, turn_id)
        self._growing: dict[str, GrowingPart] = {}
        self._appends = 0
        self._answers: dict[str, asyncio.Future[InteractionPart]] = {}
        self.turn_id = turn_id
        self.session_id = state.loop.session_id
        self.resumption: Resumption | None = None
        self.wrote: Callable[[Write], None] | None = None
        """Is told of each write that was carried out."""

    def new_id(self, kind: str) -> str:
        """Return a new id."""
        return self._state.new_id(kind)

    def is_running(self) -> bool:
        """Say whether the turn still runs, and this agent is the one that runs it."""
        return self._state.runs(self.turn_id)

    async def context(self, limit: int | None) -> Context:
        """Return the session's last summary and the messages behind it, between two changes."""

        async def work(state: LoadedState) -> Context:
            self._running(state)
            await state.flush()
            return await state.reading.context(limit)

        return await self._state.loop.perform(work)

    async def write(self, write: Write) -> WriteResult:
        """Make a write, and return when it is published, and on disk where it is one that is stored."""
        return await self._state.loop.perform(lambda state: self.carry_out(state, write))

    async def carry_out(
        self, state: LoadedState, write: Write, *, decided: Decided | None = None
    ) -> WriteResult:
        """Make a write, inside the loop. ``decided`` is told what comes of it, before it is stored."""
        known = None
        if isinstance(write, Compact):
            known = await state.reading.summary_through(write.through_sequence)
            known = summaries.repeated(known, write.summary)
        draft = await state.draft()
        running, result = self._running(state), WriteResult(summary=known or UNSET)
        sequences: list[int] = []
        if known is None:
            result, sequences = apply(draft, running, write, self._places)
        if decided is not None:
            decided(draft, result, sequences)
        if isinstance(write, EndTurn):
            state.agent_finished()
        if not draft.is_empty():
            await (state.commit(draft) if is_stored(write) else state.publish(draft))
        if self.wrote is not None:
            self.wrote(write)
        if draft.added is not None:
            self._places.put(draft.added)
        if isinstance(write, (EndText, MoveTool)):
            self._growing.pop(write.part_id, None)
        if not sequences:
            return result
        version = state.versions.published
        messages = [rows.copied(draft.whole_message(sequence, version)) for sequence in sequences]
        return WriteResult(messages=messages)

    def append_now(self, part_id: str, text: str) -> bool:
        """Append text to an open part; return whether the producer should wait until it was published."""
        part = self._growing.get(part_id)
        if part is not None:
            return self._state.append(self.turn_id, part, text)
        part = GrowingPart(self._places.of(part_id))
        is_full = self._state.append(self.turn_id, part, text)
        self._growing[part_id] = part
        return is_full

    async def append(self, part_id: str, text: str) -> None:
        """Append text to an open part; waits only when too much text waits, or to let others run."""
        is_full = self.append_now(part_id, text)
        self._appends += 1
        if is_full:
            await self._state.published()
        elif self._appends % _YIELD_EVERY == 0:
            await asyncio.sleep(0)

    async def ask(self, question: Ask) -> InteractionPart:
        """Commit a pending interaction, and wait for its outcome."""

        async def work(state: LoadedState) -> Awaitable[InteractionPart]:
            outcome = self._outcome_of(question.interaction_id)
            try:
                await self.carry_out(state, question)
            except BaseException:
                del self._answers[question.interaction_id]
                raise
            return outcome

        return await (await self._state.loop.perform(work))

    async def outcome(self, interaction_id: str) -> InteractionPart:
        """Return an interaction that is pending, when it has an outcome."""
        return await self._outcome_of(interaction_id)

    def settle(self, finished: FinishedDraft) -> None:
        """Give the outcomes of questions to the agent that waits for them."""
        turn = finished.turn
        if not self._answers or turn is None or turn.turn_id != self.turn_id:
            return  # of a turn that has ended nobody waits any more
        for message in finished.messages:
            for part in message.parts.values():
                if isinstance(part, InteractionPart) and part.status != "pending":
                    future = self._answers.pop(part.interaction_id, None)
                    if future is not None and not future.done():
                        future.set_result(part)

    def _outcome_of(self, interaction_id: str) -> asyncio.Future[InteractionPart]:
        future = self._answers.get(interaction_id)
        if future is None:
            future = self._answers[interaction_id] = asyncio.get_running_loop().create_future()
        return future

    def over(self) -> None:
        """Give up every question: nobody waits for its outcome any more."""
        answers, self._answers = self._answers, {}
        for future in answers.values():
            future.cancel()

    def _running(self, state: LoadedState) -> Turn:
        running = state.projection.turn
        if running is None or running.turn_id != self.turn_id:
            raise TurnEnded
        return running
