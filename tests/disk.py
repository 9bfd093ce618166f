"""A disk that breaks when a test says so, and that remembers what power loss would leave.

It stands between SQLite and the real files (an apsw VFS over the system's own), so that what runs is the real
SQLite. Give a database ``vfs=disk.name``.
"""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import itertools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from typing import Literal

import apsw

FileKind = Literal["main", "wal", "journal", "other"]

_KINDS: dict[int, FileKind] = {
    apsw.SQLITE_OPEN_MAIN_DB: "main",
    apsw.SQLITE_OPEN_WAL: "wal",
    apsw.SQLITE_OPEN_MAIN_JOURNAL: "journal",
}
_numbers = itertools.count(1)
SECTOR = 512
"""Bytes that a disk writes whole or not at all."""


class Fault(Enum):
    """A way in which a disk fails: the operation, the error's kind, and SQLite's extended code."""

    WRITE_ERROR = ("write", apsw.IOError, apsw.SQLITE_IOERR_WRITE)
    DISK_FULL = ("write", apsw.FullError, apsw.SQLITE_FULL)
    FSYNC_ERROR = ("sync", apsw.IOError, apsw.SQLITE_IOERR_FSYNC)
    READ_ERROR = ("read", apsw.IOError, apsw.SQLITE_IOERR_READ)
    OPEN_ERROR = ("open", apsw.CantOpenError, apsw.SQLITE_CANTOPEN)

    def __init__(self, operation: str, kind: type[apsw.Error], code: int) -> None:
        self.operation = operation
        self.kind = kind
        self.extended_code = code

    def error(self) -> apsw.Error:
        """Make the error that SQLite is to see."""
        error = self.kind("injected")
        error.extendedresult = self.extended_code  # type: ignore[attr-defined]  # not in apsw's stubs
        return error


@dataclass(slots=True)
class _Armed:
    fault: Fault
    file: FileKind
    after: int
    times: int | None


@dataclass(slots=True)
class Platter:
    """One file as the hardware has it: what an fsync made certain, and what was written since.

    What was not synced may be there after the power was lost, or not, or in part, and in any order.
    """

    certain: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list[tuple[int, bytes | None]])
    """Offsets and what was written there; None where the file was cut off there."""
    is_certain: bool = False
    """Whether its name is on the disk."""

    def sync(self) -> None:
        """Make all that was written certain."""
        for offset, data in self.unsynced:
            self._apply(self.certain, offset, data)
        self.unsynced.clear()
        self.is_certain = True

    def after_power_loss(self, chance: Random | None) -> bytes:
        """Return what is there: with chance some of what was not synced, torn between sectors; else none."""
        left = bytearray(self.certain)
        if chance is not None:
            for offset, data in self.unsynced:
                fate = chance.choice(["whole", "lost", "torn"])
                if data is None:
                    if fate == "whole":
                        self._apply(left, offset, data)
                    continue
                for start in range(0, len(data), SECTOR):
                    if fate == "whole" or (fate == "torn" and chance.random() < 0.5):
                        self._apply(left, offset + start, data[start : start + SECTOR])
        return bytes(left)

    @staticmethod
    def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
        if data is None:
            del content[offset:]
            return
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data


class Disk(apsw.VFS):
    """A disk with faults on demand; use it through `broken_disk`, or `unregister` it yourself.

    Attributes:
        name: what to give as ``vfs``.
        injected: how many operations have failed by order so far.
    """

    def __init__(self, *, remember: bool = False) -> None:
        """Register the disk. With `remember` it knows what an fsync made certain, for `after_power_loss`."""
        self.name = f"disk-{next(_numbers)}"
        self.injected = 0
        self._armed: list[_Armed] = []
        self._lock = threading.Lock()  # SQLite calls from the writer's thread and the readers'
        self._remember = remember
        self._platters: dict[str, Platter] = {}
        super().__init__(self.name, base="")

    def fail(self, fault: Fault, *, file: FileKind = "wal", after: int = 0, times: int | None = None) -> None:
        """Let operations of one kind of file fail: the first `after` pass, then `times` fail (None: all)."""
        with self._lock:
            self._armed.append(_Armed(fault, file, after, times))

    def repair(self) -> None:
        """Let everything work again."""
        with self._lock:
            self._armed.clear()

    def after_power_loss(self, directory: Path, chance: Random | None = None) -> None:
        """Write what a loss of power now would leave into a directory.

        Without ``chance`` the harshest disk that keeps its promises: each file as at its last fsync. With it,
        what was written since is there, or not, or torn between its sectors.
        """
        with self._lock:
            for name, platter in self._platters.items():
                if platter.is_certain:
                    (directory / Path(name).name).write_bytes(platter.after_power_loss(chance))

    def check(self, operation: str, file: FileKind) -> None:
        """Raise the fault that is armed for this operation, if any; called by the disk's files."""
        with self._lock:
            for armed in self._armed:
                if armed.fault.operation != operation or armed.file != file or armed.times == 0:
                    continue
                if armed.after > 0:
                    armed.after -= 1
                    continue
                if armed.times is not None:
                    armed.times -= 1
                self.injected += 1
                raise armed.fault.error()

    def opened(self, name: str, content: bytes) -> None:
        """Note a file as it was found; called by the disk's files."""
        with self._lock:
            if name not in self._platters:
                # what was there before is taken to be certain; a new file is not, not even its name
                self._platters[name] = Platter(bytearray(content), is_certain=bool(content))

    def wrote(self, name: str, offset: int, data: bytes | None) -> None:
        """Note what was written, or where the file was cut off; called by the disk's files."""
        with self._lock:
            self._platters.setdefault(name, Platter()).unsynced.append((offset, data))

    def synced(self, name: str) -> None:
        """Note that all of a file is certain now; called by the disk's files."""
        with self._lock:
            self._platters.setdefault(name, Platter()).sync()

    @property
    def remembers(self) -> bool:
        """Whether the files are to tell what happens to them."""
        return self._remember

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file that asks this disk before each operation."""
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's name and order
        """Delete a file, for good."""
        super().xDelete(filename, syncdir)
        with self._lock:
            self._platters.pop(filename, None)


class _File(apsw.VFSFile):
    """One open file of a `Disk`."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = (name.filename() if isinstance(name, apsw.URIFilename) else name) or ""
        self._kind: FileKind = _kind_of(flags[0])
        disk.check("open", self._kind)
        super().__init__("", name, flags)
        self._is_kept = disk.remembers and self._kind != "other"
        if self._is_kept:
            # Through this very handle: closing another one of the same file would drop SQLite's locks.
            size = super().xFileSize()
            disk.opened(self._name, super().xRead(size, 0) if size else b"")

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        self._disk.check("read", self._kind)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.check("write", self._kind)
        super().xWrite(data, offset)
        if self._is_kept:
            self._disk.wrote(self._name, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        super().xTruncate(newsize)
        if self._is_kept:
            self._disk.wrote(self._name, newsize, None)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.check("sync", self._kind)
        super().xSync(flags)
        if self._is_kept:
            self._disk.synced(self._name)


def _kind_of(flags: int) -> FileKind:
    for flag, kind in _KINDS.items():
        if flags & flag:
            return kind
    return "other"


@contextmanager
def broken_disk(*, remember: bool = False) -> Generator[Disk]:
    """Give a `Disk` that works until told otherwise, and that is gone afterwards; close databases before."""
    disk = Disk(remember=remember)
    try:
        yield disk
    finally:
        disk.unregister()
