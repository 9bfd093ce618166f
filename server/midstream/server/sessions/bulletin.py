"""News of the list as frames of bounded length, each encoded once for all who watch (SPEC 4.8). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import SessionsChanged
from midstream.protocol.lists import ListChanges

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from midstream.protocol.codec import Codec
    from midstream.protocol.model import Session
    from midstream.server.sessions.news import Item

FRAME_BYTES: Final = 32 * 1024
"""Bytes of sessions after which a frame ends: other frames of the connection pass between two."""


class Bulletin:
    """One ``sessions`` frame."""

    __slots__ = ("_cache", "frame")

    def __init__(self, frame: SessionsChanged) -> None:
        """Hold a frame."""
        self.frame = frame
        self._cache: dict[Hashable, bytes] = {}

    def payload(self, codec: Codec) -> bytes:
        """Return the encoded frame."""
        return self.once(codec.name, lambda: codec.encode(self.frame))

    def once(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return what ``make`` returned for this key the first time."""
        made = self._cache.get(key)
        if made is None:
            made = self._cache[key] = make()
        return made


def incomplete() -> Bulletin:
    """Return the end of a watch: something was left out."""
    return Bulletin(SessionsChanged(ListChanges(incomplete=True)))


def bulletins(items: Iterable[Item], *, frame_bytes: int = FRAME_BYTES) -> list[Bulletin]:
    """Return news as frames, in order; each holds one session, or no more bytes than ``frame_bytes``."""
    frames: list[Bulletin] = []
    changed: list[Session] = []
    removed: list[str] = []
    size = 0

    def end() -> None:
        if changed or removed:
            changes = ListChanges(changed=list(changed), removed=list(removed))
            frames.append(Bulletin(SessionsChanged(changes)))
        changed.clear()
        removed.clear()

    for session, is_removed, _ in items:
        length = len(session.session_id.encode()) + 5 if is_removed else len(MSGPACK.encode(session))
        if size + length > frame_bytes:
            end()
            size = 0
        size += length
        if is_removed:
            removed.append(session.session_id)
        else:
            changed.append(session)
    end()
    return frames
