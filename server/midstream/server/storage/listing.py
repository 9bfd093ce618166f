"""Pages of the list of sessions, of all or of those that somebody may see (SPEC 4.8, 10.5)."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import json
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from midstream.server.storage import rows
from midstream.server.storage.records import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

    from midstream.protocol.model import Session
    from midstream.server.storage.records import Selection

Place: TypeAlias = tuple[int, str]
"""Where a page of sessions ended: the time and the id of its last."""

FEW: Final = 2_000
"""Sessions with the wanted ids up to which all are read and sorted for a page: some milliseconds. Where there
are more, the list is read in its order and the others are passed over, which are not so many then."""
_LAST: Final = "\U0010ffff" * 128
"""Comes after whatever an id may go on with."""

_WANTED: Final = (
    "SELECT session_no FROM sessions WHERE session_id IN (SELECT value FROM json_each(:ids)) UNION"
    " SELECT s.session_no FROM json_each(:prefixes) AS p"
    " CROSS JOIN sessions AS s ON s.session_id >= p.value AND s.session_id < p.value || :last"
)
_IS_WANTED: Final = (
    "(session_id IN (SELECT value FROM json_each(:ids)) OR EXISTS (SELECT 1 FROM json_each(:prefixes) AS p"
    " WHERE session_id >= p.value AND session_id < p.value || :last))"
)


def list_sessions(
    connection: apsw.Connection,
    *,
    limit: int,
    after: Place | None,
    archived: bool,
    selection: Selection = EVERYTHING,
    shows: Callable[[str, str | None], bool] = lambda _, __: True,
) -> tuple[list[Session], Place | None]:
    """Return sessions in the order of a list (SPEC 4.8), and where the next page begins.

    With ``archived`` the archived ones, and only those; without, the others. What one subject of many sees
    is found without reading what others see: by its own index, or by ids. What ``shows`` says no to, of an
    id and an owner, is passed over: a page is full all the same.
    """
    time, session_id = after or (2**62, "")
    values: dict[str, str | int | None] = {"archived": int(archived), "time": time, "id": session_id}
    values |= {"last": _LAST, "owner": selection.owner}
    values |= {"ids": json.dumps(selection.ids), "prefixes": json.dumps(selection.prefixes)}
    which, time_of = _which(connection, selection, values)
    found = connection.execute(
        f"SELECT {rows.SESSION_COLUMNS}, session_no, owner FROM sessions WHERE status = 'live' AND {which}"
        " AND (archived_at IS NOT NULL) = :archived"
        f" AND {time_of} <= :time AND (updated_at < :time OR session_id > :id)"
        f" ORDER BY {time_of} DESC, session_id",
        values,
    )
    width = rows.SESSION_WIDTH
    shown = (row for row in found if shows(row[0], row[width + 1]))
    with closing(found):
        listed = [
            rows.read_session(row[:width], _queue(connection, row[width])) for row in islice(shown, limit + 1)
        ]
    following = None
    if len(listed) > limit:
        last = listed[limit - 1]
        following = (last.updated_at, last.session_id)
    return listed[:limit], following


def _which(
    connection: apsw.Connection, selection: Selection, values: dict[str, str | int | None]
) -> tuple[str, str]:
    """Return the condition of a selection, and how the time is written so that the right index is taken."""
    if selection.everything:
        return "TRUE", "updated_at"
    if selection.owner is not None:
        return "owner = :owner", "updated_at"
    (count,) = next(
        iter(connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM ({_WANTED}) LIMIT {FEW})", values))
    )
    return (f"session_no IN ({_WANTED})", "+updated_at") if count < FEW else (_IS_WANTED, "updated_at")


def _queue(connection: apsw.Connection, session_no: int) -> list[str]:
    found = connection.execute(
        "SELECT message_id FROM inputs WHERE session_no = ? AND state = 'queued' ORDER BY accepted",
        (session_no,),
    )
    return [row[0] for row in found]
