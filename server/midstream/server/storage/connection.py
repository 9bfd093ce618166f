"""How a connection to the database file is opened and set up (SPEC 9)."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import apsw
import apsw.bestpractice

from midstream.server.storage.errors import DatabaseUnusable

BUSY_TIMEOUT_MS = 2_000
"""How long a statement waits for a lock of another program (a shell, say) before it fails. So long
the readers of a session that writes wait, too.

The server itself never makes itself wait: it has one writer, and in WAL mode nothing blocks a reader.
"""

JOURNAL_SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes that the WAL file is cut back to after a long snapshot has let it grow."""

CHECKPOINT_PAGES = 4_000
"""Pages of the WAL (16 MiB) after which it is moved into the file. Commits of a thousand sessions change four
pages each, most of them again and again: at SQLite's own 1,000, every fourth batch of 64 moves them all and
syncs twice more. On a busy disk one batch in ten took longer than 27 ms; so it is 17."""

MAPPED_BYTES = 1024 * 1024 * 1024
"""Bytes of the file that readers map into memory. A page of messages lies on as many pages of the file, and
to copy each from the kernel took as long as to find it. The writer maps nothing: an error of its disk is an
error, and no signal."""

Synchronous = Literal["FULL", "OFF"]
"""FULL: an acknowledged write survives power loss. OFF: for simulations, which only pretend to crash."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is, and how its connections are made; safe to share between threads."""

    path: Path
    vfs: str | None
    synchronous: Synchronous

    @classmethod
    def at(cls, path: str | Path, *, vfs: str | None, synchronous: Synchronous) -> Place:
        """Name a file, absolutely, without touching it.

        Raises:
            DatabaseUnusable: `path` is ``:memory:``, empty or a ``file:`` URI.
        """
        name = str(path)
        if name in {"", ".", ":memory:"} or name.startswith("file:"):
            raise DatabaseUnusable(
                repr(name),
                "it is not the path of a file. A database in memory or by URI cannot be shared between the"
                " writer and its readers, nor survive a crash; give a path such as chat.db.",
            )
        return cls(Path(path).absolute(), vfs, synchronous)

    def connect(self, *, create: bool) -> apsw.Connection:
        """Open a connection that may write; nothing of the file is changed yet.

        With ``create`` False a missing file is an error: an owner whose file vanished must not start anew.
        """
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        return self._set_up(flags)

    def connect_reader(self) -> apsw.Connection:
        """Open a connection that cannot write; the writer's must be open already."""
        connection = self._set_up(apsw.SQLITE_OPEN_READONLY)
        connection.pragma("query_only", "ON")
        connection.pragma("mmap_size", MAPPED_BYTES)
        return connection

    def _set_up(self, flags: int) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), flags=flags, vfs=self.vfs)
        # `bestpractice.apply` would change every connection of the process, also those of the program
        # that embeds this server; so its parts are applied here one by one. Log forwarding is left out for
        # the same reason, WAL and optimize because they write: that waits until the file is ours.
        apsw.bestpractice.connection_busy_timeout(connection, BUSY_TIMEOUT_MS)
        apsw.bestpractice.connection_enable_foreign_keys(connection)
        apsw.bestpractice.connection_dqs(connection)
        apsw.bestpractice.connection_recursive_triggers(connection)
        connection.pragma("synchronous", self.synchronous)
        return connection


def begin_wal(connection: apsw.Connection, place: Place) -> None:
    """Switch the file to write-ahead logging, where that was not done before.

    Raises:
        DatabaseUnusable: the file system has no shared memory for a WAL (some network mounts).
    """
    apsw.bestpractice.connection_wal(connection)
    mode = connection.pragma("journal_mode")
    if mode != "wal":
        raise DatabaseUnusable(
            place.path,
            f"its file system allows only journal mode {mode!r}, and write-ahead logging is needed."
            " Move it to a local disk.",
        )
    # what a savepoint may have to restore: beyond 64 KiB SQLite would write each page of a batch to a file
    connection.pragma("temp_store", "memory")
    connection.pragma("journal_size_limit", JOURNAL_SIZE_LIMIT)
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)


def refresh_statistics(connection: apsw.Connection) -> None:
    """Let SQLite look again at what its query planner assumes; it writes, so only an owner may."""
    apsw.bestpractice.connection_optimize(connection)


def is_idle(connection: apsw.Connection) -> bool:
    """Tell whether no transaction is open, not even one that a forgotten cursor holds open.

    A connection that is not idle is stuck on an old snapshot, and is to be replaced.
    """
    try:
        return not connection.in_transaction and connection.txn_state() == apsw.SQLITE_TXN_NONE
    except apsw.ConnectionClosedError:
        return False
