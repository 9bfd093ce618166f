"""What storage can refuse or fail to do (SPEC 9).

These errors stay inside the server: a session answers its callers with a protocol error and logs
this one. Each has a stable ``code``, says whether the same work may be tried again
(``retryable``), and keeps in ``__cause__`` what SQLite or the system said.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class StorageError(Exception):
    """The root of all storage errors."""

    code: ClassVar[str] = "storage"
    retryable: ClassVar[bool] = False


class CommitFailed(StorageError):
    """A batch of writes could not be committed: the disk failed, was full, or the file was locked.

    Every job of the batch gets this error. Whether its data is stored is not known: what this process
    reads next does not show it, but a crash before the next commit can bring it back. So the
    caller drops what it holds in memory, reads again, and then may try again.
    """

    code = "commit_failed"
    retryable = True

    def __init__(self, cause: BaseException) -> None:
        """Keep what SQLite said; `cause` also becomes ``__cause__``."""
        super().__init__(
            f"A commit failed ({_said(cause)}), so its writes are not confirmed. Read the data again before"
            " writing it again; if this goes on, check the disk for space and errors."
        )
        self.cause = cause
        self.__cause__ = cause


class ReadFailed(StorageError):
    """The disk failed under a read; nothing was changed, and the read may be tried again."""

    code = "read_failed"
    retryable = True

    def __init__(self, cause: BaseException) -> None:
        """Keep what SQLite said; `cause` also becomes ``__cause__``."""
        super().__init__(
            f"A read failed ({_said(cause)}). Try again; if this goes on, check the disk for errors."
        )
        self.cause = cause
        self.__cause__ = cause


class OwnershipLost(StorageError):
    """The database is another process's now, or gone; this one may never write to it again."""

    code = "ownership_lost"

    def __init__(self, ours: int, found: int | None) -> None:
        """Give this owner's generation and the one that the file holds (none: no owner row)."""
        holds = f"is at generation {found}" if found is not None else "names no owner"
        super().__init__(
            f"The database {holds}, this process opened it as generation {ours}: another process has taken it"
            " over. Nothing was written. Stop this process; one process owns a database at a time."
        )
        self.ours = ours
        self.found = found

    def again(self) -> OwnershipLost:
        """Return an equal error, for the next caller."""
        return OwnershipLost(self.ours, self.found)


class FileLost(OwnershipLost):
    """The path names another file than the one that this process opened, or none."""

    def __init__(self, path: Path, ours: int) -> None:
        """Name the path, and this owner's generation."""
        StorageError.__init__(
            self,
            f"{path} is not the file any more that this process opened: it was deleted, moved or replaced."
            " Nothing was written: it would be lost with this process. Stop this process, put the file right,"
            " and start again.",
        )
        self.path = path
        self.ours = ours
        self.found = None

    def again(self) -> FileLost:
        """Return an equal error, for the next caller."""
        return FileLost(self.path, self.ours)


class DatabaseLocked(StorageError):
    """Another process owns the database now; nothing was opened."""

    code = "database_locked"

    def __init__(self, path: Path, lock_file: Path, owner: str) -> None:
        """Name the database, its lock file, and the owner's process id (empty if not known)."""
        who = f"process {owner}" if owner else "another process"
        super().__init__(
            f"{path} is in use: {who} holds the lock on {lock_file}. Stop that process, or give this one"
            " another database. Do not delete the lock file: its holder would lose the database in mid-work."
        )
        self.path = path
        self.lock_file = lock_file
        self.owner = owner


class DatabaseUnusable(StorageError):
    """The file cannot serve as a database here: not SQLite, a newer schema, no rights, no directory."""

    code = "database_unusable"

    def __init__(self, path: Path | str, problem: str) -> None:
        """Name the database; `problem` says what is wrong with it and what to do."""
        super().__init__(f"{path} cannot be used as a database: {problem}")
        self.path = path
        self.problem = problem


class CopyFailed(StorageError):
    """A copy of a database was not made; nothing is left of it."""

    code = "copy_failed"

    def __init__(self, path: Path, problem: str) -> None:
        """Name the copy; ``problem`` says what is wrong and what to do."""
        super().__init__(f"The copy {path} was not made: {problem}.")
        self.path = path
        self.problem = problem


class DatabaseClosed(StorageError):
    """The database (or the snapshot) was closed before this work was handed in; it was not done."""

    code = "database_closed"

    def __init__(self, what: str = "database") -> None:
        """Say what was closed: ``database`` or ``snapshot``."""
        super().__init__(f"The {what} is closed, so nothing was done. Open it again first.")


def _said(cause: BaseException) -> str:
    return f"{type(cause).__name__}: {cause}"
