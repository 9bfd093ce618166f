"""How an agent's writes enter its session: each as work of the loop, refused once the turn has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import UNSET, UnsetType, structs

from midstream.protocol.model import Message, Part, TurnFailure, TurnState
from midstream.server.sessions import interactions, turns
from midstream.server.sessions.state import LoadedState, TurnEnded
from midstream.server.storage import rows

if TYPE_CHECKING:
    from midstream.protocol.model import InteractionPart, InteractionRequest, InteractionType, ToolPart, Turn
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Place

T = TypeVar("T")
_YIELD_EVERY = 64
"""Appends after which a producer lets others run, though nothing makes it wait."""


def absent(value: T | None) -> T | UnsetType:
    """Return None as a field that is not there."""
    return UNSET if value is None else value


class TurnWriter:
    """The one way in which an agent writes. Every method raises TurnEnded once the turn has ended."""

    def __init__(self, state: LoadedState, turn_id: str) -> None:
        """Write to the turn ``turn_id`` of a loaded session."""
        self._state = state
        self._appends = 0
        self.turn_id = turn_id
        self.session_id = state.loop.session_id

    def new_id(self, kind: str) -> str:
        """Return a new id."""
        return self._state.new_id(kind)

    async def read(self, job: Callable[[LoadedState], Awaitable[T]]) -> T:
        """Read the session between two changes."""

        async def work(state: LoadedState) -> T:
            self._running(state)
            await state.flush()
            return await job(state)

        return await self._state.loop.perform(work)

    async def show(self, fill: Callable[[Draft, Turn], T]) -> T:
        """Publish what ``fill`` writes; the step's end stores it."""
        return await self._write(fill, stored=False)

    async def store(self, fill: Callable[[Draft, Turn], T]) -> T:
        """Commit what ``fill`` writes, with all that was streamed before; then publish it."""
        return await self._write(fill, stored=True)

    async def _write(self, fill: Callable[[Draft, Turn], T], *, stored: bool) -> T:
        async def work(state: LoadedState) -> T:
            draft = await state.draft()
            result = fill(draft, self._running(state))
            if not draft.is_empty():
                await (state.commit(draft) if stored else state.publish(draft))
            return result

        return await self._state.loop.perform(work)

    def is_running(self) -> bool:
        """Say whether the turn still runs, and this agent is the one that runs it."""
        return self._state.runs(self.turn_id)

    def _running(self, state: LoadedState) -> Turn:
        running = state.projection.turn
        if running is None or running.turn_id != self.turn_id:
            raise TurnEnded
        return running

    # Parts

    async def add_to_turn(self, part: Part) -> Place:
        """Commit an action: in the turn's streaming message, or in a message of its own."""
        return await self.store(
            lambda draft, turn: draft.place_of(*turns.add_to_turn(draft, turn.turn_id, part))
        )

    async def append(self, place: Place, text: str) -> None:
        """Append text to an open part; waits only when too much text waits, or to let others run."""
        is_full = self._state.append(self.turn_id, place, text)
        self._appends += 1
        if is_full:
            await self._state.published()
        elif self._appends % _YIELD_EVERY == 0:
            await asyncio.sleep(0)

    # Messages, interactions, the end

    async def write_messages(self, fill: Callable[[Draft, Turn], list[int]]) -> list[Message]:
        """Commit user messages, and return them."""

        async def work(state: LoadedState) -> list[Message]:
            draft = await state.draft()
            sequences = fill(draft, self._running(state))
            if not sequences:
                return []
            await state.commit(draft)
            version = state.versions.published
            return [rows.copied(draft.whole_message(sequence, version)) for sequence in sequences]

        return await self._state.loop.perform(work)

    async def ask(
        self,
        interaction_type: InteractionType,
        request: InteractionRequest,
        tool: Place | None,
        expires_in: float | None,
    ) -> InteractionPart:
        """Commit a pending interaction, and wait for its outcome."""

        async def work(state: LoadedState) -> asyncio.Future[InteractionPart]:
            draft = await state.draft()
            self._running(state)
            timed = request
            if expires_in is not None:
                timed = structs.replace(request, expires_at=draft.now + round(expires_in * 1000))
            sequence = draft.streaming() or draft.start_message("agent", turn_id=self.turn_id)
            interaction_id = interactions.ask(
                draft,
                sequence,
                interaction_type=interaction_type,
                request=timed,
                tool=None if tool is None else (tool.message, cast("ToolPart", draft.part_at(tool))),
            )
            outcome = state.answer_of(interaction_id)
            await state.commit(draft)
            return outcome

        return await (await self._state.loop.perform(work))

    async def end(self, outcome: TurnState, failure: TurnFailure | None, *, recoverable: bool) -> None:
        """End the turn, and start the next where input waits."""

        async def work(state: LoadedState) -> None:
            draft = await state.draft()
            self._running(state)
            turns.end_turn(draft, outcome, reason="turn_stopped", failure=failure, recoverable=recoverable)
            state.agent_finished()
            await state.commit(draft)

        await self._state.loop.perform(work)
