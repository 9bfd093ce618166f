"""One published change, encoded once for all who see it alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midstream.protocol.codec import Codec
    from midstream.protocol.frames import SessionFrame


class Broadcast:
    """One version (or a run of them) of one channel, in the two views that there are.

    ``version`` is where a reader stands after it. ``epoch`` and ``durable`` are the cursor's other
    two numbers at that point (SPEC 2).
    """

    __slots__ = ("_cache", "_full", "_visible", "durable", "epoch", "version")

    def __init__(
        self,
        *,
        version: int,
        durable: int,
        epoch: str,
        full: SessionFrame,
        visible: SessionFrame | None = None,
    ) -> None:
        """Hold the frame of the full view, and of the visible view where the two differ."""
        self.version = version
        self.durable = durable
        self.epoch = epoch
        self._full = full
        self._visible = full if visible is None else visible
        self._cache: dict[Hashable, bytes] = {}

    def frame(self, *, include_internal: bool) -> SessionFrame:
        """Return the frame that this view shows."""
        return self._full if include_internal else self._visible

    def payload(self, codec: Codec, *, include_internal: bool) -> bytes:
        """Return the encoded frame; encoded at the first call for a codec and a view."""
        frame = self.frame(include_internal=include_internal)
        return self.once((codec.name, id(frame)), lambda: codec.encode(frame))

    def once(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return what ``make`` returned for this key the first time (a websocket frame, say)."""
        made = self._cache.get(key)
        if made is None:
            made = self._cache[key] = make()
        return made
