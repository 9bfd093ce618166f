"""What is written, and what a session's loop starts from. Each function is one job of the database."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.protocol.model import Session
from midstream.server.storage import commits, rows
from midstream.server.storage.messages import open_messages
from midstream.server.storage.records import (
    AttachmentRow,
    EpochEnd,
    InputRow,
    LedgerRow,
    LoadedSession,
    SessionWrite,
    View,
)

if TYPE_CHECKING:
    import apsw

    from midstream.server.storage.records import MessageRow, PartRow

_TABLES = ("messages", "parts", "turns", "inputs", "interactions", "epochs", "attachments", "summaries")
"""The tables with rows of a session, besides its own."""
_PURGE_ROWS = 200
"""Messages, or rows of one other table, that one purge job removes: other sessions' commits wait for it, 2 to
9 ms. Five hundred took three times as long and gained a tenth, a hundred took almost as long."""


def create_session(
    connection: apsw.Connection,
    session: Session,
    ledger: LedgerRow,
    *,
    status: str = "live",
    owner: str | None = None,
    key: str | None = None,
    content_hash: str | None = None,
) -> int:
    """Insert a session and return its number. The caller has checked that id and key are free."""
    values = (*rows.session_values(session), *rows.ledger_values(ledger), status, owner, key, content_hash)
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO sessions ({rows.SESSION_COLUMNS}, {rows.LEDGER_COLUMNS},"
        f" status, owner, create_key, create_hash) VALUES ({marks})",
        values,
    )
    return connection.last_insert_rowid()


def find_created(
    connection: apsw.Connection, *, session_id: str | None, key: str | None
) -> list[tuple[str, str, str | None, str | None]]:
    """Return (session_id, status, create_key, create_hash) of the sessions of this key and of this id.

    That of the key comes first.
    """
    found = connection.execute(
        "SELECT session_id, status, create_key, create_hash FROM sessions"
        " WHERE session_id = ?1 OR create_key = ?2 ORDER BY create_key IS ?2 DESC",
        (session_id, key),
    )
    return [(row[0], row[1], row[2], row[3]) for row in found]


def load_session(connection: apsw.Connection, session_id: str) -> LoadedSession | None:
    """Return what a loop starts from, or None where there is no such session to be seen."""
    row = _one(
        connection,
        f"SELECT {rows.SESSION_COLUMNS}, session_no, owner, {rows.LEDGER_COLUMNS} FROM sessions"
        " WHERE session_id = ? AND status = 'live'",
        (session_id,),
    )
    if row is None:
        return None
    session_no, owner = row[rows.SESSION_WIDTH], row[rows.SESSION_WIDTH + 1]
    queue = queued_inputs(connection, session_no)
    session = rows.read_session(row[: rows.SESSION_WIDTH], [item.message_id for item in queue])
    turn = None
    if session.running_turn_id is not UNSET:
        found = _one(
            connection,
            "SELECT body FROM turns WHERE session_no = ? AND turn_id = ?",
            (session_no, session.running_turn_id),
        )
        turn = None if found is None else rows.read_turn(found[0])
    return LoadedSession(
        session_no=session_no,
        session=session,
        owner=owner,
        ledger=rows.read_ledger(row[rows.SESSION_WIDTH + 2 :]),
        turn=turn,
        open_messages=open_messages(connection, View(session_no=session_no, session_id=session_id)),
        queue=queue,
        attachment=None if turn is None else _attachment(connection, session_no, turn.turn_id),
    )


def find_owner(connection: apsw.Connection, session_id: str) -> tuple[str | None] | None:
    """Return the owner of a session that can be seen, if it has one; None where there is no such session."""
    row = _one(
        connection, "SELECT owner FROM sessions WHERE session_id = ? AND status = 'live'", (session_id,)
    )
    return None if row is None else (row[0],)


def _attachment(connection: apsw.Connection, session_no: int, turn_id: str) -> AttachmentRow | None:
    row = _one(
        connection,
        "SELECT generation, n, worker, instance, outcomes FROM attachments"
        " WHERE session_no = ? AND turn_id = ?",
        (session_no, turn_id),
    )
    if row is None:
        return None
    return AttachmentRow(
        turn_id=turn_id, generation=row[0], n=row[1], worker=row[2], instance=row[3], outcomes=row[4]
    )


def queued_inputs(connection: apsw.Connection, session_no: int) -> list[InputRow]:
    """Return the session's queue, in order."""
    found = connection.execute(
        f"SELECT {rows.INPUT_COLUMNS} FROM inputs"
        " WHERE session_no = ? AND state = 'queued' ORDER BY accepted",
        (session_no,),
    )
    return [rows.read_input(row) for row in found]


def sessions_to_wake(connection: apsw.Connection) -> list[str]:
    """Return the sessions that have work: a running turn, or queued input (SPEC 9)."""
    found = connection.execute(
        "SELECT session_id FROM sessions WHERE status = 'live' AND (running_turn_id IS NOT NULL"
        " OR session_no IN (SELECT session_no FROM inputs WHERE state = 'queued')) ORDER BY session_no"
    )
    return [row[0] for row in found]


def sessions_to_clean(connection: apsw.Connection) -> list[int]:
    """Return the numbers of sessions with rows that nobody can see any more."""
    left = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS t WHERE t.session_no = s.session_no)" for table in _TABLES
    )
    found = connection.execute(
        f"SELECT session_no FROM sessions AS s WHERE status = 'forking' OR (status = 'deleted' AND ({left}))"
        " OR EXISTS (SELECT 1 FROM messages AS m"
        " WHERE m.session_no = s.session_no AND m.sequence < s.first_sequence)"
    )
    return [row[0] for row in found]


def write_session(connection: apsw.Connection, write: SessionWrite) -> None:
    """Store one commit of one session: all of it or, when it raises, nothing."""
    commits.write_sessions(connection, [write])


def write_forked(
    connection: apsw.Connection, session_no: int, messages: list[MessageRow], parts: list[PartRow]
) -> None:
    """Store one batch of a fork's copies."""
    commits.write_messages(connection, ((session_no, message) for message in messages))
    commits.write_parts(connection, ((session_no, part) for part in parts))


def show_forked(connection: apsw.Connection, session_no: int) -> None:
    """Make a fork visible, after its last batch."""
    connection.execute("UPDATE sessions SET status = 'live' WHERE session_no = ?", (session_no,))


def purge(connection: apsw.Connection, session_no: int) -> bool:
    """Remove one batch of rows that nobody can see any more; return whether there is more to do."""
    row = _one(connection, "SELECT status, first_sequence FROM sessions WHERE session_no = ?", (session_no,))
    if row is None:
        return False
    status, below = row[0], row[1] if row[0] == "live" else 2**62
    # with the first messages: their segments are closed by nothing any more
    summaries = "session_no = ? AND through_sequence < ?"
    if _delete_some(connection, "summaries", summaries, session_no, below):
        return True
    sequences = [
        found[0]
        for found in connection.execute(
            "SELECT sequence FROM messages WHERE session_no = ? AND sequence < ? ORDER BY sequence LIMIT ?",
            (session_no, below, _PURGE_ROWS),
        )
    ]
    if sequences:
        span = (session_no, sequences[0], sequences[-1])
        connection.execute(
            "DELETE FROM parts WHERE session_no = ? AND message_sequence BETWEEN ? AND ?", span
        )
        connection.execute(
            "DELETE FROM interactions WHERE session_no = ? AND message_sequence BETWEEN ? AND ?", span
        )
        connection.execute("DELETE FROM messages WHERE session_no = ? AND sequence BETWEEN ? AND ?", span)
    if len(sequences) == _PURGE_ROWS:
        return True
    if status == "live":
        return False
    for table in ("turns", "inputs"):
        if _delete_some(connection, table, "session_no = ?", session_no):
            return True
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table} WHERE session_no = ?", (session_no,))
    if status == "forking":
        connection.execute("DELETE FROM sessions WHERE session_no = ?", (session_no,))
    return False


def _delete_some(connection: apsw.Connection, table: str, which: str, *values: int) -> bool:
    """Delete up to a batch of rows; return whether it was a whole one, so that there may be more."""
    connection.execute(
        f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {which} LIMIT ?)",
        (*values, _PURGE_ROWS),
    )
    return connection.changes() == _PURGE_ROWS


def epoch_end(connection: apsw.Connection, session_no: int, epoch: str) -> EpochEnd | None:
    """Return how far an ended epoch came, or None where it is not known."""
    row = _one(
        connection,
        "SELECT end_version, last_commit FROM epochs WHERE session_no = ? AND epoch = ?",
        (session_no, epoch),
    )
    return None if row is None else EpochEnd(epoch=epoch, version=row[0], commit=row[1])


def find_input(connection: apsw.Connection, session_no: int, message_id: str) -> tuple[InputRow | None, bool]:
    """Return the accepted input of this id, and whether any message has the id."""
    row = _one(
        connection,
        f"SELECT {rows.INPUT_COLUMNS} FROM inputs WHERE session_no = ? AND message_id = ?",
        (session_no, message_id),
    )
    taken = _one(
        connection, "SELECT 1 FROM messages WHERE session_no = ? AND message_id = ?", (session_no, message_id)
    )
    return (None if row is None else rows.read_input(row)), taken is not None


def _one(connection: apsw.Connection, sql: str, values: tuple[object, ...]) -> rows.Row | None:
    return next(iter(connection.execute(sql, values)), None)
