"""Text that waits for its tick: merged by part, in the order in which the parts began to wait (SPEC 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midstream.server.sessions.projection import OpenMessage, Place

WAITING_BYTES = 64 * 1024
"""Bytes of text that may wait before a producer does. One tick publishes them all."""


def size_of(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


class GrowingPart:
    """A part that text goes into, with all that its next delta needs.

    It is looked up once, and again after anything else changed in the session: what a token touches is in no
    cache of the processor where a thousand sessions speak.
    """

    __slots__ = (
        "created_at", "is_internal", "is_last", "known_at", "message", "more", "part_sequence", "place",
        "sequence", "size", "text", "waits",
    )  # fmt: skip

    def __init__(self, place: Place) -> None:
        """Name the part; nothing is known of it."""
        self.place = place
        self.sequence = place.message
        self.part_sequence = place.part
        self.known_at = -1
        """Which state of the projection it was looked up in; what follows is true in that one."""
        self.message: OpenMessage | None = None
        """Its message; None where nothing can be appended."""
        self.size = 0
        """The bytes of the part, what waits included."""
        self.created_at = 0
        """When its message was."""
        self.is_internal = False
        """Whether some readers do not see it."""
        self.is_last = False
        """Whether it is the last part of the session's last message."""
        self.text = ""
        """The first piece that waits for a tick; empty where none does."""
        self.more: list[str] | None = None
        """The other pieces, if there are any."""
        self.waits = 0
        """The bytes of them all."""


class WaitingText:
    """The deltas of one tick. What several deltas append to one part becomes one frame."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self.parts: list[GrowingPart] = []
        """Those that text waits for."""
        self.size = 0
        """Bytes that wait."""

    def __bool__(self) -> bool:
        """Say whether anything waits."""
        return bool(self.parts)

    @property
    def is_full(self) -> bool:
        """Whether producers are to wait."""
        return self.size >= WAITING_BYTES

    def add(self, part: GrowingPart, text: str, size: int) -> None:
        """Append text, of ``size`` bytes and not empty, to what waits for a part."""
        self.size += size
        part.waits += size
        if not part.text:
            part.text = text
            self.parts.append(part)
        elif part.more is None:
            part.more = [text]
        else:
            part.more.append(text)

    def take(self) -> tuple[GrowingPart, str, int]:
        """Return what waits for the part that waits longest: the part, the text, and its bytes.

        Raises:
            IndexError: nothing waits.

        """
        part = self.parts.pop(0)
        text, size = part.text, part.waits
        if part.more is not None:
            text += "".join(part.more)
            part.more = None
        part.text = ""
        part.waits = 0
        self.size -= size
        return part, text, size

    def clear(self) -> None:
        """Drop everything: the turn it belonged to has ended."""
        while self.parts:
            part, _, _ = self.take()
            part.known_at = -1
