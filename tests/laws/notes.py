"""Internal messages of an agent: no public method writes them yet, though protocol and server know them.

Only such a change shows others nothing at all, and so is a ``skip``: a new message changes the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from midstream.protocol.model import TextPart
from midstream.server.sessions.writer import TurnWriter

if TYPE_CHECKING:
    from midstream.protocol.model import Turn as TurnEntity
    from midstream.server import Turn
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Place


class Note:
    """An internal agent message with one text, which streams."""

    def __init__(self, writer: TurnWriter, place: Place) -> None:
        self._writer = writer
        self._place = place

    @classmethod
    async def begin(cls, turn: Turn) -> Note:
        """Open it in a running turn."""
        writer = vars(turn)["_writer"]
        assert isinstance(writer, TurnWriter)

        def fill(draft: Draft, running: TurnEntity) -> Place:
            sequence = draft.start_message("agent", visibility="internal", turn_id=running.turn_id)
            return draft.place_of(sequence, draft.add_part(sequence, TextPart(text="", state="streaming")))

        return cls(writer, await writer.store(fill))

    async def append(self, text: str) -> None:
        """Append to the text."""
        await self._writer.append(self._place, text)

    async def done(self) -> None:
        """End the text, and the message."""
        sequence = self._place.message

        def fill(draft: Draft, _: TurnEntity) -> None:
            part = draft.part_at(self._place)
            assert isinstance(part, TextPart)
            draft.put_part(sequence, structs.replace(part, state="done"))
            draft.close_message(sequence)

        await self._writer.store(fill)
