"""The three uses of a connection: write in batches, read, hold a snapshot (SPEC 9).

An engine is used by one thread at a time and knows nothing of threads; a lane gives it its jobs.
"""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from collections.abc import Callable, Sequence
from contextlib import suppress

import apsw

from midstream.server.storage.batch import Failed, Outcome, Work, attempt, run_batch, run_read
from midstream.server.storage.connection import Place, begin_wal, is_idle, refresh_statistics
from midstream.server.storage.errors import (
    CommitFailed,
    DatabaseUnusable,
    FileLost,
    OwnershipLost,
    ReadFailed,
    StorageError,
)
from midstream.server.storage.owner import OwnerLock, claim, identity


class Writer:
    """The only connection that writes, together with the right to."""

    def __init__(self, place: Place, lock: OwnerLock, connection: apsw.Connection, generation: int) -> None:
        self.generation = generation
        self._place = place
        self._lock = lock
        self._connection: apsw.Connection | None = connection
        self._file = identity(place.path)
        self._lost: OwnershipLost | None = None

    @classmethod
    def open(cls, place: Place, migrate: Callable[[apsw.Connection], None]) -> Writer:
        """Lock the file, migrate it and become its owner; where that fails, the file is as before.

        Raises:
            DatabaseLocked: another process owns it.
            DatabaseUnusable: it cannot be opened, is no database, or `migrate` met an SQL error.
        """
        lock = OwnerLock.take(place.path)
        connection: apsw.Connection | None = None
        try:
            connection = place.connect(create=True)
            generation = claim(connection, migrate)
            begin_wal(connection, place)
            with suppress(apsw.CorruptError):  # what is sound is served; of the rest its readers are told
                refresh_statistics(connection)
        except BaseException as error:
            if connection is not None:
                connection.close(force=True)
            lock.release()
            if isinstance(error, apsw.Error):
                raise DatabaseUnusable(place.path, _why_unusable(error)) from error
            raise
        return cls(place, lock, connection, generation)

    def run(self, jobs: Sequence[Work]) -> list[Outcome]:
        """Commit the jobs as one batch; afterwards no transaction is open."""
        if self._lost is None and identity(self._place.path) != self._file:
            self._lost = FileLost(self._place.path, self.generation)
        if self._lost is not None:
            lost = self._lost
            return [Failed(lost.again()) for _ in jobs]
        try:
            connection = self._connected()
        except (apsw.Error, StorageError) as cause:
            return [Failed(CommitFailed(cause)) for _ in jobs]
        outcomes = run_batch(connection, self.generation, jobs)
        match outcomes:
            case [Failed(OwnershipLost() as lost), *_]:
                self._lost = lost
            case _:
                pass
        if not is_idle(connection):
            self._disconnect()
        return outcomes

    def close(self) -> None:
        """Close the connection, which moves the WAL into the file, and let the next owner in."""
        try:
            self._disconnect()
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Let go of the file as a crash does: the WAL stays as it is."""
        if self._connection is not None:
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.close()

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            connection = self._place.connect(create=False)
            begin_wal(connection, self._place)
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            _close(self._connection)
            self._connection = None


class Reader:
    """A connection that reads: each job on the newest state, and on one state throughout."""

    def __init__(self, place: Place) -> None:
        """Open the connection, in the thread that will use it.

        Raises:
            DatabaseUnusable: the file, which the writer has opened, cannot be opened once more.
        """
        self._place = place
        try:
            self._connection: apsw.Connection | None = place.connect_reader()
        except apsw.Error as error:
            raise DatabaseUnusable(place.path, _why_unusable(error)) from error

    def run(self, jobs: Sequence[Work]) -> list[Outcome]:
        """Run each job in a read transaction of its own."""
        return [self._run(job) for job in jobs]

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            _close(self._connection)
            self._connection = None

    def abandon(self) -> None:
        """Let go of the file; the same as `close`, since a reader leaves nothing behind."""
        self.close()

    def _run(self, job: Work) -> Outcome:
        if self._connection is None:
            try:
                self._connection = self._place.connect_reader()
            except apsw.Error as cause:
                return Failed(ReadFailed(cause))
        outcome = run_read(self._connection, job)
        # A cursor that the caller kept would hold the next read in the past.
        if not is_idle(self._connection):
            self.close()
        return outcome


class HeldReader:
    """A connection that stays on the state it began with, over many jobs, until it is closed."""

    def __init__(self, place: Place) -> None:
        """Open the connection and fix what it sees: all that is committed at this moment.

        Raises:
            ReadFailed: the disk failed.
        """
        try:
            self._connection = place.connect_reader()
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get  # noqa: B018 - a read takes it
        except apsw.Error as cause:
            raise ReadFailed(cause) from cause

    def run(self, jobs: Sequence[Work]) -> list[Outcome]:
        """Run each job on the held state."""
        return [self._run(job) for job in jobs]

    def close(self) -> None:
        """Let the state go, and close the connection."""
        _close(self._connection)

    def abandon(self) -> None:
        """Let go of the file; the same as `close`, since a reader leaves nothing behind."""
        self.close()

    def _run(self, job: Work) -> Outcome:
        try:
            held = self._connection.txn_state() == apsw.SQLITE_TXN_READ
        except apsw.ConnectionClosedError:
            held = False
        if not held:  # never go on silently with a newer state
            return Failed(ReadFailed(StorageError("the snapshot was lost after a disk error")))
        return attempt(job, self._connection, ReadFailed)


def _close(connection: apsw.Connection) -> None:
    with suppress(apsw.Error):  # what is committed is in the WAL, whether it could be moved on or not
        connection.close(force=True)


def _why_unusable(error: apsw.Error) -> str:
    match error:
        case apsw.NotADBError():
            advice = "It is not a SQLite database; give another path."
        case apsw.BusyError():
            advice = "Another program has it locked; close that program."
        case apsw.FullError():
            advice = "The disk is full; free some space."
        case apsw.CorruptError():
            advice = "It is damaged: `midstream check` says where. Put a backup in its place."
        case _:
            advice = (
                "Check that it is a database of this program, that this user may write to it, and the disk."
            )
    return f"SQLite says {str(error)!r}. {advice}"
