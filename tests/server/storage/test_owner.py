"""One process owns a database: a lock keeps others out, a generation stops an owner that was overtaken."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest

from midstream.server.storage.database import Database
from midstream.server.storage.errors import DatabaseLocked, DatabaseUnusable, OwnershipLost
from tests.server.storage import writing_process
from tests.server.storage.conftest import OpenDatabase, make_table
from tests.server.storage.jobs import Mode, insert, outcome, stored

ACKNOWLEDGED = 400
"""Writes that a process must have acknowledged before it is killed."""


@asynccontextmanager
async def owner_process(path: Path, *arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start another process that owns the database; it is killed when the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        writing_process.__file__,
        str(path),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await said(process) == "open"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(process: asyncio.subprocess.Process) -> str:
    """Wait for the next word of a process."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def test_a_second_owner_is_refused_at_once_and_told_who_has_it(
    open_database: OpenDatabase, path: Path
) -> None:
    """Also in the same process; the error names the lock file and the owner, who goes on undisturbed."""
    database = await open_database()
    with pytest.raises(DatabaseLocked) as refused:
        await open_database()
    assert str(path.with_name("a.db.lock")) in str(refused.value)
    assert refused.value.owner == str(os.getpid())
    assert await database.write(insert(1)) == 1


async def test_another_process_is_refused_until_the_owner_is_gone(
    open_database: OpenDatabase, path: Path
) -> None:
    """The lock of another process holds, is named with that process, and dies with it."""
    async with owner_process(path, "hold") as process:
        with pytest.raises(DatabaseLocked, match=f"process {process.pid} "):
            await open_database()
        process.send_signal(signal.SIGKILL)
        await process.wait()
        database = await open_database()
        assert database.generation == 2


async def test_two_names_of_one_file_share_the_lock(
    open_database: OpenDatabase, path: Path, mode: Mode
) -> None:
    """A symbolic link to the database is the same database."""
    await open_database()
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(DatabaseLocked):
        await Database.open(link, migrate=make_table, inline=mode == "inline")


async def test_every_opening_raises_the_generation(open_database: OpenDatabase) -> None:
    """One, two, three: stored, so that an overtaken owner can be told."""
    generations: list[int] = []
    for _ in range(3):
        database = await open_database()
        generations.append(database.generation)
        await database.close()
    assert generations == [1, 2, 3]


@pytest.mark.parametrize(
    ("theft", "found"),
    [("UPDATE owner SET generation = 7", 7), ("DELETE FROM owner", None)],
    ids=["overtaken", "row gone"],
)
async def test_an_owner_whose_generation_is_gone_never_writes_again(
    open_database: OpenDatabase, path: Path, theft: str, found: int | None
) -> None:
    """The whole batch and all later writes fail, even if the number comes back; reading still works."""
    database = await open_database()
    await database.write(insert(1))
    thief = apsw.Connection(str(path))
    thief.execute(theft)
    lost = await asyncio.gather(*(outcome(database.write(insert(number))) for number in (2, 3)))
    assert [type(error) for error in lost] == [OwnershipLost] * 2
    assert isinstance(lost[0], OwnershipLost)
    assert (lost[0].ours, lost[0].found) == (1, found)
    thief.execute("INSERT INTO owner VALUES (1, 1) ON CONFLICT DO UPDATE SET generation = 1")
    thief.close()
    with pytest.raises(OwnershipLost):
        await database.write(insert(4))
    assert await database.read(stored) == [1]


@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced"])
async def test_an_owner_whose_file_is_gone_never_writes_again(
    open_database: OpenDatabase, path: Path, fate: str
) -> None:
    """What went into a file without a name would be lost with the process; the error says what happened."""
    database = await open_database()
    await database.write(insert(1))
    befall(path, fate)
    for number in (2, 3):
        with pytest.raises(OwnershipLost, match="deleted, moved or replaced"):
            await database.write(insert(number))
    if fate == "moved":
        befall(path, "moved back")
        with pytest.raises(OwnershipLost):
            await database.write(insert(4))
    assert await database.read(stored) == [1]


async def test_a_deleted_lock_file_does_not_make_two_owners(open_database: OpenDatabase, path: Path) -> None:
    """The lock file is deleted and another owner comes: it writes, the first one cannot."""
    first = await open_database()
    path.with_name("a.db.lock").unlink()
    second = await open_database()
    assert second.generation == first.generation + 1
    with pytest.raises(OwnershipLost):
        await first.write(insert(1))
    await second.write(insert(2))
    assert await first.read(stored) == await second.read(stored) == [2]


async def test_a_file_that_is_no_database_is_refused_and_kept(
    open_database: OpenDatabase, path: Path
) -> None:
    """The error says so, and the file is byte for byte what it was."""
    text = b"These are my notes, not a database.\n" * 100
    write(path, text)
    with pytest.raises(DatabaseUnusable, match="not a SQLite database"):
        await open_database()
    assert content(path) == text


@pytest.mark.parametrize("place", ["missing/a.db", "."], ids=["no directory", "a directory"])
async def test_a_place_that_cannot_hold_a_database_is_refused(tmp_path: Path, mode: Mode, place: str) -> None:
    """No directory is made, and a directory is no file."""
    with pytest.raises(DatabaseUnusable):
        await Database.open(tmp_path / place, migrate=make_table, inline=mode == "inline")
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("mode", ["threads"])
async def test_a_killed_owner_keeps_every_acknowledged_write(open_database: OpenDatabase, path: Path) -> None:
    """Three times in a row: kill -9 under load, then everything that was acknowledged is there, once."""
    acknowledged: set[int] = set()
    for _ in range(3):
        async with owner_process(path) as process:
            acknowledged |= {int(await said(process)) for _ in range(ACKNOWLEDGED)}
            process.send_signal(signal.SIGKILL)
            rest, _ = await process.communicate()
        acknowledged |= {
            int(word) for word in rest.decode().split("\n")[:-1]
        }  # what was said before the kill
        database = await open_database(migrate=writing_process.make_table)
        there = await database.read(stored)
        await database.close()
        assert acknowledged <= set(there)
        assert len(there) == len(set(there))


def befall(path: Path, fate: str) -> None:
    """Do to a database file what a person may do by mistake."""
    other = path.with_name("other.db")
    if fate == "deleted":
        path.unlink()
    elif fate == "moved":
        path.replace(other)
    else:
        if fate == "replaced":
            shutil.copy(path, other)
        other.replace(path)


def write(path: Path, text: bytes) -> None:
    """Write a file."""
    path.write_bytes(text)


def content(path: Path) -> bytes:
    """Read a file."""
    return path.read_bytes()
