"""Disks that are full, fail at fsync, or let no file grow, and files that somebody else holds: real ones."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.faults.outage import outage

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""
"""A program that keeps everybody else from writing until its input ends."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if not made or made.returncode:
        pytest.skip("no tmpfs can be mounted here; the limit of a file's length is tested instead")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S607  # where mount was found


async def test_a_disk_that_is_full_refuses_writes_serves_reads_and_recovers(small_disk: Path) -> None:
    """A file system without a byte left, and then with some again."""
    async with outage(small_disk / "chat.db") as case:
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        await case.fails()
        filler.unlink()
        await case.works_again()


async def test_a_file_that_may_not_grow_refuses_writes_serves_reads_and_recovers(tmp_path: Path) -> None:
    """The write itself fails: RLIMIT_FSIZE, as a quota does."""
    path = tmp_path / "chat.db"
    async with outage(path) as case:
        limit = path.with_name("chat.db-wal").stat().st_size
        resource.prlimit(case.server.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        await case.fails()
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(case.server.pid, resource.RLIMIT_FSIZE, unlimited)
        await case.works_again()


async def test_an_fsync_that_fails_refuses_writes_serves_reads_and_recovers(tmp_path: Path) -> None:
    """The kernel says EIO to every fsync, by strace."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not there; the same is tested between SQLite and its files")
    async with outage(tmp_path / "chat.db") as case:
        tracer = await asyncio.create_subprocess_exec(
            *(strace, "-f", "-p", str(case.server.pid), "-e", "trace=fsync,fdatasync", "-o", os.devnull),
            *("-e", "inject=fsync,fdatasync:error=EIO"),
            stdout=DEVNULL,
            stderr=PIPE,
        )
        assert tracer.stderr is not None
        said = await tracer.stderr.readline()
        if b"attached" not in said:
            await tracer.wait()
            pytest.skip(f"strace may not attach here: {said.decode().strip()}")
        await case.fails()
        tracer.send_signal(signal.SIGINT)
        await tracer.communicate()
        await case.works_again()


async def test_a_file_that_another_process_locks_refuses_writes_serves_reads_and_recovers(
    tmp_path: Path,
) -> None:
    """A shell in a transaction, say; a write waits for it for two seconds, then it is refused."""
    path = tmp_path / "chat.db"
    async with outage(path) as case:
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLD, str(path), stdin=PIPE, stdout=PIPE
        )
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        await case.fails(tries=1)
        assert holder.stdin is not None
        holder.stdin.close()
        assert await holder.wait() == 0
        await case.works_again()
