"""What was published at one time, encoded once for all who see it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.server.sessions.sharing import Forms, SharedFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from midstream.protocol.calls import Cursor
    from midstream.protocol.codec import Codec
    from midstream.protocol.frames import SessionFrame

LONG_BYTES: Final = 1_024
"""Up to this length nothing is cut into chunks, wherever the limit is."""


class Broadcast:
    """A run of frames of one channel, in the two views that there are.

    ``cursor`` is where a reader stands after it (SPEC 2).
    """

    __slots__ = ("_full", "_messages", "_payloads", "_visible", "cursor")

    def __init__(
        self,
        cursor: Cursor,
        full: Sequence[SessionFrame],
        visible: Sequence[SessionFrame] | None = None,
    ) -> None:
        """Hold the frames of the full view, and of the visible view where the two differ."""
        self.cursor = cursor
        self._full = full
        self._visible = full if visible is None else visible
        self._payloads: list[tuple[Codec, Sequence[SessionFrame], list[bytes]]] = []
        self._messages: list[tuple[str, bytes]] = []

    def frames(self, *, include_internal: bool) -> Sequence[SessionFrame]:
        """Return the frames that this view shows."""
        return self._full if include_internal else self._visible

    def payloads(self, codec: Codec, *, include_internal: bool) -> list[bytes]:
        """Return the encoded frames; encoded at the first call for a codec and a view."""
        frames = self.frames(include_internal=include_internal)
        for known, shown, made in self._payloads:
            if known is codec and shown is frames:
                return made
        encoded = [_shared(codec.encode(frame)) for frame in frames]
        self._payloads.append((codec, frames, encoded))
        return encoded

    def message(self, kind: str, make: Callable[[Broadcast], bytes]) -> bytes:
        """Return what ``make`` made of it the first time for readers of this kind: what is sent to them."""
        for known, made in self._messages:
            if known == kind:
                return made
        message = make(self)
        self._messages.append((kind, message))
        return message


def _shared(data: bytes) -> bytes:
    """Have each chunk compressed once, whatever its number is; what is sent whole is shared whole."""
    return data if len(data) <= LONG_BYTES else SharedFrame.of(data, Forms(2 * len(data)))
