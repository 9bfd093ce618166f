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

    __slots__ = ("_full", "_payloads", "_visible", "cursor", "messages")

    def __init__(
        self,
        cursor: Cursor,
        full: Sequence[SessionFrame],
        visible: Sequence[SessionFrame] | None = None,
    ) -> None:
        """Hold the frames of the full view, and of the visible view where the two differ."""
        self.cursor = cursor
        self.messages: dict[str, bytes] = {}
        """What :meth:`message` made, by its kind: for a reader of a kind that was there already."""
        self._full = full
        self._visible = full if visible is None else visible
        self._payloads: dict[tuple[str, int], list[bytes]] = {}

    def frames(self, *, include_internal: bool) -> Sequence[SessionFrame]:
        """Return the frames that this view shows."""
        return self._full if include_internal else self._visible

    def payloads(self, codec: Codec, *, include_internal: bool) -> list[bytes]:
        """Return the encoded frames; encoded at the first call for a codec and a view."""
        frames = self.frames(include_internal=include_internal)
        key = codec.name, id(frames)
        made = self._payloads.get(key)
        if made is None:
            made = self._payloads[key] = [_shared(codec.encode(frame)) for frame in frames]
        return made

    def message(self, kind: str, make: Callable[[], bytes]) -> bytes:
        """Return what ``make`` returned the first time for readers of this kind: what is sent to them."""
        made = self.messages.get(kind)
        if made is None:
            made = self.messages[kind] = make()
        return made


def _shared(data: bytes) -> bytes:
    """Have each chunk compressed once, whatever its number is; what is sent whole is shared whole."""
    return data if len(data) <= LONG_BYTES else SharedFrame.of(data, Forms(2 * len(data)))
