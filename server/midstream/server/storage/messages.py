"""Reading messages and turns. Each function is one job of the database."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import json
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, cast

from msgspec import Raw

from midstream.protocol.model import InteractionPart, Message, Turn
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    import apsw

    from midstream.server.storage.records import StoredMessage, View

_FIRST_BLOCK = 8
"""Parts that are read at a time, at first."""
_IN_VIEW = "session_no = ? AND sequence >= ? AND (visibility = 'visible' OR ?)"
"""The condition on a row of ``messages`` that a view shows it; takes the values of :func:`_of`."""

_CHANGED = """
WHERE session_no = ?1 AND sequence >= ?2 AND (visibility = 'visible' OR ?3) AND sequence IN (
    SELECT * FROM (
        SELECT sequence FROM messages WHERE session_no = ?1 AND sequence >= max(?2, (
            WITH RECURSIVE search (low, high) AS (
                SELECT ?2 - 1, (SELECT max(sequence) FROM messages WHERE session_no = ?1 AND sequence >= ?2)
                UNION ALL
                SELECT iif(created_version <= ?4, sequence, low),
                    iif(created_version <= ?4, high, (low + high + 1) / 2 - 1)
                FROM search LEFT JOIN messages ON session_no = ?1 AND sequence = (low + high + 1) / 2
                WHERE low < high
            ) SELECT max(low) FROM search
        )) AND (visibility = 'visible' OR ?3) AND revision > ?4 ORDER BY sequence DESC LIMIT ?5
    )
    UNION SELECT * FROM (
        SELECT sequence FROM messages INDEXED BY messages_changed_late
        WHERE session_no = ?1 AND sequence >= ?2 AND (visibility = 'visible' OR ?3)
        AND changed_late AND revision > ?4 LIMIT ?5
    )
    UNION SELECT value FROM json_each(?6)
) ORDER BY sequence
"""
"""Chooses what changed above a version, without an index of all revisions: that cost each commit a page of
the file. Messages are created in the order of their sequences, so the one that was the newest at the version
is found by halving. It may have changed, all above it are new, and those below it changed late."""


def page(
    connection: apsw.Connection, view: View, *, before: int | None, limit: int, max_bytes: int
) -> tuple[list[Message], bool]:
    """Return up to ``limit`` messages below ``before``, ascending, and whether there are more below.

    Their parts are encoded, as in a :class:`~midstream.server.storage.records.StoredMessage`. The page ends
    early at ``max_bytes`` of parts, but holds at least one message.
    """
    found = _heads(
        connection,
        f"WHERE {_IN_VIEW} AND sequence < ? ORDER BY sequence DESC LIMIT ?",
        (*_of(view), 2**62 if before is None else before, limit + 1),
    )
    more = len(found) > limit
    del found[limit:]
    parts: dict[int, list[Raw]] = {row[0]: [] for row in found}
    size = 0
    for block in _parts(connection, view, found, descending=True):
        for sequence, _, body in block:
            parts[sequence].append(Raw(body))
            size += len(body)
        if size > max_bytes and block[-1][0] != found[0][0]:
            break
    if size > max_bytes:
        kept = _fitting([parts[row[0]] for row in found], max_bytes)
        more = more or kept < len(found)
        del found[kept:]
    items = [rows.message_of(view.session_id, row, parts[row[0]][::-1]) for row in reversed(found)]
    return items, more


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
    found = _heads(
        connection,
        f"WHERE {_IN_VIEW} AND sequence BETWEEN ? AND ? ORDER BY sequence",
        (*_of(view), start, end),
    )
    items: list[StoredMessage] = []
    size = 0
    with closing(_with_parts(connection, view, found)) as whole:
        for message in whole:
            size += message.size
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
    found = _heads(connection, _CHANGED, (*_of(view), version, max_messages + 1, json.dumps(list(always))))
    if len(found) > max_messages:
        return None
    items: list[StoredMessage] = []
    size = 0
    with closing(_with_parts(connection, view, found)) as whole:
        for message in whole:
            size += sum(
                memoryview(part).nbytes
                for part, revision in zip(message.parts, message.part_revisions, strict=True)
                if revision > version
            )
            if size > max_bytes:
                return None
            items.append(message)
    return items


def open_messages(connection: apsw.Connection, view: View) -> list[StoredMessage]:
    """Return the messages that may still change."""
    found = _heads(
        connection, f"INDEXED BY messages_open WHERE {_IN_VIEW} AND is_open ORDER BY sequence", _of(view)
    )
    return list(_with_parts(connection, view, found))


def message_by_id(connection: apsw.Connection, view: View, message_id: str) -> StoredMessage | None:
    """Return one message, or None where the view has none of this id."""
    found = _heads(connection, f"WHERE {_IN_VIEW} AND message_id = ?", (*_of(view), message_id))
    return next(_with_parts(connection, view, found), None)


def prompt_of(connection: apsw.Connection, view: View, turn_id: str) -> StoredMessage | None:
    """Return the visible user message that started a turn: the first of its messages."""
    found = _heads(
        connection,
        f"INDEXED BY messages_prompts WHERE {_IN_VIEW} AND role = 'user' AND visibility = 'visible'"
        " AND turn_id = ? ORDER BY sequence LIMIT 1",
        (*_of(view), turn_id),
    )
    return next(_with_parts(connection, view, found), None)


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


def turns_by_id(connection: apsw.Connection, session_no: int, turn_ids: Sequence[str]) -> list[Turn]:
    """Return these turns, in the order asked for; unknown ids are left out."""
    stored = stored_turns(connection, session_no, turn_ids)
    return [rows.read_turn(stored[turn_id]) for turn_id in turn_ids if turn_id in stored]


def stored_turns(connection: apsw.Connection, session_no: int, turn_ids: Sequence[str]) -> dict[str, bytes]:
    """Return turns by their ids, as they are stored; unknown ids are left out."""
    found = connection.execute(
        "SELECT turn_id, body FROM turns WHERE session_no = ?"
        " AND turn_id IN (SELECT value FROM json_each(?))",
        (session_no, json.dumps(turn_ids)),
    )
    return dict(cast("list[tuple[str, bytes]]", found.fetchall()))


def turns_since(connection: apsw.Connection, session_no: int, version: int, limit: int) -> list[Turn] | None:
    """Return the turns above ``version`` by revision; None where they are too many."""
    found = connection.execute(
        "SELECT body FROM turns INDEXED BY turns_ended"
        " WHERE session_no = ? AND NOT is_running AND revision > ? ORDER BY revision LIMIT ?",
        (session_no, version, limit + 1),
    )
    turns = [rows.read_turn(row[0]) for row in found]
    turns += [turn for turn in running_turns(connection, session_no) if turn.revision > version]
    return None if len(turns) > limit else sorted(turns, key=lambda turn: turn.revision)


def running_turns(connection: apsw.Connection, session_no: int) -> list[Turn]:
    """Return the turn that runs, if there is one."""
    found = connection.execute(
        "SELECT body FROM turns INDEXED BY turns_running WHERE session_no = ? AND is_running", (session_no,)
    )
    return [rows.read_turn(row[0]) for row in found]


def _of(view: View) -> tuple[int, int, bool]:
    return view.session_no, view.first, view.include_internal


def size_of(message: Message) -> int:
    """Return the bytes of a message's parts, which are encoded."""
    return sum(memoryview(part).nbytes for part in rows.encoded_parts(message))


def _fitting(messages: Iterable[list[Raw]], max_bytes: int) -> int:
    """Return how many messages have at most so many bytes together; the first is counted in any case."""
    size = count = 0
    for parts in messages:
        size += sum(memoryview(part).nbytes for part in parts)
        if count and size > max_bytes:
            break
        count += 1
    return count


def _heads(connection: apsw.Connection, which: str, values: tuple[object, ...]) -> list[rows.Row]:
    found = connection.execute(f"SELECT {rows.MESSAGE_COLUMNS} FROM messages {which}", values)
    return cast("list[rows.Row]", found.fetchall())


def _with_parts(
    connection: apsw.Connection, view: View, found: Sequence[rows.Row]
) -> Generator[StoredMessage]:
    """Add the parts to rows of messages, which ascend, as far as the caller goes on.

    Who stops early closes it.
    """
    blocks = _parts(connection, view, found)
    with closing(blocks):
        none: list[rows.Row] = []
        block, at = next(blocks, none), 0
        for row in found:
            sequence: int = row[0]
            own: list[rows.Row] = []
            while block and block[at][0] == sequence:
                own.append(block[at])
                at += 1
                if at == len(block):
                    block, at = next(blocks, none), 0
            yield rows.read_message(view.session_id, row, own)


def _parts(
    connection: apsw.Connection, view: View, found: Sequence[rows.Row], *, descending: bool = False
) -> Generator[list[rows.Row]]:
    """Yield (message sequence, revision, body) of all parts of rows of messages, which ascend or descend.

    They come in the same order, from one statement (one for each message would cost more than all else), in
    blocks that double: few steps for many parts, and not much more than is wanted where they are long.
    """
    if not found:
        return
    ends = found[0][0], found[-1][0]
    lowest, highest = min(ends), max(ends)
    order = " DESC" if descending else ""
    chosen = "BETWEEN ? AND ?"
    values: tuple[object, ...] = (lowest, highest)
    if highest - lowest + 1 > len(found):  # what lies between them, and is not to be seen, may be much
        chosen = "IN (SELECT value FROM json_each(?))"
        values = (json.dumps([row[0] for row in found]),)
    parts = connection.execute(
        "SELECT message_sequence, revision, body FROM parts"
        f" WHERE session_no = ? AND message_sequence {chosen}"
        f" ORDER BY message_sequence{order}, sequence{order}",
        (view.session_no, *values),
    )
    size = _FIRST_BLOCK
    with closing(parts):
        while block := cast("list[rows.Row]", list(islice(parts, size))):
            yield block
            size += size
