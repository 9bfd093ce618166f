"""Summaries: what is written and read of them. Each function is one job of the database (SPEC 8.10)."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from typing import TYPE_CHECKING

from midstream.protocol.model import Summary
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from midstream.server.storage.records import View

_COLUMNS = "from_sequence, through_sequence, text, created_at, subject"
_IN_VIEW = "session_no = ? AND through_sequence >= ?"


def write(connection: apsw.Connection, session_no: int, summaries: Iterable[Summary]) -> None:
    """Store new summaries."""
    connection.executemany(
        f"INSERT INTO summaries (session_no, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                session_no,
                summary.from_sequence,
                summary.through_sequence,
                summary.text,
                summary.created_at,
                rows.nullable(summary.subject),
            )
            for summary in summaries
        ],
    )


def write_forked(connection: apsw.Connection, session_no: int, summaries: list[Summary]) -> None:
    """Store a batch of a copy's summaries, ascending; its session is summarized through the last of them."""
    write(connection, session_no, summaries)
    connection.execute(
        "UPDATE sessions SET summarized_through = ? WHERE session_no = ?",
        (summaries[-1].through_sequence, session_no),
    )


def covering(connection: apsw.Connection, view: View, sequence: int) -> Summary | None:
    """Return the summary of the segment that a message lies in; None where it lies in none."""
    found = between(connection, view, start=sequence, end=2**62, limit=1)
    return found[0] if found and found[0].from_sequence <= sequence else None


def between(connection: apsw.Connection, view: View, *, start: int, end: int, limit: int) -> list[Summary]:
    """Return the first summaries that end from ``start`` to ``end``, both included, ascending."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM summaries WHERE {_IN_VIEW} AND through_sequence BETWEEN ? AND ?"
        " ORDER BY through_sequence LIMIT ?",
        (view.session_no, view.first, start, end, limit),
    )
    return [
        Summary(
            from_sequence=row[0],
            through_sequence=row[1],
            text=row[2],
            created_at=row[3],
            subject=rows.optional(row[4]),
        )
        for row in found
    ]
