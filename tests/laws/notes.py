"""Internal messages of an agent: no public method writes them yet, though protocol and server know them.

Only such a change shows others nothing at all, and so is a ``skip``: a new message changes the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from midstream.protocol.model import TextPart
from midstream.server.sessions.ticks import GrowingPart
from midstream.server.sessions.writer import TurnWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.server import Turn
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Place
    from midstream.server.sessions.state import LoadedState

T = TypeVar("T")


class Note:
    """An internal agent message with one text, which streams."""

    def __init__(self, state: LoadedState, turn_id: str, place: Place) -> None:
        self._state = state
        self._turn_id = turn_id
        self._place = place
        self._part = GrowingPart(place)

    @classmethod
    async def begin(cls, turn: Turn) -> Note:
        """Open it in a running turn."""
        writer = vars(turn)["_writer"]
        assert isinstance(writer, TurnWriter)
        state: LoadedState = vars(writer)["_state"]

        def fill(draft: Draft) -> Place:
            sequence = draft.start_message("agent", visibility="internal", turn_id=turn.turn_id)
            return draft.place_of(sequence, draft.add_part(sequence, TextPart(text="", state="streaming")))

        return cls(state, turn.turn_id, await _commit(state, fill))

    async def append(self, text: str) -> None:
        """Append to the text."""
        self._state.append(self._turn_id, self._part, text)

    async def done(self) -> None:
        """End the text, and the message."""
        sequence = self._place.message

        def fill(draft: Draft) -> None:
            part = draft.part_at(self._place)
            assert isinstance(part, TextPart)
            draft.put_part(sequence, structs.replace(part, state="done"))
            draft.close_message(sequence)

        await _commit(self._state, fill)


async def _commit(state: LoadedState, fill: Callable[[Draft], T]) -> T:
    async def work(loaded: LoadedState) -> T:
        draft = await loaded.draft()
        result = fill(draft)
        await loaded.commit(draft)
        return result

    return await state.loop.perform(work)
