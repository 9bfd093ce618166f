"""Whether the storage works, said in the log when that changes and not for every write (SPEC 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import apsw
import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.server.storage.errors import CommitFailed, ReadFailed

log = structlog.get_logger("midstream.storage")

Doing = Literal["writes", "reads"]
AGAIN_SECONDS: Final = 60.0
"""How long the log is silent after it said that something fails, where that comes and goes."""

_DO: Final = {
    "writes": "check the disk for space and errors; writes are refused and what is stored is served",
    "reads": "check the disk for errors; what cannot be read is refused meanwhile",
}
_DAMAGED: Final = "stop the server, run `midstream check` on the file, and restore a backup"


class Health:
    """What became of the last writes and reads. For the event loop's thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin well; ``now`` gives seconds of a clock that never goes back."""
        self._now = now
        self._failing: dict[Doing, tuple[float, int]] = {}
        """Since when, and how many have failed since."""
        self._told: dict[Doing, float] = {}
        """When the log last said that something fails."""
        self._silent: set[Doing] = set()
        self._is_damaged = False

    @property
    def writes_fail(self) -> bool:
        """Whether the last write failed for a reason of the disk's."""
        return "writes" in self._failing

    @property
    def reads_fail(self) -> bool:
        """Whether the last read failed for a reason of the disk's."""
        return "reads" in self._failing

    @property
    def is_damaged(self) -> bool:
        """Whether SQLite has found the file damaged: that heals by no retry."""
        return self._is_damaged

    def failed(self, doing: Doing, error: CommitFailed | ReadFailed) -> None:
        """Note a failure; the first of a row is logged."""
        if isinstance(error.cause, (apsw.CorruptError, apsw.NotADBError)):
            # of one page, while all others are well: to say each time that it works again would be no news
            if not self._is_damaged:
                self._is_damaged = True
                log.error("database_damaged", doing=doing, error=str(error), do=_DAMAGED)
            return
        now = self._now()
        since, count = self._failing.get(doing, (now, 0))
        self._failing[doing] = since, count + 1
        if count:
            return
        if now - self._told.get(doing, -AGAIN_SECONDS) < AGAIN_SECONDS:
            self._silent.add(doing)
            return
        self._silent.discard(doing)
        self._told[doing] = now
        log.error("storage_fails", doing=doing, error=str(error), do=_DO[doing])

    def worked(self, doing: Doing) -> None:
        """Note a success; the first after failures is logged."""
        if doing not in self._failing:
            return
        since, count = self._failing.pop(doing)
        if doing not in self._silent:
            log.warning(
                "storage_works_again", doing=doing, seconds=round(self._now() - since, 1), failed=count
            )
