"""Reading messages, turns and lists of sessions. Each function is one job of the database."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import json
from typing import TYPE_CHECKING

from midstream.protocol.model import InteractionPart, Session, Turn
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from midstream.server.storage.records import StoredMessage, View

_SELECT = f"SELECT {rows.MESSAGE_COLUMNS} FROM messages"
_IN_VIEW = "session_no = ? AND sequence >= ? AND (visibility = 'visible' OR ?)"
"""The condition on a row of ``messages`` that a view shows it; takes the values of :func:`_of`."""


def page(
    connection: apsw.Connection, view: View, *, before: int | None, limit: int, max_bytes: int
) -> tuple[list[StoredMessage], bool]:
    """Return up to ``limit`` messages below ``before``, ascending, and whether there are more below.

    The page ends early at ``max_bytes`` of parts, but holds at least one message.
    """
    found = connection.execute(
        f"{_SELECT} WHERE {_IN_VIEW} AND sequence < ? ORDER BY sequence DESC LIMIT ?",
        (*_of(view), 2**62 if before is None else before, limit + 1),
    )
    items: list[StoredMessage] = []
    size = 0
    for row in found:
        if len(items) == limit:
            return items[::-1], True
        message = _with_parts(connection, view, row)
        size += size_of(message)
        if items and size > max_bytes:
            return items[::-1], True
        items.append(message)
    return items[::-1], False


def has_any(connection: apsw.Connection, view: View, *, before: int) -> bool:
    """Say whether the view shows a message below ``before``."""
    found = connection.execute(
        f"SELECT 1 FROM messages WHERE {_IN_VIEW} AND sequence < ? LIMIT 1", (*_of(view), before)
    )
    return next(iter(found), None) is not None


def span(
    connection: apsw.Connection, view: View, *, start: int, end: int, max_bytes: int = 2**62
) -> list[StoredMessage]:
    """Return the messages with sequences from ``start`` to ``end``, both included.

    They end early at ``max_bytes`` of parts, but there is at least one.
    """
    found = connection.execute(
        f"{_SELECT} WHERE {_IN_VIEW} AND sequence BETWEEN ? AND ? ORDER BY sequence", (*_of(view), start, end)
    )
    items: list[StoredMessage] = []
    size = 0
    for row in found:
        message = _with_parts(connection, view, row)
        size += size_of(message)
        if items and size > max_bytes:
            break
        items.append(message)
    return items


def changed_since(
    connection: apsw.Connection,
    view: View,
    *,
    version: int,
    max_messages: int,
    max_bytes: int,
    always: Iterable[int] = (),
) -> list[StoredMessage] | None:
    """Return the messages above ``version``, ascending by sequence; None where they are too many.

    ``always`` are sequences that changed since in memory only, and are returned whatever the store
    says of their revision.
    """
    # by the index of revisions: what changed lately must not cost the length of the conversation
    found = connection.execute(
        f"{_SELECT} WHERE {_IN_VIEW} AND sequence IN ("
        f"SELECT * FROM (SELECT sequence FROM messages INDEXED BY messages_by_revision"
        f" WHERE {_IN_VIEW} AND revision > ? LIMIT ?) UNION SELECT value FROM json_each(?))"
        " ORDER BY sequence",
        (*_of(view), *_of(view), version, max_messages + 1, json.dumps(list(always))),
    )
    items: list[StoredMessage] = []
    size = 0
    for row in found:
        message = _with_parts(connection, view, row)
        size += sum(
            memoryview(part).nbytes
            for part, revision in zip(message.parts, message.part_revisions, strict=True)
            if revision > version
        )
        if len(items) == max_messages or size > max_bytes:
            return None
        items.append(message)
    return items


def open_messages(connection: apsw.Connection, view: View) -> list[StoredMessage]:
    """Return the messages that may still change."""
    found = connection.execute(
        f"{_SELECT} INDEXED BY messages_open WHERE {_IN_VIEW} AND is_open ORDER BY sequence", _of(view)
    )
    return [_with_parts(connection, view, row) for row in found]


def message_by_id(connection: apsw.Connection, view: View, message_id: str) -> StoredMessage | None:
    """Return one message, or None where the view has none of this id."""
    found = connection.execute(f"{_SELECT} WHERE {_IN_VIEW} AND message_id = ?", (*_of(view), message_id))
    row = next(iter(found), None)
    return None if row is None else _with_parts(connection, view, row)


def prompt_of(connection: apsw.Connection, view: View, turn_id: str) -> StoredMessage | None:
    """Return the visible user message that started a turn: the first of its messages."""
    found = connection.execute(
        f"{_SELECT} WHERE {_IN_VIEW} AND turn_id = ? ORDER BY sequence LIMIT 1", (*_of(view), turn_id)
    )
    row = next(iter(found), None)
    return None if row is None else _with_parts(connection, view, row)


def find_interaction(connection: apsw.Connection, view: View, interaction_id: str) -> InteractionPart | None:
    """Return an interaction as it is stored; None also where its message was cleared."""
    found = connection.execute(
        "SELECT body FROM interactions AS i JOIN parts AS p ON p.session_no = i.session_no"
        " AND p.message_sequence = i.message_sequence AND p.sequence = i.part_sequence"
        " WHERE i.session_no = ? AND i.interaction_id = ? AND i.message_sequence >= ?",
        (view.session_no, interaction_id, view.first),
    )
    row = next(iter(found), None)
    part = None if row is None else rows.read_part(row[0])
    return part if isinstance(part, InteractionPart) else None


def turns_by_id(connection: apsw.Connection, session_no: int, turn_ids: Iterable[str]) -> list[Turn]:
    """Return these turns, in the order asked for; unknown ids are left out."""
    turns: list[Turn] = []
    for turn_id in turn_ids:
        found = connection.execute(
            "SELECT body FROM turns WHERE session_no = ? AND turn_id = ?", (session_no, turn_id)
        )
        turns.extend(rows.read_turn(row[0]) for row in found)
    return turns


def turns_since(connection: apsw.Connection, session_no: int, version: int, limit: int) -> list[Turn] | None:
    """Return the turns above ``version`` by revision; None where they are too many."""
    found = connection.execute(
        "SELECT body FROM turns WHERE session_no = ? AND revision > ? ORDER BY revision LIMIT ?",
        (session_no, version, limit + 1),
    )
    turns = [rows.read_turn(row[0]) for row in found]
    return None if len(turns) > limit else turns


def list_sessions(
    connection: apsw.Connection, *, limit: int, after: tuple[int, str] | None, archived: bool
) -> tuple[list[Session], tuple[int, str] | None]:
    """Return sessions in the order of a list (SPEC 4.8), and where the next page begins.

    With ``archived`` the archived ones, and only those; without, the others.
    """
    time, session_id = after or (2**62, "")
    found = connection.execute(
        f"SELECT {rows.SESSION_COLUMNS}, session_no FROM sessions WHERE status = 'live'"
        " AND (archived_at IS NOT NULL) = ?1 AND updated_at <= ?2 AND (updated_at < ?2 OR session_id > ?3)"
        " ORDER BY updated_at DESC, session_id LIMIT ?4",
        (int(archived), time, session_id, limit + 1),
    )
    width = rows.SESSION_WIDTH
    listed = [rows.read_session(row[:width], _queue(connection, row[width])) for row in found]
    following = None
    if len(listed) > limit:
        last = listed[limit - 1]
        following = (last.updated_at, last.session_id)
    return listed[:limit], following


def size_of(message: StoredMessage) -> int:
    """Return the bytes of a message's parts, as they are stored."""
    return sum(memoryview(part).nbytes for part in message.parts)


def _of(view: View) -> tuple[int, int, bool]:
    return view.session_no, view.first, view.include_internal


def _queue(connection: apsw.Connection, session_no: int) -> list[str]:
    found = connection.execute(
        "SELECT message_id FROM inputs WHERE session_no = ? AND state = 'queued' ORDER BY accepted",
        (session_no,),
    )
    return [row[0] for row in found]


def _with_parts(connection: apsw.Connection, view: View, row: rows.Row) -> StoredMessage:
    parts = connection.execute(
        "SELECT revision, body FROM parts WHERE session_no = ? AND message_sequence = ? ORDER BY sequence",
        (view.session_no, row[0]),
    )
    return rows.read_message(view.session_id, row, [(part[0], part[1]) for part in parts])
