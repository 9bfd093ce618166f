"""The tables, and how an older file becomes this one."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from midstream.server.storage.copies import copy
from midstream.server.storage.errors import CopyFailed, DatabaseUnusable

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLES = """
-- One row a session. status: live | forking (not to be seen yet) | deleted (the id is never given again).
CREATE TABLE sessions (
    session_no INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    revision INTEGER NOT NULL,
    title TEXT,
    metadata BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER,
    first_sequence INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    running_turn_id TEXT,
    pending_interactions INTEGER NOT NULL,
    version INTEGER NOT NULL,
    ceiling INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    generation INTEGER NOT NULL,
    dirty INTEGER NOT NULL,
    cleared_version INTEGER NOT NULL,
    last_time INTEGER NOT NULL,
    create_key TEXT UNIQUE,
    create_hash TEXT
) STRICT;
CREATE INDEX sessions_by_time ON sessions (updated_at, session_no) WHERE status = 'live';
CREATE INDEX sessions_running ON sessions (session_no) WHERE running_turn_id IS NOT NULL;

-- The epochs that ended: how far each came, and what of it was committed.
CREATE TABLE epochs (
    session_no INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    end_version INTEGER NOT NULL,
    last_commit INTEGER NOT NULL,
    PRIMARY KEY (session_no, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    session_no INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    turn_id TEXT,
    revision INTEGER NOT NULL,
    created_version INTEGER NOT NULL,
    role TEXT NOT NULL,
    visibility TEXT NOT NULL,
    state TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    origin BLOB,
    part_count INTEGER NOT NULL,
    is_open INTEGER NOT NULL,
    PRIMARY KEY (session_no, sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX messages_by_id ON messages (session_no, message_id);
CREATE INDEX messages_by_revision ON messages (session_no, revision);
CREATE INDEX messages_open ON messages (session_no) WHERE is_open;

-- A part is a row, so that a commit writes what changed and not the whole message again.
CREATE TABLE parts (
    session_no INTEGER NOT NULL,
    message_sequence INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session_no, message_sequence, sequence)
) STRICT;

-- Where each interaction is, so that a late answer can be told the outcome.
CREATE TABLE interactions (
    session_no INTEGER NOT NULL,
    interaction_id TEXT NOT NULL,
    message_sequence INTEGER NOT NULL,
    part_sequence INTEGER NOT NULL,
    PRIMARY KEY (session_no, interaction_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
    session_no INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session_no, turn_id)
) STRICT;
CREATE INDEX turns_by_revision ON turns (session_no, revision);

-- Every accepted input, for the life of the session: what makes a repeated prompt harmless.
CREATE TABLE inputs (
    session_no INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    subject TEXT NOT NULL,
    delivery TEXT NOT NULL,
    state TEXT NOT NULL,
    turn_id TEXT,
    accepted INTEGER NOT NULL,
    parts BLOB,
    PRIMARY KEY (session_no, message_id)
) STRICT;
CREATE INDEX inputs_queued ON inputs (session_no, accepted) WHERE state = 'queued';
"""

_APPROVAL_MODE = """
ALTER TABLE sessions ADD COLUMN approval_mode TEXT NOT NULL DEFAULT 'ask';
ALTER TABLE sessions ADD COLUMN approval_mode_by TEXT;
"""

_ATTACHMENTS = """
-- How far the remote agent of a session's running turn has come; what is left of an ended turn means nothing.
CREATE TABLE attachments (
    session_no INTEGER PRIMARY KEY,
    turn_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    n INTEGER NOT NULL,
    worker TEXT NOT NULL,
    instance TEXT NOT NULL,
    outcomes BLOB NOT NULL
) STRICT;
CREATE INDEX messages_by_turn ON messages (session_no, turn_id, sequence) WHERE turn_id IS NOT NULL;
"""

_TIME_CEILING = """
ALTER TABLE sessions ADD COLUMN time_ceiling INTEGER NOT NULL DEFAULT 0;
"""

_SUMMARIES = """
ALTER TABLE sessions ADD COLUMN summarized_through INTEGER NOT NULL DEFAULT 0;

-- What the messages of each closed segment said: derived, and no message.
CREATE TABLE summaries (
    session_no INTEGER NOT NULL,
    through_sequence INTEGER NOT NULL,
    from_sequence INTEGER NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    subject TEXT,
    PRIMARY KEY (session_no, through_sequence)
) STRICT;
"""

_LIST_ORDER = """
DROP INDEX sessions_by_time;
CREATE INDEX sessions_by_time ON sessions (updated_at DESC, session_id) WHERE status = 'live';
"""

_FEWER_ENTRIES = """
-- A commit of one of many sessions changes a page of each index that has an entry of it, and each page is
-- written twice, to the log and to the file. So the usual change, that of the newest message, has none here.
DROP INDEX messages_by_revision;
DROP INDEX messages_by_turn;
DROP INDEX turns_by_revision;
-- Whether a message changed when there was a newer one already, or may have.
ALTER TABLE messages ADD COLUMN changed_late INTEGER NOT NULL DEFAULT 1;
CREATE INDEX messages_changed_late ON messages (session_no, revision) WHERE changed_late;
CREATE INDEX messages_prompts ON messages (session_no, turn_id, sequence)
WHERE role = 'user' AND visibility = 'visible' AND turn_id IS NOT NULL;
ALTER TABLE turns ADD COLUMN is_running INTEGER NOT NULL DEFAULT 0;
CREATE INDEX turns_ended ON turns (session_no, revision) WHERE NOT is_running;
CREATE INDEX turns_running ON turns (session_no) WHERE is_running;
"""

_OWNERS = """
-- The subject that made the session; NULL where nobody did who had a token, or it was imported.
ALTER TABLE sessions ADD COLUMN owner TEXT;
-- The list of one of many subjects, without looking at the sessions of the others.
CREATE INDEX sessions_by_owner ON sessions (owner, updated_at DESC, session_id)
WHERE status = 'live' AND owner IS NOT NULL;
"""

STEPS = (
    _TABLES,
    _APPROVAL_MODE,
    _ATTACHMENTS,
    _TIME_CEILING,
    _SUMMARIES,
    _LIST_ORDER,
    _FEWER_ENTRIES,
    _OWNERS,
)
"""Each makes the schema of its number (1, 2, ...) out of the one before. What was released never changes."""
SCHEMA_VERSION = len(STEPS)

_STRANGERS = """
SELECT name FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name <> 'owner' ORDER BY name LIMIT 1
"""
"""A table that stands in a file without a schema; the owner's is made apart from the schema."""


def copy_before(database: Path, version: int) -> Path:
    """Return where the copy is kept that is made before a file gets a schema."""
    return database.with_name(f"{database.name}.before-schema-{version}")


def migrate(connection: apsw.Connection, *, steps: Sequence[str] = STEPS) -> None:
    """Create the tables in a new file, or bring an older one up. Runs inside the transaction that opens it.

    Of an older file that has sessions a copy is kept beside it first (:func:`copy_before`).

    Raises:
        DatabaseUnusable: the file was written by a newer midstream, or belongs to another program, or
            its copy cannot be made; nothing was changed.

    """
    (found,) = next(iter(connection.execute("PRAGMA user_version")))
    known = len(steps)
    if found > known:
        raise DatabaseUnusable(
            connection.filename,
            f"it has schema {found}, and this midstream knows up to {known}. "
            "Start it with the version that wrote it, or a newer one; or, to go back, start this one on the"
            f" copy that the newer one kept beside it (*.before-schema-{found}), without what came since.",
        )
    if found == 0:
        strangers = [str(name) for (name,) in connection.execute(_STRANGERS)]
        if strangers:
            raise DatabaseUnusable(
                connection.filename,
                f"it holds the table {strangers[0]!r}, and no schema of midstream: it belongs to another "
                "program. Give another path.",
            )
    if 0 < found < known:
        _keep_copy(connection, known)
    for step in steps[found:]:
        connection.execute(step)
    if found < known:
        connection.execute(f"PRAGMA user_version = {known}")


def _keep_copy(connection: apsw.Connection, version: int) -> None:
    """Keep what an older program can go back to, where there is anything to keep."""
    if not connection.filename or connection.execute("SELECT 1 FROM sessions LIMIT 1").get is None:
        return
    kept, again = copy_before(Path(connection.filename), version), 1
    # by another connection, which sees the file as it was found: this one is in a transaction
    before = apsw.Connection(connection.filename, flags=apsw.SQLITE_OPEN_READONLY, vfs=connection.open_vfs)
    try:
        while kept.exists():
            if _openings(kept) == _openings(before):
                return  # of an attempt that ended after it: nobody has opened the file since
            again += 1
            kept = copy_before(Path(connection.filename), version).with_suffix(
                f".before-schema-{version}-{again}"
            )
        copy(before, kept, check=False)
    except CopyFailed as failed:
        raise DatabaseUnusable(
            connection.filename,
            f"it has an older schema, and a copy is kept before that is changed. {failed} The file was left"
            " as it was.",
        ) from failed
    finally:
        before.close(force=True)


def _openings(where: Path | apsw.Connection) -> object:
    """Return how often a database was opened for writing: no two states of a file that were left have one."""
    if isinstance(where, Path):
        connection = apsw.Connection(str(where), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return _openings(connection)
        finally:
            connection.close(force=True)
    return where.execute("SELECT generation FROM owner").get
