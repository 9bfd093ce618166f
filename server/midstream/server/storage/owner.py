"""Who may write: a lock file for processes that look, a generation for those that did not (SPEC 9).

The lock keeps a second process out at once, and dies with its holder. It cannot protect a file that was
reached by another name or whose lock file was deleted, so each opening also raises a number
in the database itself, and every batch of writes checks that number in its own transaction. And where
the path names another file than the one that was opened, or none, what is written would be lost with
the process: so that is checked too.
"""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import apsw

from midstream.server.storage.errors import DatabaseLocked, DatabaseUnusable, OwnershipLost

LOCK_SUFFIX = ".lock"
PID_BYTES = 32
"""How much of a lock file is read for its holder's process id."""


class OwnerLock:
    """An exclusive lock on ``<database>.lock``, held until `release` or the death of the process.

    The file itself stays: deleting it would let two processes each lock a file of their own.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, database: Path) -> OwnerLock:
        """Lock, or refuse at once.

        Raises:
            DatabaseLocked: another process (or another `Database` of this one) holds the lock.
            DatabaseUnusable: the lock file cannot be created here.
        """
        # Two names of one file (symbolic links) must meet in one lock.
        path = Path(os.path.realpath(database))
        lock_file = path.with_name(path.name + LOCK_SUFFIX)
        try:
            descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as cause:
            raise DatabaseUnusable(database, _no_lock_file(lock_file, cause)) from cause
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except BlockingIOError as cause:
            owner = os.pread(descriptor, PID_BYTES, 0).decode("ascii", "replace")
            os.close(descriptor)
            raise DatabaseLocked(database, lock_file, owner) from cause
        except OSError as cause:
            os.close(descriptor)
            raise DatabaseUnusable(database, _no_lock_file(lock_file, cause)) from cause
        return cls(descriptor)

    def release(self) -> None:
        """Let the next owner in; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file of this name from every other that is there; None where there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def claim(connection: apsw.Connection, migrate: Callable[[apsw.Connection], None]) -> int:
    """Migrate the schema and raise the generation, in one transaction; give the new generation.

    Whatever goes wrong, nothing of either is stored. `migrate` goes first, so that it sees the file
    as it was.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        migrate(connection)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS owner"
            " (id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL) STRICT"
        )
        connection.execute(
            "INSERT INTO owner VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET generation = generation + 1"
        )
        generation = stored_generation(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if generation is None:
        raise OwnershipLost(0, None)
    return generation


def stored_generation(connection: apsw.Connection) -> int | None:
    """Read the generation that owns the file; None where there is no owner row."""
    value = connection.execute("SELECT generation FROM owner").get
    return value if isinstance(value, int) else None


def check_generation(connection: apsw.Connection, ours: int) -> None:
    """Raise `OwnershipLost` unless the file still belongs to this generation."""
    found = stored_generation(connection)
    if found != ours:
        raise OwnershipLost(ours, found)


def _no_lock_file(lock_file: Path, cause: OSError) -> str:
    return (
        f"its lock file {lock_file} cannot be written ({cause.strerror})."
        " Its directory must exist, and this user must be allowed to write there."
    )
