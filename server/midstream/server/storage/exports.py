"""A stored session, entity by entity, in the order of its export (docs/reference.md)."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from typing import TYPE_CHECKING, cast

from msgspec import UNSET

from midstream.protocol.export import End, Header, RememberedInput
from midstream.server.storage import messages, rows, store, summaries
from midstream.server.storage.records import View

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from midstream.protocol.export import Entity
    from midstream.protocol.model import Message, Session, Summary, Turn, UserPart

_BATCH = 200
"""Messages, or summaries, that are held at once."""
_BATCH_BYTES = 1024 * 1024
"""Bytes of messages after which a batch ends; it holds at least one."""


def exported(connection: apsw.Connection, session_id: str) -> Iterator[Entity] | None:
    """Return a session's entities, as they are stored; None where there is no such session.

    The connection must show one state throughout. However long the session is, one batch is in memory.
    """
    loaded = store.load_session(connection, session_id)
    if loaded is None:
        return None
    view = View(session_no=loaded.session_no, session_id=session_id, first=loaded.session.first_sequence)
    header = Header(version=loaded.ledger.version, session=loaded.session)
    return _entities(connection, header, view)


def _entities(connection: apsw.Connection, header: Header, view: View) -> Iterator[Entity]:
    counts = {"turns": 0, "messages": 0, "summaries": 0, "inputs": 0}
    yield header
    for name, entities in (
        ("turns", turns(connection, view.session_no)),
        ("messages", whole_messages(connection, view, header.session.message_count)),
        ("summaries", all_summaries(connection, view)),
        ("inputs", _inputs(connection, view.session_no)),
    ):
        for entity in entities:
            counts[name] += 1
            yield entity
    yield End(**counts)


def conversation(
    connection: apsw.Connection, session_id: str
) -> Iterator[Session | tuple[Message, Turn | None] | Summary] | None:
    """Return the session, and then each message with its turn, and each summary behind what it closes.

    None where there is no such session.
    """
    loaded = store.load_session(connection, session_id)
    if loaded is None:
        return None
    view = View(session_no=loaded.session_no, session_id=session_id, first=loaded.session.first_sequence)
    return _told(connection, loaded.session, view)


def _told(
    connection: apsw.Connection, session: Session, view: View
) -> Iterator[Session | tuple[Message, Turn | None] | Summary]:
    yield session
    closing = all_summaries(connection, view)
    summary = next(closing, None)
    turn: Turn | None = None
    for message in whole_messages(connection, view, session.message_count):
        if message.turn_id is UNSET:
            turn = None
        elif turn is None or turn.turn_id != message.turn_id:
            turn = next(iter(messages.turns_by_id(connection, view.session_no, [message.turn_id])), None)
        yield message, turn
        if summary is not None and summary.through_sequence == message.sequence:
            yield summary
            summary = next(closing, None)


def turns(connection: apsw.Connection, session_no: int) -> Iterator[Turn]:
    """Yield every turn, those that changed last at the end."""
    found = connection.execute(
        "SELECT body FROM turns INDEXED BY turns_ended WHERE session_no = ? AND NOT is_running"
        " ORDER BY revision, turn_id",
        (session_no,),
    )
    yield from (rows.read_turn(row[0]) for row in found)
    yield from messages.running_turns(connection, session_no)


def whole_messages(connection: apsw.Connection, view: View, last: int) -> Iterator[Message]:
    """Yield the messages up to ``last``, ascending."""
    start = view.first
    while start <= last:
        found = messages.span(
            connection, view, start=start, end=min(start + _BATCH - 1, last), max_bytes=_BATCH_BYTES
        )
        if not found:
            break
        yield from map(rows.whole_message, found)
        start = found[-1].head.sequence + 1


def all_summaries(connection: apsw.Connection, view: View) -> Iterator[Summary]:
    """Yield the summaries, ascending."""
    start = view.first
    while found := summaries.between(connection, view, start=start, end=2**62, limit=_BATCH):
        yield from found
        start = found[-1].through_sequence + 1


def _inputs(connection: apsw.Connection, session_no: int) -> Iterator[RememberedInput]:
    found = connection.execute(
        f"SELECT {rows.INPUT_COLUMNS} FROM inputs WHERE session_no = ? ORDER BY accepted, message_id",
        (session_no,),
    )
    for row in found:
        item = rows.read_input(row)
        yield RememberedInput(
            message_id=item.message_id,
            content_hash=item.content_hash,
            subject=item.subject,
            delivery=item.delivery,
            state=item.state,
            turn_id=rows.optional(item.turn_id),
            accepted=item.accepted,
            parts=cast("list[UserPart]", item.parts) if item.state == "queued" else UNSET,
        )
