"""Copies of a stored session, thousands of them, made in the file while no server has it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

_SESSIONS: Final = "SELECT session_id, session_no FROM sessions"
_TABLES: Final = """
SELECT tables.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' AND columns.name = 'session_no'
"""
_OTHERS: Final = (
    "SELECT name FROM pragma_table_info(?) WHERE name NOT IN ('session_no', 'session_id', 'create_key')"
)

_LENGTH: Final = "SELECT session_no, message_count, version FROM sessions WHERE session_id = ?"
_REVISION: Final = "it.revision + n * :versions"
_TURN: Final = (
    "substr(it.turn_id, 1, length(it.turn_id) - 7) || printf('%07d', n)"  # as long, as it is in bodies
)
_RETOLD: Final = {
    "messages": {
        "sequence": "it.sequence + n * :messages",
        "message_id": "it.message_id || '-' || n",
        "turn_id": _TURN,
        "revision": _REVISION,
        "created_version": "it.created_version + n * :versions",
    },
    "parts": {"message_sequence": "it.message_sequence + n * :messages", "revision": _REVISION},
    "turns": {
        "turn_id": _TURN,
        "revision": _REVISION,
        "body": f"CAST(replace(CAST(it.body AS TEXT), it.turn_id, {_TURN}) AS BLOB)",
    },
}
"""What is not as it was when the content of a session is told the ``n``-th time again."""


def copy_session(path: Path, source: str, names: Iterable[str]) -> None:
    """Copy a session with all that belongs to it, once for each name that does not exist yet."""
    connection = apsw.Connection(str(path))
    with connection:
        connection.execute("CREATE TEMP TABLE copies (session_no INTEGER PRIMARY KEY, session_id TEXT)")
        there = {str(name): int(str(no)) for name, no in connection.execute(_SESSIONS)}
        made = enumerate((name for name in names if name not in there), start=max(there.values()) + 1)
        connection.executemany("INSERT INTO copies VALUES (?, ?)", made)
        for (table,) in list(connection.execute(_TABLES)):
            others = [str(name) for (name,) in connection.execute(_OTHERS, (table,))]
            taken = ", ".join(f"it.{name}" for name in others)
            named, name = (", session_id", ", copies.session_id") if table == "sessions" else ("", "")
            connection.execute(
                f"INSERT INTO {table} (session_no{named}, {', '.join(others)}) "  # noqa: S608 - of our schema
                f"SELECT copies.session_no{name}, {taken} FROM temp.copies, {table} AS it "
                "WHERE it.session_no = ?",
                (there[source],),
            )
    connection.close()


def lengthen_session(path: Path, name: str, count: int) -> None:
    """Give a session so many messages, by telling what is in it again and again."""
    connection = apsw.Connection(str(path))
    with connection:
        found = connection.execute(_LENGTH, (name,))
        no, there, version = (int(str(value)) for value in next(iter(found)))
        times = count // there
        numbers = ((n,) for n in range(1, times))
        connection.execute("CREATE TEMP TABLE again (n INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO again VALUES (?)", numbers)
        for table, moved in _RETOLD.items():
            columns = [str(column) for (column,) in connection.execute(_OTHERS, (table,))]
            taken = ", ".join(moved.get(column, f"it.{column}") for column in columns)
            connection.execute(
                f"INSERT INTO {table} (session_no, {', '.join(columns)}) "  # noqa: S608 - of our schema
                f"SELECT it.session_no, {taken} FROM temp.again, {table} AS it WHERE it.session_no = :no",
                {"no": no, "messages": there, "versions": version},
            )
        connection.execute(
            "UPDATE sessions SET message_count = ?2, revision = revision + ?3, version = version + ?3, "
            "ceiling = ceiling + ?3 WHERE session_no = ?1",
            (no, there * times, version * (times - 1)),
        )
    connection.close()
