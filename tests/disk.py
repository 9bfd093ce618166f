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
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

import apsw

FileKind = Literal["main", "wal", "journal", "other"]

_KINDS: dict[int, FileKind] = {
    apsw.SQLITE_OPEN_MAIN_DB: "main",
    apsw.SQLITE_OPEN_WAL: "wal",
    apsw.SQLITE_OPEN_MAIN_JOURNAL: "journal",
}
_numbers = itertools.count(1)


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


class Disk(apsw.VFS):
    """A disk with faults on demand; use it through `broken_disk`, or `unregister` it yourself.

    Attributes:
        name: what to give as ``vfs``.
        injected: how many operations have failed by order so far.
    """

    def __init__(self, *, remember: bool = False) -> None:
        """Register the disk. With `remember` each fsync keeps a copy of the file, for `after_power_loss`."""
        self.name = f"disk-{next(_numbers)}"
        self.injected = 0
        self._armed: list[_Armed] = []
        self._lock = threading.Lock()  # SQLite calls from the writer's thread and the readers'
        self._remember = remember
        self._durable: dict[str, bytes] = {}
        super().__init__(self.name, base="")

    def fail(self, fault: Fault, *, file: FileKind = "wal", after: int = 0, times: int | None = None) -> None:
        """Let operations of one kind of file fail: the first `after` pass, then `times` fail (None: all)."""
        with self._lock:
            self._armed.append(_Armed(fault, file, after, times))

    def repair(self) -> None:
        """Let everything work again."""
        with self._lock:
            self._armed.clear()

    def after_power_loss(self, directory: Path) -> None:
        """Write what is certain to be on the platters now into a directory: each file as at its last fsync.

        The harshest disk that keeps its promises: nothing that was not synced survives.
        """
        with self._lock:
            for name, content in self._durable.items():
                (directory / Path(name).name).write_bytes(content)

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

    def synced(self, name: str, content: bytes) -> None:
        """Note what an fsync made certain; called by the disk's files."""
        with self._lock:
            self._durable[name] = content

    @property
    def remembers(self) -> bool:
        """Whether an fsync is to tell `synced` what the file holds."""
        return self._remember

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file that asks this disk before each operation."""
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's name and order
        """Delete a file, for good."""
        super().xDelete(filename, syncdir)
        with self._lock:
            self._durable.pop(filename, None)


class _File(apsw.VFSFile):
    """One open file of a `Disk`."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = (name.filename() if isinstance(name, apsw.URIFilename) else name) or ""
        self._kind: FileKind = _kind_of(flags[0])
        disk.check("open", self._kind)
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        self._disk.check("read", self._kind)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.check("write", self._kind)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.check("sync", self._kind)
        super().xSync(flags)
        if self._disk.remembers:
            # Through this very handle: closing another one of the same file would drop SQLite's locks.
            self._disk.synced(self._name, super().xRead(super().xFileSize(), 0))


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
