"""A connection's watch of the list of sessions (SPEC 4.8, 6, 7.11). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.server.connections.effects import WatchBegins, WatchEnds
from midstream.server.sessions.bulletin import incomplete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.server.connections.effects import Effect
    from midstream.server.connections.outbox import Outbox
    from midstream.server.sessions.bulletin import Bulletin
    from midstream.server.sessions.commands import Caller

LANE: Final = ""
"""The outbox's lane of answers that are of no session: frames stand behind the answer that they follow."""


class Watcher:
    """One watch: it writes into the outbox while that has room."""

    __slots__ = ("_outbox", "caller", "is_live", "is_owed")

    def __init__(self, outbox: Outbox, caller: Caller) -> None:
        """Make a watch that is not answered yet."""
        self.caller = caller
        self.is_live = False
        """Whether its answer is in the outbox, and nothing was left out since."""
        self.is_owed = False
        """Whether something was left out, and the client is still to be told so."""
        self._outbox = outbox

    def tell(self, news: Sequence[Bulletin]) -> bool:
        """Take frames; where there is no room for one, none comes any more."""
        for bulletin in news:
            if not self._put(bulletin):
                self.is_live, self.is_owed = False, True
                return False
        return True

    def cut(self) -> None:
        """Say that something was left out, at once or when there is room and an answer to say it behind."""
        self.is_owed = not self.is_live or not self._put(incomplete())
        self.is_live = False

    def on_room(self) -> None:
        """Say what is owed; everything that waited has been sent."""
        if self.is_owed:
            self.is_owed = not self._put(incomplete())

    def _put(self, bulletin: Bulletin) -> bool:
        outbox = self._outbox
        payload = bulletin.payload(outbox.codec)
        if not outbox.admits(len(payload)):
            return False
        if len(payload) > outbox.chunk_bytes:  # chunks are numbered by each connection
            outbox.put(LANE, payload)
        else:
            sealed = bulletin.once(("sealed", outbox.kind), lambda: outbox.seal(payload))
            outbox.put_sealed(LANE, sealed)
        return True


class Watching:
    """The watch of a connection, and those that are asked for: the last one answered replaces the others."""

    __slots__ = ("_current", "_outbox", "_starting")

    def __init__(self, outbox: Outbox) -> None:
        """Begin without one."""
        self._outbox = outbox
        self._starting: dict[int, Watcher] = {}
        self._current: Watcher | None = None

    def ask(self, call_id: int, caller: Caller) -> Watcher:
        """Make the watch that a call asks for."""
        watcher = self._starting[call_id] = Watcher(self._outbox, caller)
        return watcher

    def answered(self, call_id: int, *, succeeded: bool) -> list[Effect]:
        """Begin the watch that a call asked for, if it did, behind its answer; or give it up."""
        watcher = self._starting.pop(call_id, None)
        if watcher is None:
            return []
        if not succeeded:
            return [WatchEnds(watcher)]
        before, self._current = self._current, watcher
        ends: list[Effect] = [] if before is None else [WatchEnds(before)]
        if watcher.is_owed or (before is not None and before.is_owed):
            # other lists of this client may go by the watch that was before: they must ask again
            watcher.is_owed = True
            return [WatchEnds(watcher), *ends]
        watcher.is_live = True
        return [WatchBegins(watcher), *ends]

    def end(self) -> list[WatchEnds]:
        """End the watch, and those that are asked for."""
        everyone = [*self._starting.values(), *([self._current] if self._current else [])]
        self._starting.clear()
        self._current = None
        return [WatchEnds(watcher) for watcher in everyone]

    def cut(self) -> list[WatchEnds]:
        """Have the client ask anew, also where its watch is not answered yet: others may be shown now."""
        everyone = [*self._starting.values(), *([self._current] if self._current else [])]
        for watcher in everyone:
            if not watcher.is_owed:
                watcher.cut()
        return [WatchEnds(watcher) for watcher in everyone]

    def on_room(self) -> None:
        """Learn that everything that waited has been sent."""
        if self._current is not None:
            self._current.on_room()
