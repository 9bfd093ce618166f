"""What a database promises when the disk does not keep its own promises."""

from __future__ import annotations

from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest

from midstream.server.storage.errors import (
    CommitFailed,
    DatabaseUnusable,
    OwnershipLost,
    ReadFailed,
    StorageError,
)
from tests.disk import Disk, Fault
from tests.server.storage.conftest import OpenDatabase
from tests.server.storage.jobs import Job, Mode, insert, outcome, stored, write_together

COMMIT_FAULTS = [Fault.WRITE_ERROR, Fault.DISK_FULL, Fault.FSYNC_ERROR]


def spill(connection: apsw.Connection) -> None:
    """Write far more than a tiny page cache holds, so that SQLite writes before COMMIT."""
    connection.pragma("cache_size", 10)
    for _ in range(500):
        connection.execute("INSERT INTO t VALUES (zeroblob(3000))")


def hide_error(job: Job) -> Job:
    """Run a job, and swallow whatever SQLite says."""

    def hiding(connection: apsw.Connection) -> str:
        try:
            job(connection)
        except apsw.Error:
            return "nothing happened"
        return "all is well"

    return hiding


@pytest.mark.parametrize("fault", COMMIT_FAULTS, ids=lambda fault: fault.name)
async def test_a_commit_that_fails_fails_all_its_jobs_and_later_commits_work(
    open_database: OpenDatabase, disk: Disk, mode: Mode, fault: Fault
) -> None:
    """Each caller gets its own error with SQLite's cause, nothing shows to readers, the writer goes on."""
    database = await open_database(vfs=disk.name)
    await database.write(insert(1))

    def break_disk(_: apsw.Connection) -> None:
        disk.fail(fault)  # inside the batch, so that a batch before it is not hit

    failed = await write_together(database, mode, insert(2), break_disk, insert(3))
    assert [type(error) for error in failed] == [CommitFailed] * 3
    assert len(set(map(id, failed))) == 3
    for error in failed:
        assert isinstance(error, CommitFailed)
        assert isinstance(error.cause, fault.kind)
        assert error.__cause__ is error.cause
    assert await database.read(stored) == [1]
    disk.repair()
    assert await write_together(database, mode, insert(4), insert(5)) == [4, 5]
    assert await database.read(stored) == [1, 4, 5]


@pytest.mark.parametrize("fault", COMMIT_FAULTS, ids=lambda fault: fault.name)
async def test_the_writer_survives_a_disk_that_stays_broken(
    open_database: OpenDatabase, disk: Disk, fault: Fault
) -> None:
    """Ten writes in a row fail, each with its error; the first one after the repair is stored, alone."""
    database = await open_database(vfs=disk.name)
    disk.fail(fault)
    for number in range(10):
        with pytest.raises(CommitFailed):
            await database.write(insert(number))
    disk.repair()
    await database.write(insert(11))
    assert await database.read(stored) == [11]
    assert disk.injected >= 10


@pytest.mark.parametrize("hidden", ["raised", "hidden"])
async def test_a_disk_error_inside_a_job_fails_the_batch_that_sqlite_gave_up(
    open_database: OpenDatabase, disk: Disk, mode: Mode, hidden: str
) -> None:
    """SQLite rolls back by itself, whether the job lets the error out or not: no caller hears of success."""
    database = await open_database(vfs=disk.name)

    def break_disk(_: apsw.Connection) -> None:
        disk.fail(Fault.DISK_FULL)

    job = hide_error(spill) if hidden == "hidden" else spill
    failed = await write_together(database, mode, insert(1), break_disk, job, insert(2))
    assert [type(error) for error in failed] == [CommitFailed] * 4
    assert isinstance(failed[0], CommitFailed)
    assert isinstance(failed[0].cause, StorageError if hidden == "hidden" else apsw.FullError)
    disk.repair()
    assert await write_together(database, mode, insert(3), insert(4)) == [3, 4]
    assert await database.read(stored) == [3, 4]


async def test_a_disk_error_that_costs_one_job_only_is_a_failed_commit_for_its_caller(
    open_database: OpenDatabase, mode: Mode
) -> None:
    """Where SQLite keeps the transaction, the other jobs are stored."""
    database = await open_database()

    def unlucky(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (2)")
        raise Fault.READ_ERROR.error()

    first, second, third = await write_together(database, mode, insert(1), unlucky, insert(3))
    assert isinstance(second, CommitFailed)
    assert (first, third) == (1, 3)
    assert await database.read(stored) == [1, 3]


async def test_a_batch_that_cannot_begin_fails_and_may_be_tried_again(
    open_database: OpenDatabase, path: Path
) -> None:
    """Another program holds the write lock longer than the writer waits: a retryable error, not a hang."""
    database = await open_database()
    await database.write(lambda connection: connection.set_busy_timeout(0))
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CommitFailed, match="BusyError") as failed:
        await database.write(insert(1))
    assert failed.value.retryable
    other.execute("ROLLBACK")
    other.close()
    await database.write(insert(1))
    assert await database.read(stored) == [1]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "COMMIT; BEGIN"])
async def test_a_job_that_ends_the_transaction_fails_its_batch(
    open_database: OpenDatabase, mode: Mode, end: str
) -> None:
    """A job must not end what is not its own; the error reaches everybody, and the writer goes on."""
    database = await open_database()
    failed = await write_together(database, mode, insert(1), lambda c: c.execute(end), insert(2))
    assert [type(error) for error in failed] == [CommitFailed] * 3
    assert await write_together(database, mode, insert(3), insert(4)) == [3, 4]


async def test_a_job_that_closes_the_connection_fails_its_batch(
    open_database: OpenDatabase, mode: Mode
) -> None:
    """The writer opens another connection for the next batch."""
    database = await open_database()
    failed = await write_together(database, mode, insert(1), lambda c: c.close(force=True), insert(2))
    assert [type(error) for error in failed] == [CommitFailed] * 3
    await database.write(insert(3))
    assert await database.read(stored) == [3]


async def test_a_writer_that_cannot_open_its_connection_again_fails_until_it_can(
    open_database: OpenDatabase, disk: Disk
) -> None:
    """A connection must be replaced while files cannot be opened: first errors, then work."""
    database = await open_database(vfs=disk.name)
    await database.write(insert(1))
    disk.fail(Fault.OPEN_ERROR, file="main")
    await outcome(database.write(lambda connection: connection.close(force=True)))
    for _ in range(3):
        with pytest.raises(CommitFailed, match="CantOpenError"):
            await database.write(insert(2))
    disk.repair()
    await database.write(insert(3))
    assert await database.read(stored) == [1, 3]


async def test_a_vanished_file_is_not_replaced_by_an_empty_one(
    open_database: OpenDatabase, path: Path
) -> None:
    """A writer that must open its connection again does not create the file anew."""
    database = await open_database()

    def vanish(connection: apsw.Connection) -> None:
        connection.close(force=True)
        path.unlink()

    with pytest.raises(CommitFailed):
        await database.write(vanish)
    with pytest.raises(OwnershipLost):
        await database.write(insert(1))
    assert not [file for file in path.parent.iterdir() if file.name == "a.db"]


async def test_a_read_that_the_disk_fails_may_be_tried_again(open_database: OpenDatabase, disk: Disk) -> None:
    """The reader gives a retryable error, and goes on when the disk does."""
    database = await open_database(vfs=disk.name, readers=1)
    await database.write(insert(1))
    disk.fail(Fault.READ_ERROR)
    with pytest.raises(ReadFailed) as failed:
        await database.read(stored)
    assert failed.value.retryable
    assert isinstance(failed.value.cause, apsw.IOError)
    disk.repair()
    assert await database.read(stored) == [1]


async def test_a_snapshot_never_goes_on_with_a_newer_state(open_database: OpenDatabase, disk: Disk) -> None:
    """After a disk error, or when a job ended its transaction, it either shows its own state or fails."""
    database = await open_database(vfs=disk.name)
    await database.write(insert(1))
    async with database.snapshot() as snapshot:
        await database.write(insert(2))
        disk.fail(Fault.READ_ERROR)
        assert isinstance(await outcome(snapshot.read(stored)), ReadFailed)
        disk.repair()
        after = await outcome(snapshot.read(stored))
        assert after == [1] or isinstance(after, ReadFailed)
        await outcome(snapshot.read(lambda connection: connection.execute("ROLLBACK")))
        assert isinstance(await outcome(snapshot.read(stored)), ReadFailed)


async def test_a_snapshot_that_cannot_be_opened_says_so(open_database: OpenDatabase, disk: Disk) -> None:
    """The error may be retried, and the next snapshot opens."""
    database = await open_database(vfs=disk.name)
    disk.fail(Fault.OPEN_ERROR, file="main")
    with pytest.raises(ReadFailed):
        await database.snapshot().__aenter__()
    disk.repair()
    async with database.snapshot() as snapshot:
        assert await snapshot.read(stored) == []


async def test_a_reader_that_cannot_be_opened_leaves_the_file_free(
    open_database: OpenDatabase, disk: Disk
) -> None:
    """Opening fails after the writer owns the file: it is let go, and opens after the repair."""
    disk.fail(Fault.OPEN_ERROR, file="main", after=1)
    with pytest.raises(DatabaseUnusable):
        await open_database(vfs=disk.name)
    disk.repair()
    database = await open_database(vfs=disk.name)
    await database.write(insert(1))


@pytest.mark.parametrize("fault", COMMIT_FAULTS, ids=lambda fault: fault.name)
async def test_a_disk_that_fails_at_opening_leaves_the_file_free(
    open_database: OpenDatabase, disk: Disk, fault: Fault
) -> None:
    """Opening says what is wrong and holds nothing; after the repair it succeeds."""
    disk.fail(fault, file="main")
    disk.fail(fault, file="journal")
    with pytest.raises(DatabaseUnusable):
        await open_database(vfs=disk.name)
    disk.repair()
    database = await open_database(vfs=disk.name)
    await database.write(insert(1))
    assert await database.read(stored) == [1]


@pytest.mark.parametrize("mode", ["inline"])  # a crash can be played inline only
async def test_a_failed_commit_comes_back_after_a_crash_whole_or_not_at_all(
    open_database: OpenDatabase, disk: Disk, mode: Mode
) -> None:
    """The fsync failed, but the WAL was written: a crash may bring the batch back, never a part of it."""
    database = await open_database(vfs=disk.name)
    await database.write(insert(1))
    disk.fail(Fault.FSYNC_ERROR)
    failed = await write_together(database, mode, insert(2), insert(3))
    assert [type(error) for error in failed] == [CommitFailed] * 2
    disk.repair()
    database.abandon()
    again = await open_database(vfs=disk.name)
    assert await again.read(stored) in ([1], [1, 2, 3])


@pytest.mark.parametrize("mode", ["inline"])  # a crash can be played inline only
async def test_the_next_commit_settles_that_a_failed_one_is_not_there(
    open_database: OpenDatabase, disk: Disk
) -> None:
    """What a later commit was put upon stays what it was read as, also after a crash."""
    database = await open_database(vfs=disk.name)
    await database.write(insert(1))
    disk.fail(Fault.FSYNC_ERROR, times=1)
    with pytest.raises(CommitFailed):
        await database.write(insert(*range(100, 2000)))
    await database.write(insert(2))
    database.abandon()
    again = await open_database(vfs=disk.name)
    assert await again.read(stored) == [1, 2]


@pytest.mark.parametrize(("synchronous", "kept"), [("FULL", list(range(50))), ("OFF", [])])
async def test_power_loss_keeps_every_acknowledged_write_unless_told_otherwise(
    open_database: OpenDatabase, disk: Disk, tmp_path: Path, synchronous: str, kept: list[int]
) -> None:
    """With FULL each acknowledged write is on the platters, with OFF (for simulations) none is."""
    database = await open_database(vfs=disk.name, synchronous="FULL" if synchronous == "FULL" else "OFF")
    for number in range(50):
        await database.write(insert(number))
    left = tmp_path / "left"
    left.mkdir()
    disk.after_power_loss(left)
    rest = apsw.Connection(str(left / "a.db"))
    tables = [name for (name,) in rest.execute("SELECT name FROM sqlite_schema WHERE name = 't'")]
    assert (stored(rest) if tables else []) == kept
    rest.close()
