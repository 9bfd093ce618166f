"""What is in the file, read by plain SQL: no code of the server stands between the disk and the oracle."""

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import msgspec

Wire = dict[str, Any]
"""An entity as it stands on the wire: maps, lists and plain values."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """One session's rows.

    Attributes:
        row: the columns of `sessions`.
        messages: by sequence, in the form of the wire; those that somebody may see.
        part_revisions: by sequence, the revisions of the message's parts.
        opened: sequences of messages that are marked as open.
        turns: by id, in the form of the wire.
        inputs: by message id: state, turn (or none).
        interactions: by id, the part.
    """

    row: Wire
    messages: dict[int, Wire]
    part_revisions: dict[int, list[int]]
    opened: list[int]
    turns: dict[str, Wire]
    inputs: dict[str, tuple[str, str | None]]
    interactions: dict[str, Wire]


def read_file(path: Path) -> dict[str, StoredSession]:
    """Return the sessions that are not deleted, by id."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = _rows(connection, "SELECT * FROM sessions WHERE status = 'live'")
        return {row["session_id"]: _session(connection, row) for row in rows}
    finally:
        connection.close()


def canonical(entity: object) -> bytes:
    """Return the one form of an entity, whether Struct or map: JSON with sorted keys."""
    return msgspec.json.encode(entity, order="sorted")


def _session(connection: apsw.Connection, row: Wire) -> StoredSession:
    number = row["session_no"]
    messages: dict[int, Wire] = {}
    revisions: dict[int, list[int]] = {}
    opened: list[int] = []
    interactions: dict[str, Wire] = {}
    # what a clear took away is removed in batches, later, and may be there in part
    there = "SELECT * FROM messages WHERE session_no = ? AND sequence >= ? ORDER BY sequence"
    for found in _rows(connection, there, number, row["first_sequence"]):
        sequence = found["sequence"]
        parts = _rows(
            connection,
            "SELECT * FROM parts WHERE session_no = ? AND message_sequence = ? ORDER BY sequence",
            number,
            sequence,
        )
        messages[sequence] = _message(row["session_id"], found, parts)
        revisions[sequence] = [part["revision"] for part in parts]
        opened += [sequence] if found["is_open"] else []
        for part in messages[sequence]["parts"]:
            if part["type"] == "interaction":
                interactions[part["interaction_id"]] = part
    turns = _rows(connection, "SELECT * FROM turns WHERE session_no = ?", number)
    inputs = _rows(connection, "SELECT * FROM inputs WHERE session_no = ?", number)
    return StoredSession(
        row=row,
        messages=messages,
        part_revisions=revisions,
        opened=opened,
        turns={turn["turn_id"]: msgspec.msgpack.decode(turn["body"]) for turn in turns},
        inputs={found["message_id"]: (found["state"], found["turn_id"]) for found in inputs},
        interactions=interactions,
    )


def _message(session_id: str, row: Wire, parts: list[Wire]) -> Wire:
    names = ("message_id", "turn_id", "sequence", "revision", "role", "visibility", "state")
    message: Wire = {name: row[name] for name in names if row[name] is not None}
    message |= {"session_id": session_id, "created_at": row["created_at"], "updated_at": row["updated_at"]}
    if row["origin"] is not None:
        message["origin"] = msgspec.msgpack.decode(row["origin"])
    message["parts"] = [msgspec.msgpack.decode(part["body"]) for part in parts]
    return message


def _rows(connection: apsw.Connection, sql: str, *values: int) -> list[Wire]:
    cursor = connection.execute(sql, values)
    found: list[Wire] = []
    for row in cursor:
        names = [column[0] for column in cursor.get_description()]
        found.append(dict(zip(names, row, strict=True)))
    return found
