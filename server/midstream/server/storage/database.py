"""One SQLite file, shared by many tasks: grouped writes, reads apart, held snapshots (SPEC 9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import apsw

from midstream.server.storage.connection import Place, Synchronous
from midstream.server.storage.engines import HeldReader, Reader, Writer
from midstream.server.storage.errors import (
    CommitFailed,
    DatabaseClosed,
    OwnershipLost,
    ReadFailed,
    StorageError,
)
from midstream.server.storage.health import Health
from midstream.server.storage.lanes import InlineLane, Lane, ThreadLane
from midstream.server.storage.timed import TimedWriter
from midstream.server.tally import StorageTally

BATCH_JOBS = 128
"""Jobs that share one commit at most. Real commits of as many sessions, on a busy disk (means of two runs): 8
at a time 1,800 in a second and 3 ms for the batch, 32 3,200 and 7 ms, 64 5,200 and 10 ms, 128 5,400 and 19
ms, 256 8,200 and 28 ms, 512 8,200 and 57 ms. Beyond 128 the first would wait too long for the last."""

SNAPSHOTS = 4
"""Snapshots open at once; further ones wait. Each is a thread and a connection, and lets the WAL grow."""

T = TypeVar("T")


class Snapshot:
    """The database as it was at one moment, for as long as the snapshot is open."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run a reading job on the held state.

        Raises:
            DatabaseClosed: the snapshot or the database was closed.
            ReadFailed: the disk failed; if it cost the held state, all later reads fail as well.
        """
        return cast("T", await self._lane.submit(job))


class Database:
    """One SQLite file: one writer thread with group commit, read connections apart (SPEC 9).

    Jobs are plain functions of a connection. They run outside the event loop (but for ``inline``), so they
    must not touch its objects, and they must not return or keep cursors.

    Attributes:
        generation: the number of this owner. Each opening raises it by one and stores it; every batch of
            writes checks that the file still holds it.
        health: whether writes and reads work; the log is told when that changes.
        tally: what it counts.
        path: the file.
    """

    def __init__(self, place: Place, writer: Lane, readers: Lane, generation: int) -> None:
        """Use `open`."""
        self.generation = generation
        self.tally = StorageTally()
        self.path = place.path
        self._now = asyncio.get_running_loop().time
        self.health = Health(self._now)
        self._place = place
        self._writer = writer
        self._readers = readers
        self._snapshots: set[Lane] = set()
        self._snapshot_slots = asyncio.Semaphore(SNAPSHOTS)
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        migrate: Callable[[apsw.Connection], None],
        readers: int = 2,
        inline: bool = False,
        vfs: str | None = None,
        synchronous: Synchronous = "FULL",
    ) -> Database:
        """Own the file (made where it is missing) until `close`, and migrate it.

        Args:
            path: the file; beside it lie ``-wal`` and ``-shm`` while it is open, and ``.lock``.
            migrate: brings the schema up to date; runs in the transaction that claims the file, so that
                what it raises leaves the file as it was. Only what is in the file lasts: the connection may
                be replaced later.
            readers: threads that read at the same time.
            inline: no threads; jobs run in the event loop, one batch a callback. For simulations.
            vfs: the name of a registered SQLite VFS, such as one that injects faults.
            synchronous: FULL, unless losing acknowledged writes with the power does not matter.

        Raises:
            DatabaseLocked: another process owns the file.
            DatabaseUnusable: the path, the file or the file system will not do.
            ValueError: `readers` is below 1.
        """
        if readers < 1:
            raise ValueError(f"readers is {readers}; a database needs at least 1 to be read at all.")
        place = Place.at(path, vfs=vfs, synchronous=synchronous)
        writer = _lane("write", inline=inline, batch=BATCH_JOBS)
        tally = StorageTally()
        owner = await writer.start(lambda: TimedWriter(Writer.open(place, migrate), tally))
        reading = _lane("read", inline=inline, batch=1)
        try:
            for _ in range(1 if inline else readers):
                await reading.start(partial(Reader, place))
        except BaseException:
            await reading.close()
            await writer.close()
            raise
        database = cls(place, writer, reading, owner.generation)
        database.tally = tally
        return database

    async def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run a job in the next batch of writes, and give its result once that batch is on disk.

        Jobs run one after another in the order of these calls. A job that raises is undone alone, and its
        error is raised here. A caller that is cancelled does not stop its job, which still happens wholly or
        not at all.

        Raises:
            CommitFailed: the batch could not be committed; read again before writing again.
            OwnershipLost: another process has taken the file over; nothing was or will be written.
            DatabaseClosed: `close` was called before.
        """
        self._require_open()
        begun = self._now()
        try:
            result = await self._writer.submit(job)
        except CommitFailed as error:
            self.tally.errors[error.code] += 1
            self.health.failed("writes", error)
            raise
        except OwnershipLost as error:
            self.tally.errors[error.code] += 1
            raise
        self.tally.commit_seconds.add(self._now() - begun)
        self.health.worked("writes")
        return cast("T", result)

    async def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run a job on one consistent state that holds every write acknowledged before this call.

        It never waits for the writer, and cannot write (``apsw.ReadOnlyError``).

        Raises:
            ReadFailed: the disk failed.
            DatabaseClosed: `close` was called before.
        """
        self._require_open()
        begun = self._now()
        try:
            result = await self._readers.submit(job)
        except ReadFailed as error:
            self.tally.errors[error.code] += 1
            self.health.failed("reads", error)
            raise
        self.tally.read_seconds.add(self._now() - begun)
        self.health.worked("reads")
        return cast("T", result)

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[Snapshot]:
        """Hold one state over several reads: ``async with database.snapshot() as s: await s.read(job)``.

        Writers and other readers are not disturbed, but the WAL grows meanwhile, so be brief. At
        most `SNAPSHOTS` are open at once; then this waits.

        Raises:
            ReadFailed: the disk failed.
            DatabaseClosed: `close` was called before.
        """
        async with self._snapshot_slots:
            self._require_open()
            lane = _lane("snapshot", inline=isinstance(self._writer, InlineLane), batch=1)
            self._snapshots.add(lane)  # before it starts, so that `close` does not miss it
            try:
                await lane.start(partial(HeldReader, self._place))
                yield Snapshot(lane)
            finally:
                await lane.close()
                self._snapshots.discard(lane)

    async def close(self) -> None:
        """Finish the jobs that were handed in, end snapshots, release the file; may be called again."""
        self._closed = True
        for lane in list(self._snapshots):
            await lane.close()
        await self._readers.close()
        # Last, so that its connection is the one that moves the WAL into the file.
        await self._writer.close()

    def abandon(self) -> None:
        """Let go of the file as a crash does (``inline`` only): waiting jobs are dropped, the WAL stays.

        The callers of dropped jobs are cancelled. Afterwards the file can be opened again, as after a crash.

        Raises:
            StorageError: this database has threads, which cannot be stopped half-way.
        """
        lanes = [*self._snapshots, self._readers, self._writer]
        inline = [lane for lane in lanes if isinstance(lane, InlineLane)]
        if len(inline) < len(lanes):
            raise StorageError("Only a database opened with inline=True can be abandoned; use close().")
        self._closed = True
        for lane in inline:
            lane.abandon()

    def _require_open(self) -> None:
        if self._closed:
            raise DatabaseClosed


def _lane(name: str, *, inline: bool, batch: int) -> Lane:
    closed = "snapshot" if name == "snapshot" else "database"
    if inline:
        return InlineLane(batch=batch, closed=closed)
    return ThreadLane(f"midstream-{name}", batch=batch, closed=closed)
