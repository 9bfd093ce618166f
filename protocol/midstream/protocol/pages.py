"""Pages of earlier messages: whether one fits a replica, and how it is brought up to date (SPEC 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET

from midstream.protocol.frames import Change, Delta, ShortDelta
from midstream.protocol.outcomes import Gap, PageOutcome
from midstream.protocol.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.calls import Page

Kept: TypeAlias = tuple[Delta | ShortDelta | Change, int]
"""A frame that was applied; with a delta, the sequence of the session's last message then."""
_KEPT: Final = 2_000
"""Frames that are kept; where more come before the page does, it is read again."""


class AwaitedPages:
    """Keeps the frames that came since a page was asked for, until no page is on its way."""

    def __init__(self) -> None:
        """Start with none."""
        self._awaited = 0
        self._since = 0
        self._frames: list[Kept] = []

    def expect(self, version: int) -> None:
        """A page was asked for when the replica stood at this version."""
        if not self._awaited:
            self.restart(version)
        self._awaited += 1

    def forget(self) -> None:
        """A page came, or will not come."""
        self._awaited = max(0, self._awaited - 1)
        if not self._awaited:
            self._frames = []

    def restart(self, version: int) -> None:
        """Something other than single frames brought the replica to this version."""
        self._since = version
        self._frames = []

    def keep(self, frame: Delta | ShortDelta | Change, last: int) -> None:
        """Keep a frame that was applied; ``last`` is the sequence of the session's last message."""
        if not self._awaited:
            return
        self._frames.append((frame, last))
        if len(self._frames) > _KEPT:
            self.restart(frame.version)

    def above(self, version: int) -> list[Kept] | None:
        """Return the frames above a version; None where some of them are not kept any more."""
        if not self._awaited or version < self._since:
            return None
        return [kept for kept in self._frames if kept[0].version > version]


def earlier_messages(
    page: Page, window: Window, frames: Iterable[Kept], *, first_sequence: int
) -> Window | PageOutcome:
    """Return the page as the window that ends where ``window`` begins, or why it cannot be one.

    ``frames`` are those above the page's version; ``first_sequence`` is that of the session now.
    Changes nothing.
    """
    before, start = page.before_sequence, page.start_sequence
    if (None if before is UNSET else before) != window.first or (page.has_more and start is UNSET):
        return PageOutcome.DROPPED
    lowest = start if start is not UNSET and page.has_more else first_sequence
    earlier = Window(window.session_id, lowest, window.first)
    if any(message.session_id != window.session_id for message in page.items):
        return PageOutcome.DROPPED
    earlier.add(page.items)
    if not _bring_up(earlier, frames):
        return PageOutcome.REREAD
    earlier.drop_below(first_sequence)
    return earlier


def _bring_up(window: Window, frames: Iterable[Kept]) -> bool:
    """Apply to the messages of a page what came after it; False where something does not fit."""
    for frame, last in frames:
        if not isinstance(frame, Change):
            if isinstance(window.append(frame, last), Gap):
                return False
            continue
        steps = window.plan(frame.content.messages, version=frame.version, since=None, below=0)
        if isinstance(steps, Gap):
            return False
        window.carry_out(steps, durable=frame.version)
    return True
