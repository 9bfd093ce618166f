"""A client that watches the list of sessions, and knows nothing but the law of lists (SPEC 4.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.client.listing import Listing
from midstream.protocol.calls import ListResult
from midstream.protocol.frames import SessionsChanged

if TYPE_CHECKING:
    import msgspec

    from midstream.protocol.lists import ListChanges
    from midstream.protocol.model import Session
    from tests.laws.line import Line


class Watcher:
    """A watch on a line of its own, or on one that it is given."""

    def __init__(self, line: Line, *, archived: bool = False) -> None:
        self.line = line
        self.archived = archived
        self.answer: ListResult | None = None
        self._at = 0

    async def watch(self) -> ListResult:
        """Ask for the list, anew if it was asked for before; what came earlier counts no more."""

        def answered(result: msgspec.Struct) -> None:
            assert isinstance(result, ListResult)
            self.answer, self._at = result, len(self.line.frames)

        await (await self.line.begin("sessions.watch", {"limit": 200, "archived": self.archived}, answered))
        assert self.answer is not None
        return self.answer

    @property
    def early(self) -> list[ListChanges]:
        """What was told before the last answer."""
        return [frame.changes for frame in self.line.frames[: self._at] if isinstance(frame, SessionsChanged)]

    @property
    def told(self) -> list[ListChanges]:
        """What was told since the last answer."""
        return [frame.changes for frame in self.line.frames[self._at :] if isinstance(frame, SessionsChanged)]

    def shown(self) -> list[Session]:
        """What a client shows that follows the law."""
        assert self.answer is not None
        listing = Listing(archived=self.archived)
        listing.replace(self.answer.items)
        for changes in self.told:
            assert not changes.incomplete
            listing.apply(changes)
        return listing.sorted()

    def session(self, session_id: str = "s") -> Session | None:
        """One of the sessions that are shown."""
        return next((session for session in self.shown() if session.session_id == session_id), None)

    async def until_told(self, count: int) -> ListChanges:
        """Wait until so many frames came since the answer, and return the last of them."""
        await self.line.until(lambda: len(self.told) >= count)
        return self.told[count - 1]


async def listed(line: Line, *, archived: bool = False) -> list[Session]:
    """What the server lists, in a client's order."""
    listing = Listing(archived=archived)
    result = await line.ask(ListResult, "sessions.list", limit=200, archived=archived)
    listing.replace(result.items)
    return listing.sorted()
