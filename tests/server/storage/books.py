"""A database with the tables of midstream, and sessions written into it as a loop would."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
from msgspec import structs

from midstream.protocol.model import Message, Session, Summary, TextPart, Turn
from midstream.server.storage import messages, rows, schema, store
from midstream.server.storage.records import InputRow, LedgerRow, MessageRow, PartRow, SessionWrite, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.server.storage.records import StoredMessage

NOW = 1_700_000_000_000


def new_connection() -> apsw.Connection:
    """A database in memory, with all tables."""
    connection = apsw.Connection(":memory:")
    schema.migrate(connection)
    return connection


def new_session(session_id: str = "s", *, updated_at: int = NOW) -> Session:
    """A session as it is made."""
    return Session(
        session_id=session_id,
        revision=1,
        metadata={},
        created_at=NOW,
        updated_at=updated_at,
        first_sequence=1,
        message_count=0,
        queue=[],
        pending_interactions=0,
    )


def new_ledger(version: int = 1) -> LedgerRow:
    """A clean ledger at a version."""
    return LedgerRow(
        version=version,
        ceiling=version,
        epoch="first",
        generation=1,
        dirty=False,
        cleared_version=0,
        last_time=NOW,
    )


def create(connection: apsw.Connection, session: Session | str = "s", *, status: str = "live") -> int:
    """Insert a session, and give its number."""
    made = new_session(session) if isinstance(session, str) else session
    return store.create_session(connection, made, new_ledger(), status=status)


def text_message(
    sequence: int, text: str = "x", *, revision: int | None = None, internal: bool = False
) -> Message:
    """A user's message with one text."""
    return Message(
        message_id=f"m{sequence}",
        session_id="s",
        sequence=sequence,
        revision=revision or sequence + 1,
        role="user",
        visibility="internal" if internal else "visible",
        created_at=NOW,
        updated_at=NOW,
        parts=[TextPart(text=text, part_id="p", sequence=1)],
    )


def new_input(message_id: str, accepted: int, state: str = "queued") -> InputRow:
    """An input with one text."""
    return InputRow(
        message_id=message_id,
        content_hash=f"hash of {message_id}",
        subject="ann",
        delivery="auto",
        state="queued" if state == "queued" else "started",
        turn_id=None if state == "queued" else "turn",
        accepted=accepted,
        parts=[TextPart(text=message_id)],
    )


def new_summary(start: int, through: int) -> Summary:
    """A summary of what these messages said."""
    return Summary(from_sequence=start, through_sequence=through, text=f"up to {through}", created_at=NOW)


def running_turn(turn_id: str = "turn", revision: int = 2) -> Turn:
    """A turn that runs."""
    return Turn(
        turn_id=turn_id, revision=revision, state="running", phase="starting", phase_since=NOW, started_at=NOW
    )


def write_of(
    number: int,
    written: Sequence[Message],
    *,
    ledger: LedgerRow | None = None,
    session: Session | None = None,
    is_open: bool = False,
) -> SessionWrite:
    """The commit that stores these messages whole, each part with its message's revision."""
    heads = [
        MessageRow(
            head=structs.replace(message, parts=[]),
            created_version=message.revision,
            part_count=len(message.parts),
            is_open=is_open,
        )
        for message in written
    ]
    parts: list[PartRow] = [
        (message.sequence, part.sequence, message.revision, rows.encode(part))
        for message in written
        for part in message.parts
    ]
    return SessionWrite(
        session_no=number, ledger=ledger or new_ledger(), session=session, messages=heads, parts=parts
    )


def write(connection: apsw.Connection, number: int, *written: Message) -> None:
    """Store messages."""
    store.write_session(connection, write_of(number, written))


def fill(connection: apsw.Connection, number: int, count: int, *, text: str = "x") -> None:
    """Store messages 1 to ``count``."""
    write(connection, number, *(text_message(sequence, text) for sequence in range(1, count + 1)))


def whole(found: Sequence[StoredMessage]) -> list[Message]:
    """The messages, decoded."""
    return [rows.whole_message(one) for one in found]


def sequences(found: Sequence[StoredMessage] | None) -> list[int]:
    """Their sequences."""
    assert found is not None
    return [one.head.sequence for one in found]


def everything(connection: apsw.Connection, number: int, session_id: str = "s") -> list[Message]:
    """All messages of a session."""
    view = View(session_no=number, session_id=session_id)
    return whole(messages.span(connection, view, start=1, end=2**62))


page = partial(messages.page, before=None, limit=50, max_bytes=2**30)
changed_since = partial(messages.changed_since, version=0, max_messages=200, max_bytes=2**30)


def tables(connection: apsw.Connection) -> dict[str, int]:
    """The number of rows of each table."""
    names = [
        str(name)
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]
    return {name: int(next(iter(connection.execute(f"SELECT count(*) FROM {name}")))[0]) for name in names}  # noqa: S608  # names of the schema
