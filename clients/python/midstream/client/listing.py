"""The law of the list of sessions (SPEC 4.8): what answers and ``sessions`` frames make of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET

from midstream.protocol.lists import ListChanges
from midstream.protocol.model import Session

_GONE = 2**63
"""Above every revision."""


class Page:
    """A page that was asked for, and what frames said since."""

    def __init__(self) -> None:
        """Begin where nothing was said."""
        self.since: dict[str, int] = {}
        """The revision by which each session was named; those that were removed are above all."""


class Listing:
    """Sessions by id, each as new as it is known; the archived ones, or the others."""

    def __init__(self, *, archived: bool) -> None:
        """Begin empty."""
        self._archived = archived
        self._known: dict[str, Session] = {}
        self._pages: set[Page] = set()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._known)

    def replace(self, items: Iterable[Session]) -> None:
        """Take the answer of a watch: what was known before is gone, whatever its revision."""
        before, self._known = self._known, {}
        self._pages.clear()
        for item in items:
            had = before.get(item.session_id)
            self._put(had if had == item and had is not None else item)

    def ask_page(self) -> Page:
        """Keep in mind what frames say, until the page comes or is given up by :meth:`drop`."""
        page = Page()
        self._pages.add(page)
        return page

    def drop(self, page: Page) -> None:
        """Wait for a page no longer; harmless when repeated."""
        self._pages.discard(page)

    def join(self, page: Page, items: Iterable[Session]) -> bool:
        """Take a page; False where the list was replaced since it was asked for."""
        if page not in self._pages:
            return False
        self._pages.discard(page)
        for item in items:
            if page.since.get(item.session_id, 0) < item.revision:
                self._put(item)
        return True

    def apply(self, changes: ListChanges) -> bool:
        """Take a frame; False where it changes nothing here."""
        changed = False
        for session in changes.changed:
            self._note(session.session_id, session.revision)
            changed = self._put(session) or changed
        for session_id in changes.removed:
            self._note(session_id, _GONE)
            changed = self._known.pop(session_id, None) is not None or changed
        return changed

    def sorted(self) -> list[Session]:
        """Return all, the last changed first; where that is equal, by id."""
        return sorted(self._known.values(), key=lambda session: (-session.updated_at, session.session_id))

    def _note(self, session_id: str, revision: int) -> None:
        for page in self._pages:
            page.since[session_id] = max(revision, page.since.get(session_id, 0))

    def _put(self, session: Session) -> bool:
        known = self._known.get(session.session_id)
        if known is not None and known.revision >= session.revision:
            return False
        if (session.archived_at is not UNSET) != self._archived:
            return self._known.pop(session.session_id, None) is not None
        self._known[session.session_id] = session
        return True
