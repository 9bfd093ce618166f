"""Those who watch the list of sessions, and the tick by which they are told (SPEC 4.8, 7.11)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from midstream.server.sessions.access import SessionRef
from midstream.server.sessions.bulletin import bulletins
from midstream.server.sessions.news import News

if TYPE_CHECKING:
    from collections.abc import Hashable

    from midstream.protocol.model import Session
    from midstream.server.clock import Clock
    from midstream.server.sessions.access import Authorization
    from midstream.server.sessions.bulletin import Bulletin
    from midstream.server.sessions.commands import Caller, Watcher
    from midstream.server.sessions.news import Item
    from midstream.server.sessions.owners import Owners


class Watch:
    """Tells each change of a session to those who watch, at most once in a tick.

    Where nobody watches, a change costs one look. All methods are for the event loop's thread.
    """

    def __init__(
        self, clock: Clock, authorization: Authorization, owners: Owners, *, tick_seconds: float
    ) -> None:
        """Begin with nobody. Each is told of the sessions that it may read."""
        self._clock = clock
        self._authorization = authorization
        self._owners = owners
        self._news = News(tick_seconds=tick_seconds)
        self._joining: set[Watcher] = set()
        self._watchers: dict[Watcher, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def watchers(self) -> int:
        """How many there are, those included whose list is being read."""
        return len(self._watchers) + len(self._joining)

    # Who watches

    def join(self, watcher: Watcher) -> None:
        """Note that the list is about to be read for somebody; nothing is told to it yet."""
        self._joining.add(watcher)
        self._news.join()

    def begin(self, watcher: Watcher) -> None:
        """Tell somebody from now on: its answer, which was read since it joined, has been given."""
        if watcher in self._joining:
            self._joining.discard(watcher)
            self._watchers[watcher] = None
            if not self._news.joined(begins=True):
                self.cut()
            self._plan()

    def leave(self, watcher: Watcher) -> None:
        """Tell somebody nothing any more; harmless for one that is not there."""
        if watcher in self._joining:
            self._joining.discard(watcher)
            self._news.joined(begins=False)
        self._watchers.pop(watcher, None)
        if not self.watchers:
            self._news.forget()

    # What is told

    def note(self, session: Session, *, removed: bool = False) -> None:
        """Take a session as it is on disk now, or as it was before it was removed. Its owner is known."""
        if self.watchers:
            owner = self._owners.get(session.session_id)
            if not self._news.note(session, owner, removed=removed):
                self.cut()
            self._plan()

    def tell(self) -> None:
        """Tell what there is, now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        items = self._news.take(self._clock.now())
        told: dict[Hashable, list[Bulletin]] = {}
        for watcher in list(self._watchers):
            group = self._authorization.group(watcher.caller.identity)
            if group not in told:
                told[group] = bulletins(item for item in items if self._shows(watcher.caller, item))
            if told[group] and not watcher.tell(told[group]):
                self.leave(watcher)

    def cut(self) -> None:
        """Have everybody ask again, those whose list is being read included."""
        for watcher in [*self._watchers, *self._joining]:
            watcher.cut()
            self.leave(watcher)
        self._news.forget()

    def _shows(self, caller: Caller, item: Item) -> bool:
        ref = SessionRef(item.session.session_id, item.owner)
        return self._authorization.authorize(caller.identity, "read", ref)

    def _plan(self) -> None:
        due = self._news.due()
        if due is not None and self._timer is None:
            delay = max(0.0, due - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_tick)

    def _on_tick(self) -> None:
        self._timer = None
        self.tell()
