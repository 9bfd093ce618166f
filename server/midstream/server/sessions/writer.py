"""How an agent's writes enter its session: each as work of the loop, refused once the turn has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from midstream.agents.errors import TurnEnded
from midstream.protocol.agents import EndTurn, WriteResult, is_stored
from midstream.server.sessions.agent_writes import Places, apply
from midstream.server.sessions.state import LoadedState
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from midstream.agents.resumption import Resumption
    from midstream.protocol.agents import Ask, Write
    from midstream.protocol.model import InteractionPart, Message, Turn

_YIELD_EVERY = 64
"""Appends after which a producer lets others run, though nothing makes it wait."""


class TurnWriter:
    """The one way in which a turn is written, whoever runs its agent (:mod:`midstream.agents.writer`).

    Every method raises TurnEnded once the turn has ended.
    """

    def __init__(self, state: LoadedState, turn_id: str) -> None:
        """Write to the turn ``turn_id`` of a loaded session."""
        self._state = state
        self._places = Places(state.projection, turn_id)
        self._appends = 0
        self.turn_id = turn_id
        self.session_id = state.loop.session_id
        self.resumption: Resumption | None = None

    def new_id(self, kind: str) -> str:
        """Return a new id."""
        return self._state.new_id(kind)

    def is_running(self) -> bool:
        """Say whether the turn still runs, and this agent is the one that runs it."""
        return self._state.runs(self.turn_id)

    async def context(self, limit: int | None) -> list[Message]:
        """Return the session's messages, between two changes."""

        async def work(state: LoadedState) -> list[Message]:
            self._running(state)
            await state.flush()
            return await state.reading.context(limit)

        return await self._state.loop.perform(work)

    async def write(self, write: Write) -> WriteResult:
        """Make a write, and return when it is published, and on disk where it is one that is stored."""
        return await self._state.loop.perform(lambda state: self.carry_out(state, write))

    async def carry_out(self, state: LoadedState, write: Write) -> WriteResult:
        """Make a write, inside the loop."""
        draft = await state.draft()
        result, sequences = apply(draft, self._running(state), write, self._places)
        if isinstance(write, EndTurn):
            state.agent_finished()
        if not draft.is_empty():
            await (state.commit(draft) if is_stored(write) else state.publish(draft))
        if draft.added is not None:
            self._places.put(draft.added)
        if not sequences:
            return result
        version = state.versions.published
        messages = [rows.copied(draft.whole_message(sequence, version)) for sequence in sequences]
        return WriteResult(messages=messages)

    def append_now(self, part_id: str, text: str) -> bool:
        """Append text to an open part; return whether the producer should wait until it was published."""
        return self._state.append(self.turn_id, self._places.of(part_id), text)

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
            outcome = state.answer_of(question.interaction_id)
            try:
                await self.carry_out(state, question)
            except BaseException:
                state.forget_answer(question.interaction_id)
                raise
            return outcome

        return await (await self._state.loop.perform(work))

    async def outcome(self, interaction_id: str) -> InteractionPart:
        """Return an interaction that is pending, when it has an outcome."""
        return await self._state.answer_of(interaction_id)

    def _running(self, state: LoadedState) -> Turn:
        running = state.projection.turn
        if running is None or running.turn_id != self.turn_id:
            raise TurnEnded
        return running
