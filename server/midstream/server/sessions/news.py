"""What became of sessions and was not told yet to those who watch the list (SPEC 4.8). Pure.

It is state and no log: of each session only the newest is kept, and what it was before is never told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from midstream.protocol.model import Session

MOST_SESSIONS: Final = 4_096
"""Sessions of which news may wait. More come in one tick only where something is wrong; whoever watches is
then told to ask again."""


class Item(NamedTuple):
    """A session as it is now, or as it was when it was removed."""

    session: Session
    removed: bool
    owner: str | None = None
    """The subject that made it, if it had a token."""


class News:
    """The newest of each session that changed, until its tick.

    While somebody joins (the list is being read for it), what was told is kept too: the reader may have
    read before it, and is not told anything before its answer.
    """

    def __init__(self, *, tick_seconds: float, most: int = MOST_SESSIONS) -> None:
        """Tell at most once in ``tick_seconds``, and keep news of at most ``most`` sessions."""
        self._tick_seconds = tick_seconds
        self._most = most
        self._new: dict[str, Item] = {}
        self._told: dict[str, Item] = {}
        """What was told while somebody joined."""
        self._joining = 0
        self._told_at = float("-inf")

    def note(self, session: Session, owner: str | None = None, *, removed: bool) -> bool:
        """Take news; False where they are too many: then all are forgotten, and nobody's list is whole."""
        return self._keep(Item(session, removed, owner))

    def join(self) -> None:
        """Keep what is told from here on, for somebody whose list is about to be read."""
        self._joining += 1

    def joined(self, *, begins: bool) -> bool:
        """Note that the list was read; where somebody begins with it, tell again what was told meanwhile.

        False where that is too much.
        """
        self._joining -= 1
        kept = not begins or self._keep_all(list(self._told.values()))
        if not self._joining:
            self._told.clear()
        return kept

    def due(self) -> float | None:
        """Return when the news are to be told; None where there are none."""
        return self._told_at + self._tick_seconds if self._new else None

    def take(self, now: float) -> list[Item]:
        """Return what is to be told now, and forget it."""
        items = list(self._new.values())
        self._told_at = now
        if self._joining:
            self._told.update(self._new)
        self._new.clear()
        return items

    def forget(self) -> None:
        """Forget all: nobody is left to be told."""
        self._new.clear()
        self._told.clear()

    def _keep_all(self, items: list[Item]) -> bool:
        return sum(not self._keep(item) for item in items) == 0

    def _keep(self, item: Item) -> bool:
        session_id = item.session.session_id
        known = self._new.get(session_id)
        if known is None or not (known.removed or known.session.revision > item.session.revision):
            self._new[session_id] = item
        return len(self._new) <= self._most and len(self._told) <= self._most
