"""What was published at one time, encoded once for all who see it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from midstream.protocol.calls import Cursor
from midstream.server.sessions.sharing import Forms, SharedFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from midstream.protocol.codec import Codec
    from midstream.protocol.frames import SessionFrame

LONG_BYTES: Final = 1_024
"""Up to this length nothing is cut into chunks, wherever the limit is."""


Standing: TypeAlias = tuple[str, int, int]
"""The epoch, version and durable of a cursor, which is made of them only where somebody asks."""


class Broadcast:
    """A run of frames of one channel, in the two views that there are.

    ``standing`` is where a reader stands after it (SPEC 2). One is made for each version, and is gone when it
    is written: what only some need is made when they do.
    """

    __slots__ = ("_full", "_messages", "_payloads", "_visible", "standing")

    def __init__(
        self,
        standing: Standing,
        full: Sequence[SessionFrame],
        visible: Sequence[SessionFrame] | None = None,
    ) -> None:
        """Hold the frames of the full view, and of the visible view where the two differ."""
        self.standing = standing
        self._full = full
        self._visible = full if visible is None else visible
        self._payloads: list[tuple[Codec, Sequence[SessionFrame], list[bytes]]] | None = None
        self._messages: list[tuple[str, bytes]] | None = None

    @property
    def cursor(self) -> Cursor:
        """Where a reader stands after it."""
        return cursor_of(self.standing)

    def frames(self, *, include_internal: bool) -> Sequence[SessionFrame]:
        """Return the frames that this view shows."""
        return self._full if include_internal else self._visible

    def payloads(self, codec: Codec, *, include_internal: bool) -> list[bytes]:
        """Return the encoded frames; encoded at the first call for a codec and a view."""
        frames = self.frames(include_internal=include_internal)
        for known, shown, made in self._payloads or ():
            if known is codec and shown is frames:
                return made
        if len(frames) == 1:
            encoded = [_shared(codec.encode(frames[0]))]
        else:
            encoded = [_shared(codec.encode(frame)) for frame in frames]
        if self._payloads is None:
            self._payloads = []
        self._payloads.append((codec, frames, encoded))
        return encoded

    def message(self, kind: str, make: Callable[[Broadcast], bytes]) -> bytes:
        """Return what ``make`` made of it the first time for readers of this kind: what is sent to them."""
        for known, made in self._messages or ():
            if known == kind:
                return made
        message = make(self)
        if self._messages is None:
            self._messages = [(kind, message)]
        else:
            self._messages.append((kind, message))
        return message


def cursor_of(standing: Standing) -> Cursor:
    """Return the cursor of one who stands there."""
    epoch, version, durable = standing
    return Cursor(epoch=epoch, version=version, durable=durable)


def _shared(data: bytes) -> bytes:
    """Have each chunk compressed once, whatever its number is; what is sent whole is shared whole."""
    return data if len(data) <= LONG_BYTES else SharedFrame.of(data, Forms(2 * len(data)))
