"""Moments at which a server process kills itself, as nobody from outside could time it.

``write:37`` is before the 37th write to the log of the database, so that a transaction is there in part;
``sync:12`` before the 12th fsync of it: all is written, nothing is certain; ``committed:5`` after the 5th
COMMIT returned, before anybody is told. Where a third number follows, the power is lost at that moment, with
this seed for what becomes of what was not synced: what is left is in `left_by`'s folder.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import TypeVar

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from midstream.server.storage import connection
from midstream.server.storage.connection import Place
from midstream.server.storage.database import Database
from midstream.server.storage.lanes import Lane
from midstream.server.storage.schema import migrate
from tests.disk import Disk, FileKind

T = TypeVar("T")
MOMENTS = ("write", "sync", "committed")
SMALL_LOG = 40
"""Pages of the log after which it is moved into the file: so the power is lost in the middle of that, too."""


def left_by(database: Path) -> Path:
    """Return the folder of what a loss of power leaves of a database."""
    return database.with_name(f"{database.name}.left")


class Countdown:
    """Kills the process when something has happened so often."""

    def __init__(self, moment: str, left: int) -> None:
        self._moment = moment
        self._left = left
        self.before: Callable[[], None] = lambda: None
        """What happens just before that."""

    def happens(self, moment: str) -> None:
        """Count, where it is this that is counted."""
        if moment == self._moment:
            self._left -= 1
            if self._left == 0:
                self.before()
                os.kill(os.getpid(), signal.SIGKILL)


class DyingDisk(Disk):
    """A disk that works until the moment has come."""

    def __init__(self, countdown: Countdown, *, loses_power: bool) -> None:
        """Register it."""
        super().__init__(remember=loses_power)
        self._countdown = countdown
        self._counted = ("wal", "main") if loses_power else ("wal",)

    def check(self, operation: str, file: FileKind) -> None:
        """Count what is done to the log; where the power is lost, also what is done to the file."""
        if file in self._counted:
            self._countdown.happens(operation)
        super().check(operation, file)


class DyingDatabase(Database):
    """A database that works until the moment has come."""

    countdown: Countdown

    def __init__(self, place: Place, writer: Lane, readers: Lane, generation: int) -> None:
        """Use `open`."""
        super().__init__(place, writer, readers, generation)

    async def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """Write, and perhaps die when it is on disk."""
        result = await super().write(job)
        self.countdown.happens("committed")
        return result


def opener(die_at: str) -> Callable[[str], Awaitable[Database]] | None:
    """Return what opens a database that dies at a moment; None without one."""
    if not die_at:
        return None
    moment, count, *seed = die_at.split(":")
    assert moment in MOMENTS
    countdown = Countdown(moment, int(count))

    async def open_database(path: str) -> Database:
        disk = DyingDisk(countdown, loses_power=bool(seed))
        if seed:
            connection.CHECKPOINT_PAGES = SMALL_LOG
            countdown.before = lambda: _lose_power(disk, Path(path), Random(int(seed[0])))
        database = await DyingDatabase.open(path, migrate=migrate, vfs=disk.name)
        assert isinstance(database, DyingDatabase)
        database.countdown = countdown
        return database

    return open_database


def _lose_power(disk: Disk, database: Path, chance: Random) -> None:
    left_by(database).mkdir()
    disk.after_power_loss(left_by(database), chance)
