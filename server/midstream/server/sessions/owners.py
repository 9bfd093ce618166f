"""Whose sessions are: asked at every call where there are tokens, so it is kept (SPEC 10.5).

A session's owner never changes, and an id is never used again, so what is kept here is never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

KEPT: Final = 65_536
"""Owners that are kept of sessions that are not loaded, of about 200 bytes each."""


class Owners:
    """The owners of loaded sessions, and of the last ones that were asked for. Pure."""

    __slots__ = ("_loaded", "_most", "_recent")

    def __init__(self, *, most: int = KEPT) -> None:
        """Keep none yet."""
        self._loaded: dict[str, str | None] = {}
        self._recent: OrderedDict[str, str | None] = OrderedDict()
        self._most = most

    def load(self, session_id: str, owner: str | None) -> None:
        """Keep the owner of a session while it is loaded."""
        self._loaded[session_id] = owner

    def unload(self, session_id: str) -> None:
        """Keep the owner like that of others; harmless for a session that was not loaded."""
        if session_id in self._loaded:
            self.learn(session_id, self._loaded.pop(session_id))

    def learn(self, session_id: str, owner: str | None) -> None:
        """Keep an owner, and forget the one that was not asked for longest where there are too many."""
        self._recent[session_id] = owner
        self._recent.move_to_end(session_id)
        if len(self._recent) > self._most:
            self._recent.popitem(last=False)

    def knows(self, session_id: str) -> bool:
        """Say whether the owner of a session is known."""
        return session_id in self._loaded or session_id in self._recent

    def get(self, session_id: str) -> str | None:
        """Return the owner of a session, if it is known and there is one."""
        if session_id in self._loaded:
            return self._loaded[session_id]
        if session_id in self._recent:
            self._recent.move_to_end(session_id)
            return self._recent[session_id]
        return None
