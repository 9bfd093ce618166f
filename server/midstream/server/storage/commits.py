"""What commits write: those of many sessions together, in few statements (SPEC 9).

SQLite is left and entered with every statement, and each time the writer's thread waits until the event
loop lets go of the interpreter: milliseconds where that is busy. So rows of one kind go in one statement,
however many sessions they are of. Each function is part of one job of the database.
"""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from midstream.server.storage import rows, summaries
from midstream.server.storage.batch import Alike

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import apsw

    from midstream.server.storage.records import EpochEnd, MessageRow, PartRow, SessionWrite

_MOST_ROWS: Final = 128
"""Rows of one statement. All are powers of two, so that few statements are ever prepared."""


class _Statement(NamedTuple):
    """A statement that takes any number of rows: what stands before and behind them, and their width."""

    before: str
    width: int
    behind: str


def _columns(names: str, first: int) -> str:
    return ", ".join(f"{name} = v.column{first + place}" for place, name in enumerate(names.split(", ")))


_CHANGING: Final = ", ".join(name for name in rows.SESSION_COLUMNS.split(", ") if name != "session_id")
"""All but the id, which never changes: to write it again would mend its index for nothing."""
_LEDGER_WIDTH: Final = len(rows.LEDGER_COLUMNS.split(", "))
_LEDGER: Final = _Statement(
    f"UPDATE sessions SET {_columns(rows.LEDGER_COLUMNS, 2)} FROM (VALUES",
    1 + _LEDGER_WIDTH,
    ") AS v WHERE session_no = v.column1",
)
_SESSION: Final = _Statement(
    f"UPDATE sessions SET {_columns(rows.LEDGER_COLUMNS + ', ' + _CHANGING, 2)} FROM (VALUES",
    1 + _LEDGER_WIDTH + len(_CHANGING.split(", ")),
    ") AS v WHERE session_no = v.column1",
)
_MESSAGE: Final = _Statement(
    "INSERT INTO messages (session_no, sequence, message_id, turn_id, revision, created_version, role,"
    " visibility, state, created_at, updated_at, origin, part_count, is_open, changed_late) VALUES",
    15,
    " ON CONFLICT (session_no, sequence) DO UPDATE SET revision = excluded.revision,"
    " state = excluded.state, updated_at = excluded.updated_at, part_count = excluded.part_count,"
    " is_open = excluded.is_open, changed_late = excluded.changed_late",
)
_PART: Final = _Statement(
    "INSERT INTO parts (session_no, message_sequence, sequence, revision, body) VALUES",
    5,
    " ON CONFLICT DO UPDATE SET revision = excluded.revision, body = excluded.body",
)
_TURN: Final = _Statement(
    "INSERT INTO turns (session_no, turn_id, revision, body, is_running) VALUES",
    5,
    " ON CONFLICT DO UPDATE SET revision = excluded.revision, body = excluded.body,"
    " is_running = excluded.is_running",
)
_INPUT: Final = _Statement(
    f"INSERT INTO inputs (session_no, {rows.INPUT_COLUMNS}) VALUES",
    9,
    " ON CONFLICT DO UPDATE SET state = excluded.state, turn_id = excluded.turn_id, parts = excluded.parts",
)
_CHANGED_PLACES: Final = [
    place for place, name in enumerate(rows.SESSION_COLUMNS.split(", ")) if name in _CHANGING.split(", ")
]


def commit_of(write: SessionWrite) -> Alike[SessionWrite]:
    """Return the job that stores one commit of one session: all of it or, when it fails, nothing.

    It is done together with those of other sessions that wait for the same batch.
    """
    return Alike(write.session_no, write, write_sessions)


def write_sessions(connection: apsw.Connection, writes: Sequence[SessionWrite]) -> None:
    """Store commits of sessions that are all different."""
    _write_sessions(connection, writes)
    write_messages(connection, ((one.session_no, message) for one in writes for message in one.messages))
    write_parts(connection, ((one.session_no, part) for one in writes for part in one.parts))
    connection.executemany(
        "INSERT OR IGNORE INTO interactions (session_no, interaction_id, message_sequence, part_sequence)"
        " VALUES (?, ?, ?, ?)",
        [(one.session_no, *found) for one in writes for found in one.interactions],
    )
    _write(
        connection,
        _TURN,
        [
            (one.session_no, turn.turn_id, turn.revision, rows.encode(turn), int(turn.state == "running"))
            for one in writes
            for turn in one.turns
        ],
    )
    _write(
        connection,
        _INPUT,
        [(one.session_no, *rows.input_values(item)) for one in writes for item in one.inputs],
    )
    for one in writes:
        _write_rest(connection, one)


def write_parts(connection: apsw.Connection, parts: Iterable[tuple[int, PartRow]]) -> None:
    """Insert or replace parts of sessions, given by their numbers."""
    _write(connection, _PART, [(number, *part) for number, part in parts])


def write_messages(connection: apsw.Connection, messages: Iterable[tuple[int, MessageRow]]) -> None:
    """Insert or change the messages of sessions, given by their numbers; their parts are written apart."""
    written = list(messages)
    _write(connection, _MESSAGE, [_message_values(number, row) for number, row in written])
    connection.executemany(
        "DELETE FROM parts WHERE session_no = ? AND message_sequence = ? AND sequence > ?",
        [(number, row.head.sequence, row.part_count) for number, row in written if row.drops],
    )


def _write_sessions(connection: apsw.Connection, writes: Sequence[SessionWrite]) -> None:
    ledgers: list[rows.Row] = []
    sessions: list[rows.Row] = []
    ended: list[tuple[int, EpochEnd]] = []
    for one in writes:
        if one.epoch_end is not None:
            ended.append((one.session_no, one.epoch_end))
        row = (one.session_no, *rows.ledger_values(one.ledger))
        if one.session is None:
            ledgers.append(row)
        else:
            values = rows.session_values(one.session)
            sessions.append((*row, *(values[place] for place in _CHANGED_PLACES)))
    _write(connection, _LEDGER, ledgers)
    _write(connection, _SESSION, sessions)
    connection.executemany(
        "INSERT OR REPLACE INTO epochs (session_no, epoch, end_version, last_commit) VALUES (?, ?, ?, ?)",
        [(number, end.epoch, end.version, end.commit) for number, end in ended],
    )


def _message_values(number: int, row: MessageRow) -> rows.Row:
    head = row.head
    return (
        number,
        head.sequence,
        head.message_id,
        rows.nullable(head.turn_id),
        head.revision,
        row.created_version,
        head.role,
        head.visibility,
        rows.nullable(head.state),
        head.created_at,
        head.updated_at,
        rows.encode(head.origin) if head.origin else None,
        row.part_count,
        int(row.is_open),
        int(row.changed_late),
    )


def _write_rest(connection: apsw.Connection, write: SessionWrite) -> None:
    number = write.session_no
    if write.attachment is not None:
        kept = write.attachment
        connection.execute(
            "INSERT OR REPLACE INTO attachments"
            " (session_no, turn_id, generation, n, worker, instance, outcomes) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, kept.turn_id, kept.generation, kept.n, kept.worker, kept.instance, kept.outcomes),
        )
    if write.summaries:
        summaries.write(connection, number, write.summaries)
    if write.deleted:
        # of a deleted session only the id stays, so that it is never given again, and the key
        connection.execute(
            "UPDATE sessions SET status = 'deleted', title = NULL, metadata = ? WHERE session_no = ?",
            (rows.encode({}), number),
        )


def _write(connection: apsw.Connection, statement: _Statement, values: Sequence[rows.Row]) -> None:
    start, left = 0, len(values)
    while left:
        count = min(_MOST_ROWS, 1 << left.bit_length() - 1)
        chunk = values[start : start + count] if count < len(values) else values
        connection.execute(_sql(statement, count), tuple(chain.from_iterable(chunk)))
        start += count
        left -= count


@cache
def _sql(statement: _Statement, count: int) -> str:
    row = f" ({', '.join('?' * statement.width)})"
    return statement.before + ",".join([row] * count) + statement.behind
