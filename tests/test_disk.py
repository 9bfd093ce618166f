"""The breakable disk breaks what it was told to, and nothing else."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.disk import Disk, Fault, broken_disk


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk that remembers what was synced."""
    with broken_disk(remember=True) as disk:
        yield disk


def connect(path: Path, disk: Disk) -> apsw.Connection:
    """Open a database in WAL mode with one table, and commits that are fsynced."""
    connection = apsw.Connection(str(path), vfs=disk.name)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
    return connection


def count(connection: apsw.Connection) -> object:
    """Count the rows."""
    return connection.execute("SELECT count(*) FROM t").get


@pytest.mark.parametrize("fault", [Fault.WRITE_ERROR, Fault.DISK_FULL, Fault.FSYNC_ERROR])
def test_an_armed_fault_hits_that_many_commits_and_then_no_more(
    tmp_path: Path, disk: Disk, fault: Fault
) -> None:
    """The second of three commits fails with the fault's own error, the others are stored."""
    connection = connect(tmp_path / "a.db", disk)
    connection.execute("INSERT INTO t VALUES (1)")
    disk.fail(fault, times=1)
    with pytest.raises(fault.kind):
        connection.execute("INSERT INTO t VALUES (2)")
    connection.execute("INSERT INTO t VALUES (3)")
    assert (count(connection), disk.injected) == (2, 1)
    connection.close()


def test_a_fault_lets_the_first_operations_pass(tmp_path: Path, disk: Disk) -> None:
    """With ``after`` one fsync, the first commit is stored and the second fails."""
    connection = connect(tmp_path / "a.db", disk)
    disk.fail(Fault.FSYNC_ERROR, after=1)
    connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(apsw.IOError):
        connection.execute("INSERT INTO t VALUES (2)")
    disk.repair()
    connection.close()


def test_power_loss_keeps_what_was_synced_and_only_that(tmp_path: Path, disk: Disk) -> None:
    """A commit with synchronous=FULL survives, one with OFF does not."""
    left = tmp_path / "left"
    left.mkdir()
    connection = connect(tmp_path / "a.db", disk)
    connection.execute("INSERT INTO t VALUES (1)")
    connection.pragma("synchronous", "OFF")
    connection.execute("INSERT INTO t VALUES (2)")
    disk.after_power_loss(left)
    assert count(connection) == 2
    connection.close()
    rest = apsw.Connection(str(left / "a.db"))
    assert rest.execute("SELECT x FROM t").get == 1
    rest.close()
