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
