"""Backups of a server that runs, and what a restored one means; copies before migrations; the check."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest

from midstream.protocol.calls import Page, PromptResult, SessionResult
from midstream.server.storage import checks
from midstream.server.storage.database import Database
from midstream.server.storage.errors import DatabaseUnusable
from midstream.server.storage.schema import SCHEMA_VERSION, STEPS, copy_before, migrate
from tests.cli.processes import started
from tests.disk import Fault, broken_disk
from tests.end_to_end.process import ROOT, ServerProcess
from tests.end_to_end.stage import prompt_params
from tests.faults.outage import SESSION, outage
from tests.laws.line import Line
from tests.laws.reader import Reader

NEXT = "CREATE TABLE more (x INTEGER) STRICT"
"""A step that a later version might make."""


async def test_a_backup_of_a_server_that_writes_is_whole_and_disturbs_nobody(tmp_path: Path) -> None:
    """Prompts are answered meanwhile, what was acknowledged before is in it, and the check finds it sound."""
    async with outage(tmp_path / "chat.db") as case:
        for number in range(3):
            before = list(case.accepted)
            copied_all = asyncio.Event()
            writing = asyncio.create_task(_write(case.prompt, copied_all))
            async with started("backup", "chat.db", f"{number}.db", folder=tmp_path) as backup:
                ended = await backup.ended()
            copied_all.set()
            await writing
            assert ended.code == 0, ended
            assert "sound" in ended.out
            async with started("check", f"{number}.db", folder=tmp_path) as check:
                checked = await check.ended()
            assert checked.code == 0, checked
            copied = apsw.Connection(str(tmp_path / f"{number}.db"))
            stored = {row[0] for row in copied.execute("SELECT message_id FROM messages")}
            copied.close()
            assert set(before) <= stored
        assert not left(tmp_path, "*.partial*")
        assert not case.events()
        async with started("check", "chat.db", folder=tmp_path) as check:
            assert (await check.ended()).code == 0


async def _write(prompt: Callable[[], Awaitable[None]], ended: asyncio.Event) -> None:
    while not ended.is_set():
        await prompt()


def left(folder: Path, pattern: str) -> list[str]:
    """Return the names of files that are left in a folder."""
    return [one.name for one in folder.glob(pattern)]


async def test_who_saw_more_than_a_restored_backup_has_starts_anew(tmp_path: Path) -> None:
    """Its cursor is told by epoch and durable version, so it gets a reset, and ends equal."""
    path = tmp_path / "chat.db"
    async with outage(path) as case:
        reader = Reader(await Line.open(case.server.url), SESSION)
        await reader.join()
        async with started("backup", "chat.db", "kept.db", folder=tmp_path) as backup:
            assert (await backup.ended()).code == 0
        for _ in range(3):
            await case.prompt()
        await reader.line.until(lambda: len(reader.replica.messages()) >= 6)
        await case.server.stop()
    for name in ("chat.db-wal", "chat.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "kept.db").replace(path)
    server = await ServerProcess.start(path, "flood")
    await reader.rejoin(await Line.open(server.url))
    assert reader.tags[-1] == "reset"
    line = await Line.open(server.url)
    await line.ask(PromptResult, "prompt", **prompt_params("8 new", SESSION, "new", "interrupt"))
    await reader.line.until(lambda: any(one.message_id == "new" for one in reader.replica.messages()))
    fresh = Reader(await Line.open(server.url), SESSION)
    await fresh.join()
    await reader.until_version(fresh.replica.version)
    await fresh.until_version(reader.replica.version)
    for one in (reader, fresh):
        await one.line.close()
    await line.close()
    await server.kill()


async def test_a_copy_is_never_put_upon_another_file_nor_left_in_part(tmp_path: Path) -> None:
    """A name that is taken, a folder that is not there: one line, and nothing new."""
    async with outage(tmp_path / "chat.db"):
        (tmp_path / "there.db").write_text("mine")
        for name, said in (("there.db", "already"), ("nowhere/a.db", "no folder")):
            async with started("backup", "chat.db", name, folder=tmp_path) as backup:
                ended = await backup.ended()
            assert ended.code == 1
            assert said in ended.err
            assert ended.err.count("\n") == 1
        assert (tmp_path / "there.db").read_text() == "mine"
        assert not left(tmp_path, "*.partial*")


# Migrations


async def older(path: Path) -> None:
    """Write a database of this schema, with a session in it."""
    server = await ServerProcess.start(path, "flood")
    line = await Line.open(server.url)
    await line.ask(SessionResult, "sessions.create", session_id=SESSION)
    await line.ask(PromptResult, "prompt", **prompt_params("8 word", SESSION, "m"))
    await line.close()
    await server.stop()


def schema_of(path: Path) -> object:
    """Return the schema that a file says it has."""
    connection = apsw.Connection(str(path))
    try:
        return connection.pragma("user_version")
    finally:
        connection.close()


async def migrated(path: Path, vfs: str | None = None) -> None:
    """Open with the next schema, and close."""
    await (await Database.open(path, migrate=partial(migrate, steps=(*STEPS, NEXT)), vfs=vfs)).close()


async def test_a_migration_keeps_a_copy_that_the_older_program_still_reads(tmp_path: Path) -> None:
    """Beside the file, complete and sound."""
    path = tmp_path / "chat.db"
    await older(path)
    await migrated(path)
    kept = copy_before(path, SCHEMA_VERSION + 1)
    assert (schema_of(path), schema_of(kept)) == (SCHEMA_VERSION + 1, SCHEMA_VERSION)
    copied = apsw.Connection(str(kept))
    assert list(checks.problems(copied)) == []
    copied.close()
    server = await ServerProcess.start(kept, "flood")
    line = await Line.open(server.url)
    page = await line.ask(Page, "messages", session_id=SESSION)
    assert page.items[0].message_id == "m"
    await line.close()
    await server.stop()


async def test_a_file_without_data_is_migrated_without_a_copy(tmp_path: Path) -> None:
    """There is nothing to go back to."""
    path = tmp_path / "chat.db"
    await (await Database.open(path, migrate=migrate)).close()
    await migrated(path)
    assert schema_of(path) == SCHEMA_VERSION + 1
    assert not left(tmp_path, "*before*")


async def test_a_disk_that_is_full_during_a_migration_leaves_the_old_file(tmp_path: Path) -> None:
    """It does not start, says why, and leaves no half of a copy; later it starts."""
    path = tmp_path / "chat.db"
    await older(path)
    before = path.read_bytes()
    with broken_disk() as disk:
        disk.fail(Fault.DISK_FULL, file="main")
        with pytest.raises(DatabaseUnusable, match="disk is full"):
            await migrated(path, disk.name)
        disk.repair()
        assert path.read_bytes() == before
        assert not left(tmp_path, "*before*")
        await migrated(path, disk.name)
    assert schema_of(path) == SCHEMA_VERSION + 1


KILLED = """
import asyncio, os, signal, sys
from functools import partial
import apsw
from midstream.server.storage import schema
from midstream.server.storage.database import Database

def dies(connection):
    schema.migrate(connection, steps=(*schema.STEPS, sys.argv[2]))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(Database.open(sys.argv[1], migrate=dies))
"""
"""A program that is killed when it has migrated, and not committed."""


async def test_a_kill_in_mid_migration_leaves_the_old_file_and_one_copy(tmp_path: Path) -> None:
    """The next start migrates as if nothing had been; the copy that was made is used."""
    path = tmp_path / "chat.db"
    await older(path)
    for _ in range(2):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, str(path), NEXT, cwd=ROOT, env=dict(os.environ)
        )
        assert await process.wait() == -signal.SIGKILL
        assert schema_of(path) == SCHEMA_VERSION
    await migrated(path)
    assert schema_of(path) == SCHEMA_VERSION + 1
    assert left(tmp_path, "*before*") == [copy_before(path, SCHEMA_VERSION + 1).name]
    found = apsw.Connection(str(path))
    assert list(checks.problems(found)) == []
    found.close()
