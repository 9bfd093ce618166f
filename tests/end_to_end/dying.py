"""Moments at which a server process kills itself, as nobody from outside could time it.

``write:37`` is before the 37th write to the log of the database, so that a transaction is there in part;
``sync:12`` before the 12th fsync of it: all is written, nothing is certain; ``committed:5`` after the 5th
COMMIT returned, before anybody is told.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from midstream.server.storage.connection import Place
from midstream.server.storage.database import Database
from midstream.server.storage.lanes import Lane
from midstream.server.storage.schema import migrate
from tests.disk import Disk, FileKind

T = TypeVar("T")
MOMENTS = ("write", "sync", "committed")


class Countdown:
    """Kills the process when something has happened so often."""

    def __init__(self, moment: str, left: int) -> None:
        self._moment = moment
        self._left = left

    def happens(self, moment: str) -> None:
        """Count, where it is this that is counted."""
        if moment == self._moment:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DyingDisk(Disk):
    """A disk that works until the moment has come."""

    def __init__(self, countdown: Countdown) -> None:
        """Register it."""
        super().__init__()
        self._countdown = countdown

    def check(self, operation: str, file: FileKind) -> None:
        """Count what is done to the log."""
        if file == "wal":
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
    moment, _, count = die_at.partition(":")
    assert moment in MOMENTS
    countdown = Countdown(moment, int(count))

    async def open_database(path: str) -> Database:
        disk = DyingDisk(countdown)
        database = await DyingDatabase.open(path, migrate=migrate, vfs=disk.name)
        assert isinstance(database, DyingDatabase)
        database.countdown = countdown
        return database

    return open_database
