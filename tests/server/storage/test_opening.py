"""How a database begins and ends: opening, migration, closing, and the crash that a simulation plays."""

from __future__ import annotations

import asyncio
from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest

from midstream.server.storage.database import Database
from midstream.server.storage.errors import DatabaseClosed, DatabaseUnusable, StorageError
from tests.server.storage.conftest import OpenDatabase, make_table
from tests.server.storage.jobs import (
    Gate,
    Mode,
    insert,
    stored,
    writer_held,
)


async def test_close_finishes_what_was_handed_in_and_refuses_what_comes_later(
    open_database: OpenDatabase, mode: Mode
) -> None:
    """Waiting writes and reads are answered by the time close returns; later work is refused."""
    database = await open_database()
    async with writer_held(database, mode):
        write = asyncio.create_task(database.write(insert(1)))
        read = asyncio.create_task(database.read(stored))
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        for late in (database.write(insert(2)), database.read(stored)):
            with pytest.raises(DatabaseClosed):
                await late
        with pytest.raises(DatabaseClosed):
            await database.snapshot().__aenter__()
    await closing
    await asyncio.sleep(0)  # the answers were given before; their tasks run now
    assert write.done()
    assert read.done()
    assert await write == 1
    assert await read in ([], [1])
    again = await open_database()
    assert await again.read(stored) == [1]


async def test_close_moves_the_wal_into_the_file_and_may_be_called_again(
    open_database: OpenDatabase, path: Path
) -> None:
    """After close, by two callers at once, one plain file holds everything, beside it the lock file."""
    database = await open_database()
    await database.write(insert(1))
    await asyncio.gather(database.close(), database.close())
    await database.close()
    assert names(path) == ["a.db", "a.db.lock"]


async def test_close_ends_an_open_snapshot(open_database: OpenDatabase) -> None:
    """A snapshot does not keep the database open; its later reads are refused."""
    database = await open_database()
    async with database.snapshot() as snapshot:
        await database.close()
        with pytest.raises(DatabaseClosed):
            await snapshot.read(stored)


async def test_connections_are_durable_and_strict(open_database: OpenDatabase) -> None:
    """WAL, fsync at each commit and foreign keys are in force, and readers are read-only twice over."""
    database = await open_database()

    def settings(connection: apsw.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "query_only")
        return [connection.pragma(name) for name in names]

    full = 2
    assert await database.write(settings) == ["wal", full, 1, 0]
    assert await database.read(settings) == ["wal", full, 1, 1]


async def test_a_large_batch_writes_no_page_to_a_temporary_file(open_database: OpenDatabase) -> None:
    """The writer keeps what a savepoint may have to restore in memory; a reader's sorts may be long."""
    database = await open_database()
    memory = 2
    assert await database.write(lambda connection: connection.pragma("temp_store")) == memory
    assert await database.read(lambda connection: connection.pragma("temp_store")) == 0


@pytest.mark.parametrize("name", [":memory:", "", "file:a.db?mode=memory"])
async def test_what_is_not_a_file_is_refused(name: str, mode: Mode) -> None:
    """A database in memory has no readers beside the writer and survives nothing: the error says so."""
    with pytest.raises(DatabaseUnusable, match="path of a file"):
        await Database.open(name, migrate=make_table, inline=mode == "inline")


async def test_a_database_without_readers_is_refused(open_database: OpenDatabase) -> None:
    """Its reads would wait for ever."""
    with pytest.raises(ValueError, match="readers is 0"):
        await open_database(readers=0)


async def test_the_migration_runs_in_one_transaction_that_is_undone_when_it_raises(
    open_database: OpenDatabase, path: Path
) -> None:
    """A refusal by the migration is raised as it is, the file stays byte for byte, and the lock is free."""
    await (await open_database()).close()
    before = content(path)

    def refuse(connection: apsw.Connection) -> None:
        connection.execute("DROP TABLE t")
        raise DatabaseUnusable(path, "its schema is newer than this program")

    with pytest.raises(DatabaseUnusable, match="newer"):
        await open_database(migrate=refuse)
    assert content(path) == before
    database = await open_database()
    assert await database.read(stored) == []


async def test_a_foreign_database_that_the_migration_refuses_is_not_touched(
    open_database: OpenDatabase, path: Path
) -> None:
    """The migration sees a file as it was found, and its refusal leaves even the journal mode alone."""
    foreign = apsw.Connection(str(path))
    foreign.execute("CREATE TABLE theirs (y)")
    foreign.close()
    before = content(path)

    def refuse(connection: apsw.Connection) -> None:
        assert [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")] == ["theirs"]
        raise DatabaseUnusable(path, "it belongs to another program")

    with pytest.raises(DatabaseUnusable, match="another program"):
        await open_database(migrate=refuse)
    assert content(path) == before


@pytest.mark.parametrize("mode", ["threads"])  # inline blocks by design
async def test_opening_does_not_block_the_event_loop(open_database: OpenDatabase) -> None:
    """A migration waits for the event loop to run, which it does."""
    gate = Gate()

    def migrate(connection: apsw.Connection) -> None:
        gate.wait()
        make_table(connection)

    opening = asyncio.create_task(open_database(migrate=migrate))
    await gate.reached()
    assert not opening.done()
    gate.open()
    assert await (await opening).read(stored) == []


@pytest.mark.parametrize("mode", ["threads"])  # inline, opening cannot be cancelled
async def test_an_opening_that_is_cancelled_leaves_the_file_free(open_database: OpenDatabase) -> None:
    """Cancel during the migration: when the cancellation is over, the next opening succeeds."""
    gate = Gate()
    opening = asyncio.create_task(open_database(migrate=lambda _: gate.wait()))
    await gate.reached()
    opening.cancel()
    await asyncio.sleep(0)
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await opening
    database = await open_database()
    assert await database.read(stored) == []


@pytest.mark.parametrize("mode", ["inline"])
async def test_an_abandoned_database_is_as_after_a_crash(open_database: OpenDatabase, path: Path) -> None:
    """Acknowledged writes are in the WAL that stays; waiting jobs are dropped, their callers cancelled."""
    database = await open_database()
    await database.write(insert(1))
    waiting = [asyncio.create_task(work) for work in (database.write(insert(2)), database.read(stored))]
    await asyncio.sleep(0)
    database.abandon()
    await asyncio.wait(waiting)
    assert all(task.cancelled() for task in waiting)
    assert path.with_name("a.db-wal").stat().st_size > 0
    with pytest.raises(DatabaseClosed):
        await database.write(insert(3))
    again = await open_database()
    assert await again.read(stored) == [1]


@pytest.mark.parametrize("mode", ["inline"])
async def test_a_snapshot_ends_with_the_database_that_is_abandoned(
    open_database: OpenDatabase, path: Path
) -> None:
    """No handle of it stays behind: the next owner's close is the last, and takes the WAL away."""
    database = await open_database()
    async with database.snapshot() as snapshot:
        database.abandon()
        with pytest.raises(DatabaseClosed):
            await snapshot.read(stored)
    await (await open_database()).close()
    assert names(path) == ["a.db", "a.db.lock"]


@pytest.mark.parametrize("mode", ["threads"])
async def test_a_database_with_threads_cannot_be_abandoned(open_database: OpenDatabase) -> None:
    """A thread cannot be stopped half-way; the database goes on."""
    database = await open_database()
    with pytest.raises(StorageError, match="inline"):
        database.abandon()
    assert await database.write(insert(1)) == 1


def content(path: Path) -> bytes:
    """Read a file."""
    return path.read_bytes()


def names(path: Path) -> list[str]:
    """Name what lies beside a file, itself included."""
    return sorted(file.name for file in path.parent.iterdir())
