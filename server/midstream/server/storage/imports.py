"""Storing a session that comes from elsewhere: hidden until it is whole. Each function is one job."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, structs

from midstream.protocol.errors import AlreadyExists
from midstream.protocol.export import RememberedInput
from midstream.protocol.lines import BadLine
from midstream.protocol.model import InteractionPart, Message, Session, Summary, Turn
from midstream.server.storage import rows, store, summaries
from midstream.server.storage.records import InputRow, LedgerRow, MessageRow, PartRow, View

if TYPE_CHECKING:
    import apsw

Content: TypeAlias = Turn | Message | Summary | RememberedInput
"""What a session is made of, besides its own fields."""


def begin(connection: apsw.Connection, session: Session, ledger: LedgerRow) -> int:
    """Insert a session that nobody sees, and return its number.

    Raises:
        AlreadyExists: the id is taken, or was.

    """
    if store.find_created(connection, session_id=session.session_id, key=None):
        raise AlreadyExists(session.session_id)
    # as a fork in the making: if it is never finished, the next start of a server removes it
    return store.create_session(connection, session, ledger, status="forking")


def write_batch(connection: apsw.Connection, session_no: int, batch: list[tuple[int, Content]]) -> None:
    """Store entities, each with the number of the line that it came from.

    Raises:
        BadLine: an id stands twice. Nothing of the batch is stored.

    """
    for line, entity in batch:
        if isinstance(entity, Message):
            _write_message(connection, session_no, line, entity)
        elif isinstance(entity, Turn):
            _write_turn(connection, session_no, line, entity)
        elif isinstance(entity, Summary):
            summaries.write(connection, session_no, [entity])
        else:
            _write_input(connection, session_no, line, entity)


def find_message_without_turn(connection: apsw.Connection, session_no: int) -> int | None:
    """Return the sequence of a message whose turn is not stored."""
    found = connection.execute(
        "SELECT sequence FROM messages WHERE session_no = ?1 AND turn_id IS NOT NULL"
        " AND turn_id NOT IN (SELECT turn_id FROM turns WHERE session_no = ?1) LIMIT 1",
        (session_no,),
    )
    row = next(iter(found), None)
    return None if row is None else row[0]


def finish(connection: apsw.Connection, session_no: int, session: Session, ledger: LedgerRow) -> None:
    """Give a session its own fields, and show it."""
    columns = f"{rows.SESSION_COLUMNS}, {rows.LEDGER_COLUMNS}".split(", ")
    connection.execute(
        f"UPDATE sessions SET {', '.join(f'{column} = ?' for column in columns)} WHERE session_no = ?",
        (*rows.session_values(session), *rows.ledger_values(ledger), session_no),
    )
    store.show_forked(connection, session_no)


def _write_message(connection: apsw.Connection, session_no: int, line: int, message: Message) -> None:
    view = View(session_no=session_no, session_id=message.session_id)
    if messages_with(connection, view, message.message_id):
        raise BadLine(line, "message.message_id", f"{message.message_id!r} is that of another message")
    head = MessageRow(
        head=structs.replace(message, parts=[]),
        created_version=message.revision,
        part_count=len(message.parts),
        is_open=False,
    )
    parts: list[PartRow] = [
        (message.sequence, part.sequence, message.revision, rows.encode(part)) for part in message.parts
    ]
    store.write_forked(connection, session_no, [head], parts)
    for index, part in enumerate(message.parts):
        if isinstance(part, InteractionPart):
            place = (session_no, part.interaction_id, message.sequence, part.sequence)
            _insert(
                connection,
                "interactions (session_no, interaction_id, message_sequence, part_sequence)",
                place,
                BadLine(line, f"message.parts[{index}].interaction_id", "is that of another interaction"),
            )


def messages_with(connection: apsw.Connection, view: View, message_id: str) -> bool:
    """Say whether a message of the session has this id."""
    found = connection.execute(
        "SELECT 1 FROM messages WHERE session_no = ? AND message_id = ?", (view.session_no, message_id)
    )
    return next(iter(found), None) is not None


def _write_turn(connection: apsw.Connection, session_no: int, line: int, turn: Turn) -> None:
    _insert(
        connection,
        "turns (session_no, turn_id, revision, body)",
        (session_no, turn.turn_id, turn.revision, rows.encode(turn)),
        BadLine(line, "turn.turn_id", f"{turn.turn_id!r} is that of another turn"),
    )


def _write_input(connection: apsw.Connection, session_no: int, line: int, item: RememberedInput) -> None:
    row = InputRow(
        message_id=item.message_id,
        content_hash=item.content_hash,
        subject=item.subject,
        delivery=item.delivery,
        state=item.state,
        turn_id=None if item.turn_id is UNSET else item.turn_id,
        accepted=item.accepted,
        parts=[],
    )
    _insert(
        connection,
        f"inputs (session_no, {rows.INPUT_COLUMNS})",
        (session_no, *rows.input_values(row)),
        BadLine(line, "input.message_id", f"{item.message_id!r} is that of another input"),
    )


def _insert(connection: apsw.Connection, into: str, values: tuple[object, ...], taken: BadLine) -> None:
    marks = ", ".join("?" * len(values))
    before = connection.total_changes()
    connection.execute(f"INSERT OR IGNORE INTO {into} VALUES ({marks})", values)
    if connection.total_changes() == before:
        raise taken
