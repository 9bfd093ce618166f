"""Databases for the storage tests: real SQLite, in both ways of running jobs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Protocol

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest

from midstream.server.storage.connection import Synchronous
from midstream.server.storage.database import Database
from tests.disk import Disk, broken_disk
from tests.server.storage.jobs import Mode


class OpenDatabase(Protocol):
    """Opens ``a.db`` of the test's directory with a table ``t (x INTEGER)``; closed when the test ends."""

    async def __call__(
        self,
        *,
        vfs: str | None = None,
        synchronous: Synchronous = "FULL",
        readers: int = 2,
        migrate: Callable[[apsw.Connection], None] = ...,
    ) -> Database:
        """Open it."""
        ...


def make_table(connection: apsw.Connection) -> None:
    """Migrate: one table of numbers."""
    connection.execute("CREATE TABLE IF NOT EXISTS t (x INTEGER)")


@pytest.fixture(params=["threads", "inline"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """Both ways of running jobs, which give the same promises."""
    return "inline" if request.param == "inline" else "threads"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the test's database is."""
    return tmp_path / "a.db"


@pytest.fixture
def disk() -> Generator[Disk]:
    """A disk that works until told otherwise; ``vfs=disk.name`` puts a database on it."""
    with broken_disk(remember=True) as disk:
        yield disk


@pytest.fixture
async def open_database(disk: Disk, path: Path, mode: Mode) -> AsyncGenerator[OpenDatabase]:
    """Open databases that are closed, on a disk that works again, when the test ends."""
    opened: list[Database] = []

    async def open_database(
        *,
        vfs: str | None = None,
        synchronous: Synchronous = "FULL",
        readers: int = 2,
        migrate: Callable[[apsw.Connection], None] = make_table,
    ) -> Database:
        database = await Database.open(
            path,
            migrate=migrate,
            readers=readers,
            inline=mode == "inline",
            vfs=vfs,
            synchronous=synchronous,
        )
        opened.append(database)
        return database

    yield open_database
    disk.repair()
    for database in opened:
        await database.close()
