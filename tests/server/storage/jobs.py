"""Jobs that the storage tests give to a database, and ways to hold its writer still."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from midstream.server.storage.database import Database

PATIENCE_S = 30.0
"""How long a thread waits for its test to let it go on before that fails; never reached when all is well."""

Job = Callable[[apsw.Connection], object]
Mode = Literal["threads", "inline"]
"""The two ways in which a database runs its jobs."""


def insert(*numbers: int) -> Job:
    """Insert the numbers, in this order, and give the last."""

    def job(connection: apsw.Connection) -> int:
        for number in numbers:
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        return numbers[-1]

    return job


def insert_then_raise(number: int, error: BaseException) -> Job:
    """Insert the number, then fail."""

    def job(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        raise error

    return job


def stored(connection: apsw.Connection) -> list[object]:
    """Give the numbers, in the order in which they were inserted."""
    return [number for (number,) in connection.execute("SELECT x FROM t ORDER BY rowid")]


async def count_commits(database: Database) -> Callable[[], int]:
    """Count the commits of the writer from now on; call the result for the number."""
    commits: list[None] = []

    def count() -> bool:
        commits.append(None)
        return False

    await database.write(lambda connection: connection.set_commit_hook(count))
    commits.clear()  # the commit that brought the hook
    return lambda: len(commits)


class Gate:
    """A place where a thread waits until the test lets it on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reached = asyncio.Event()
        self._open = threading.Event()

    def wait(self) -> None:
        """Wait, in the thread."""
        self._loop.call_soon_threadsafe(self._reached.set)
        if not self._open.wait(PATIENCE_S):
            raise TimeoutError("the test did not open the gate")

    async def reached(self) -> None:
        """Wait, in the test, until a thread waits at the gate."""
        await self._reached.wait()

    def open(self) -> None:
        """Let the thread on."""
        self._open.set()


@asynccontextmanager
async def writer_held(database: Database, mode: Mode) -> AsyncGenerator[None]:
    """Hold the writer inside a batch of its own, so that all that is handed in meanwhile waits together.

    A database without threads need not be held: what is handed in during one tick waits together anyway.
    """
    if mode == "inline":
        yield
        return
    gate = Gate()
    holding = asyncio.create_task(database.write(lambda _: gate.wait()))
    reached = asyncio.create_task(gate.reached())
    await asyncio.wait((reached, holding), return_when=asyncio.FIRST_COMPLETED)
    if holding.done():
        reached.cancel()
        holding.result()  # raises why the writer could not be held
    try:
        yield
    finally:
        gate.open()
        await holding


async def write_together(database: Database, mode: Mode, *jobs: Job) -> list[object]:
    """Hand the jobs in so that they share a batch; give each one's result, or its error."""
    async with writer_held(database, mode):
        writes = [asyncio.create_task(database.write(job)) for job in jobs]
        await asyncio.sleep(0)  # each task runs up to where its job is handed in
    return list(await asyncio.gather(*writes, return_exceptions=True))


async def outcome(work: Awaitable[object]) -> object:
    """Await, and give the result or the error, of whatever kind."""
    try:
        return await work
    except BaseException as error:  # noqa: BLE001 - any error is what is asked for
        return error
