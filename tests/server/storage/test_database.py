"""What a database promises to those who write and read: order, grouping, atomicity, one state a read."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest

from midstream.server.storage.database import BATCH_JOBS, SNAPSHOTS
from midstream.server.storage.errors import DatabaseClosed
from tests.server.storage.conftest import OpenDatabase
from tests.server.storage.jobs import (
    Gate,
    Mode,
    count_commits,
    insert,
    insert_then_raise,
    outcome,
    stored,
    write_together,
    writer_held,
)


async def test_jobs_run_in_the_order_in_which_they_were_handed_in(open_database: OpenDatabase) -> None:
    """A thousand concurrent writes are stored in the order of their calls."""
    database = await open_database()
    await asyncio.gather(*(database.write(insert(number)) for number in range(1000)))
    assert await database.read(stored) == list(range(1000))


async def test_writes_that_wait_together_share_a_commit_up_to_the_bound(
    open_database: OpenDatabase, mode: Mode
) -> None:
    """Two full batches and one job more are three commits, and with the held writer's own, four."""
    database = await open_database()
    commits = await count_commits(database)
    jobs = [insert(number) for number in range(2 * BATCH_JOBS + 1)]
    assert await write_together(database, mode, *jobs) == list(range(2 * BATCH_JOBS + 1))
    assert commits() == (3 if mode == "inline" else 4)


async def test_a_job_that_raises_is_undone_alone(open_database: OpenDatabase, mode: Mode) -> None:
    """Of three jobs in one commit the second fails: its caller gets that very error, the others stay."""
    database = await open_database()
    commits = await count_commits(database)
    error = ValueError("no")
    outcomes = await write_together(database, mode, insert(1), insert_then_raise(2, error), insert(3))
    assert outcomes == [1, error, 3]
    assert await database.read(stored) == [1, 3]
    assert commits() == (1 if mode == "inline" else 2)


async def test_a_broken_constraint_is_its_own_callers_error(open_database: OpenDatabase) -> None:
    """SQLite's errors about a job's statements are not disk errors: they come as they are."""
    database = await open_database()
    await database.write(lambda connection: connection.execute("CREATE UNIQUE INDEX u ON t (x)"))
    await database.write(insert(1))
    with pytest.raises(apsw.ConstraintError):
        await database.write(insert(2, 1))
    assert await database.read(stored) == [1]


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
async def test_no_error_of_a_job_stops_the_writer(
    open_database: OpenDatabase, mode: Mode, error: BaseException
) -> None:
    """Whatever a job raises goes to its caller, and the job after it is stored."""
    database = await open_database()

    async with writer_held(database, mode):
        first = asyncio.create_task(outcome(database.write(insert_then_raise(1, error))))
        second = asyncio.create_task(database.write(insert(2)))
        await asyncio.sleep(0)
    assert await first is error
    assert await second == 2
    assert await database.read(stored) == [2]


async def test_a_job_that_raises_stop_iteration_says_so(open_database: OpenDatabase) -> None:
    """A future cannot carry StopIteration, so its caller gets an error that names it."""
    database = await open_database()
    with pytest.raises(RuntimeError, match="StopIteration"):
        await database.write(insert_then_raise(1, StopIteration()))
    assert await database.read(stored) == []


@pytest.mark.parametrize("mode", ["threads"])  # inline, nothing can look in between
async def test_nothing_is_acknowledged_before_commit_has_returned(open_database: OpenDatabase) -> None:
    """While COMMIT is under way the write is not done, and no reader sees it."""
    database = await open_database()
    gate = Gate()

    def hold() -> bool:
        gate.wait()
        return False

    def job(connection: apsw.Connection) -> str:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.set_commit_hook(hold)
        return "done"

    write = asyncio.create_task(database.write(job))
    await gate.reached()
    assert await database.read(stored) == []
    assert not write.done()
    gate.open()
    assert await write == "done"
    assert await database.read(stored) == [1]


async def test_a_read_sees_every_write_acknowledged_before_it(open_database: OpenDatabase) -> None:
    """After each of two hundred writes, both readers at once see it."""
    database = await open_database()
    for number in range(200):
        await database.write(insert(number))
        first, second = await asyncio.gather(database.read(stored), database.read(stored))
        assert first == second == list(range(number + 1))


@pytest.mark.parametrize("mode", ["threads"])  # inline, jobs cannot overlap
async def test_a_read_does_not_wait_for_the_writer(open_database: OpenDatabase) -> None:
    """A read that begins while a batch runs ends while it runs."""
    database = await open_database()
    await database.write(insert(1))
    async with writer_held(database, "threads"):
        assert await database.read(stored) == [1]


@pytest.mark.parametrize("mode", ["threads"])  # inline, jobs cannot overlap
async def test_a_read_job_sees_one_state_throughout(open_database: OpenDatabase) -> None:
    """A write acknowledged in the middle of a read job does not show in it, but in the next one."""
    database = await open_database()
    gate = Gate()

    def twice(connection: apsw.Connection) -> tuple[list[object], list[object]]:
        before = stored(connection)
        gate.wait()
        return before, stored(connection)

    reading = asyncio.create_task(database.read(twice))
    await gate.reached()
    await database.write(insert(1))
    gate.open()
    assert await reading == ([], [])
    assert await database.read(stored) == [1]


async def test_a_read_cannot_write(open_database: OpenDatabase) -> None:
    """A reading job that writes fails, and stores nothing."""
    database = await open_database()
    with pytest.raises(apsw.ReadOnlyError):
        await database.read(insert(1))
    assert await database.read(stored) == []


async def test_a_read_that_raises_gives_its_error_and_the_next_one_works(open_database: OpenDatabase) -> None:
    """A reader goes on after a job of its own failed."""
    database = await open_database(readers=1)
    with pytest.raises(apsw.SQLError):
        await database.read(lambda connection: connection.execute("SELECT nothing FROM nowhere"))
    assert await database.read(stored) == []


async def test_a_cursor_that_a_caller_keeps_does_not_hold_later_reads_in_the_past(
    open_database: OpenDatabase,
) -> None:
    """A half-read cursor would keep its connection on an old state; the connection is replaced."""
    database = await open_database(readers=1)
    await database.write(insert(1, 2))

    def half_read(connection: apsw.Connection) -> apsw.Cursor:
        cursor = connection.execute("SELECT x FROM t")
        next(cursor)
        return cursor

    kept_by_reader = await database.read(half_read)
    kept_by_writer = await database.write(half_read)
    await database.write(insert(3))
    assert await database.read(stored) == [1, 2, 3]
    for kept in (kept_by_reader, kept_by_writer):
        with pytest.raises(apsw.CursorClosedError):
            next(kept)


async def test_a_cursor_that_an_error_keeps_does_not_harm_the_batch(
    open_database: OpenDatabase, mode: Mode
) -> None:
    """A job fails while its writing statement gives rows: that statement ends, the other jobs are stored."""
    database = await open_database()

    def fail_half_way(connection: apsw.Connection) -> None:
        cursor = connection.execute("INSERT INTO t VALUES (2), (3) RETURNING x")
        next(cursor)
        raise ValueError(cursor.description)

    first, second, third = await write_together(database, mode, insert(1), fail_half_way, insert(4))
    assert (first, type(second), third) == (1, ValueError, 4)
    assert await database.read(stored) == [1, 4]


async def test_a_snapshot_stays_the_same_while_writes_go_on(open_database: OpenDatabase) -> None:
    """Two snapshots each keep the state of their beginning; reads beside them see the newest."""
    database = await open_database()
    await database.write(insert(1))
    async with database.snapshot() as first:
        await database.write(insert(2))
        async with database.snapshot() as second:
            await database.write(insert(3))
            assert await first.read(stored) == [1]
            assert await second.read(stored) == [1, 2]
            assert await first.read(stored) == [1]
            assert await database.read(stored) == [1, 2, 3]


async def test_a_snapshot_holds_from_its_start_not_from_its_first_read(open_database: OpenDatabase) -> None:
    """A write between the start and the first read does not show."""
    database = await open_database()
    async with database.snapshot() as snapshot:
        await database.write(insert(1))
        assert await snapshot.read(stored) == []


async def test_a_snapshot_gives_a_jobs_error_and_goes_on(open_database: OpenDatabase) -> None:
    """An error of one read leaves the snapshot where it was."""
    database = await open_database()
    async with database.snapshot() as snapshot:
        await database.write(insert(1))
        with pytest.raises(apsw.SQLError):
            await snapshot.read(lambda connection: connection.execute("SELECT nothing FROM nowhere"))
        assert await snapshot.read(stored) == []


async def test_a_snapshot_that_has_ended_reads_nothing(open_database: OpenDatabase) -> None:
    """After its block a snapshot refuses, by its own name."""
    database = await open_database()
    async with database.snapshot() as snapshot:
        pass
    with pytest.raises(DatabaseClosed, match="snapshot"):
        await snapshot.read(stored)


async def test_snapshots_past_the_bound_wait_for_a_place(open_database: OpenDatabase) -> None:
    """The fifth snapshot begins when one of four ends, and reads do not wait for either."""
    database = await open_database()
    began = asyncio.Event()

    async def one_more() -> list[object]:
        async with database.snapshot() as snapshot:
            began.set()
            return await snapshot.read(stored)

    async with AsyncExitStack() as held:
        for _ in range(SNAPSHOTS):
            await held.enter_async_context(database.snapshot())
        waiting = asyncio.create_task(one_more())
        await database.write(insert(1))
        assert await database.read(stored) == [1]
        assert not began.is_set()
    assert await waiting == [1]


async def test_a_cancelled_caller_leaves_its_job_whole_and_the_others_alone(
    open_database: OpenDatabase, mode: Mode
) -> None:
    """Of three waiting callers the middle one is cancelled: the others are answered, its rows stay one."""
    database = await open_database()
    async with writer_held(database, mode):
        writes = [asyncio.create_task(database.write(insert(n, n + 1))) for n in (10, 20, 30)]
        await asyncio.sleep(0)
        writes[1].cancel()
    assert await asyncio.gather(*writes[::2]) == [11, 31]
    with pytest.raises(asyncio.CancelledError):
        await writes[1]
    assert await database.read(stored) in ([10, 11, 30, 31], [10, 11, 20, 21, 30, 31])
    await database.write(insert(40))


async def test_a_job_that_raises_after_its_caller_was_cancelled_harms_nobody(
    open_database: OpenDatabase, mode: Mode
) -> None:
    """An error that nobody waits for is dropped, and the next job of the batch is answered."""
    database = await open_database()
    async with writer_held(database, mode):
        first = asyncio.create_task(database.write(insert_then_raise(1, ValueError("no"))))
        second = asyncio.create_task(database.write(insert(2)))
        await asyncio.sleep(0)
        first.cancel()
    assert await second == 2
    assert await database.read(stored) == [2]


async def test_a_cancelled_reader_leaves_the_others_alone(open_database: OpenDatabase) -> None:
    """A reading caller is cancelled while its job waits; the next read is answered."""
    database = await open_database(readers=1)
    reads = [asyncio.create_task(database.read(stored)) for _ in range(3)]
    await asyncio.sleep(0)
    reads[1].cancel()
    assert await reads[0] == await reads[2] == []
