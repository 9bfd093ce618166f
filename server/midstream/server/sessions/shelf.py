"""Syncs that many readers ask for alike: read once, and encoded once, while their session stands still.

When a thousand readers come back at once, they ask for the same page of the same version.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, cast

import msgspec

from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import SyncPayload
from midstream.server.sessions.sharing import Forms

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

SHELF_BYTES: Final = 32 * 1024 * 1024
"""What all syncs of a server may take that are kept, roughly."""
_EACH: Final = 4
"""Syncs that are kept of one session: of readers that came to stand at different versions, say."""
_FORMS: Final = 6
"""What is kept of a sync: itself in both codecs, and frames. Clients number their calls alike: few differ."""
_IDLE_SECONDS: Final = 5.0
"""How long a sync is kept that nobody asks for."""


class SharedSync(SyncPayload, frozen=True, kw_only=True, dict=True):
    """A sync that several readers get, with what it is encoded to. Otherwise a SyncPayload like any other."""

    def once(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return what ``make`` returned the last time for a key: this sync encoded, or a frame with it."""
        made = self._made()
        found = made.get(key)
        if found is None:
            while len(made) >= _FORMS:
                del made[next(iter(made))]
            found = made[key] = make()
        return found

    @property
    def size(self) -> int:
        """The bytes that it may come to take, roughly."""
        return self._length * (_FORMS + 1) + self.forms.max_bytes + 4_096

    @property
    def forms(self) -> Forms:
        """What the frames with this sync were compressed to."""
        own = cast("dict[str, Forms]", self.__dict__)
        if "forms" not in own:
            own["forms"] = Forms(2 * self._length)
        return own["forms"]

    @property
    def _length(self) -> int:
        return len(self.once("msgpack", lambda: MSGPACK.encode(self)))

    def _made(self) -> dict[Hashable, bytes]:
        own = cast("dict[str, dict[Hashable, bytes]]", self.__dict__)
        return own.setdefault("made", {})


class _Kept:
    """What is kept of one session."""

    __slots__ = ("size", "stamp", "syncs", "used_at")

    def __init__(self, stamp: Hashable) -> None:
        self.stamp = stamp
        self.syncs: OrderedDict[Hashable, SharedSync] = OrderedDict()
        self.size = 0
        self.used_at = 0.0


class Shelf:
    """Keeps syncs by what they depend on: a session's state (``stamp``) and what was asked (``key``)."""

    def __init__(self, max_bytes: int = SHELF_BYTES) -> None:
        """Begin empty."""
        self._max_bytes = max_bytes
        self._sessions: OrderedDict[Hashable, _Kept] = OrderedDict()  # the longest unused first
        self._sweep: asyncio.TimerHandle | None = None
        self.size = 0
        """Bytes that are kept, roughly."""

    def find(self, session: Hashable, stamp: Hashable, key: Hashable) -> SharedSync | None:
        """Return the sync that was kept; what was kept under another stamp is forgotten."""
        kept = self._sessions.get(session)
        if kept is None:
            return None
        if kept.stamp != stamp:
            self._forget(session)
            return None
        found = kept.syncs.get(key)
        if found is not None:
            kept.syncs.move_to_end(key)
            self._use(session, kept)
        return found

    def keep(self, session: Hashable, stamp: Hashable, key: Hashable, payload: SyncPayload) -> SharedSync:
        """Keep a sync, and return it to be shared."""
        shared = payload if isinstance(payload, SharedSync) else SharedSync(**msgspec.structs.asdict(payload))
        kept = self._sessions.get(session)
        if kept is not None and kept.stamp != stamp:
            self._forget(session)
            kept = None
        if kept is None:
            kept = self._sessions[session] = _Kept(stamp)
        kept.syncs[key] = shared
        while len(kept.syncs) > _EACH:
            kept.syncs.popitem(last=False)
        self.size -= kept.size
        kept.size = sum(sync.size for sync in kept.syncs.values())
        self.size += kept.size
        self._use(session, kept)
        while self.size > self._max_bytes:
            self._forget(next(iter(self._sessions)))
        return shared

    def _use(self, session: Hashable, kept: _Kept) -> None:
        loop = asyncio.get_running_loop()
        kept.used_at = loop.time()
        self._sessions.move_to_end(session)
        if self._sweep is None:
            self._sweep = loop.call_later(_IDLE_SECONDS, self._forget_idle)

    def _forget_idle(self) -> None:
        self._sweep = None
        loop = asyncio.get_running_loop()
        while self._sessions:
            session, kept = next(iter(self._sessions.items()))
            if kept.used_at + _IDLE_SECONDS > loop.time():
                self._sweep = loop.call_at(kept.used_at + _IDLE_SECONDS, self._forget_idle)
                break
            self._forget(session)

    def _forget(self, session: Hashable) -> None:
        self.size -= self._sessions.pop(session).size
