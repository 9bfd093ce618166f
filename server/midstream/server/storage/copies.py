"""Copies of a database file, made while it is in use: as it is at one moment, and whole or not at all."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import os
from contextlib import suppress
from pathlib import Path

import apsw

from midstream.server.storage.errors import CopyFailed

PARTIAL = ".partial"
"""How the name of a copy ends that is being made: what is left of one that was interrupted may be deleted."""
_SHOWN = 5
"""Problems that an error names."""


def copy(source: apsw.Connection, destination: Path, *, check: bool) -> int:
    """Copy what a connection sees now into a new file, and return its bytes.

    Nobody is kept from writing meanwhile, in this process or another. The file stands under its name only
    when it is complete, on the disk, and, with ``check``, was found sound. What it needs lies in it alone:
    it has no log beside it.

    Raises:
        CopyFailed: there is such a file already, it cannot be written, or the copy is not sound; then
            nothing is left of it.

    """
    partial = destination.with_name(destination.name + PARTIAL)
    if destination.exists():
        raise CopyFailed(destination, "there is such a file already. Give another name, or move it away")
    if not destination.parent.is_dir():
        raise CopyFailed(destination, f"there is no folder {destination.parent}. Make it first")
    try:
        _forget(partial)
        _fill(source, partial)
        if check:
            _require_sound(partial, destination)
        size = _settle(partial, destination)
    except (apsw.Error, OSError) as cause:
        _forget(partial)
        raise CopyFailed(destination, _why(cause)) from cause
    except BaseException:
        _forget(partial)
        raise
    return size


def problems_of(path: Path) -> list[str]:
    """Return what SQLite finds wrong with a file that nobody uses; nothing where it is sound."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return damages(connection)
    finally:
        connection.close(force=True)


def damages(connection: apsw.Connection) -> list[str]:
    """Return what SQLite finds wrong with what a connection sees."""
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return [str(error)]
    return [] if found == ["ok"] else [problem for lines in found for problem in lines.splitlines()]


def _require_sound(partial: Path, destination: Path) -> None:
    problems = problems_of(partial)
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        raise CopyFailed(destination, f"SQLite finds it damaged, and so is what it was copied from: {shown}")


def _fill(source: apsw.Connection, partial: Path) -> None:
    copied = apsw.Connection(str(partial), vfs=source.open_vfs)
    try:
        with copied.backup("main", source, "main") as backup:
            # in one go: a copy in pieces begins anew at every commit in between
            while not backup.done:
                backup.step(-1)
        # the copy of a log's file would want a log beside it; a server begins its own
        copied.pragma("journal_mode", "delete")
    finally:
        copied.close(force=True)


def _settle(partial: Path, destination: Path) -> int:
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
    partial.rename(destination)
    folder = os.open(destination.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return size


def _forget(partial: Path) -> None:
    for name in (partial, *(partial.with_name(partial.name + end) for end in ("-journal", "-wal", "-shm"))):
        with suppress(FileNotFoundError):
            name.unlink()


def _why(cause: apsw.Error | OSError) -> str:
    if isinstance(cause, apsw.FullError):
        return "the disk is full. Free some space, or copy to another disk"
    if isinstance(cause, OSError):
        return f"{cause.strerror}. Its folder must exist, and this user must be allowed to write there"
    return f"SQLite says {str(cause)!r}"
