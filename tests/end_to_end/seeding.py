"""A database with a long conversation in it, written as the server writes it, in one commit."""

from __future__ import annotations

from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
from msgspec import UNSET

from midstream.protocol.model import Message, Session, TextPart
from midstream.server.storage import rows, store
from midstream.server.storage.database import Database
from midstream.server.storage.records import LedgerRow, MessageRow, SessionWrite
from midstream.server.storage.schema import migrate

TIME = 1_700_000_000_000


def is_internal(sequence: int) -> bool:
    """Say whether a message of the conversation is internal: the first ones, and one in seven."""
    return sequence <= 3 or sequence % 7 == 0


def message_of(session_id: str, sequence: int) -> Message:
    """Return a message of the conversation; user and agent alternate."""
    internal = is_internal(sequence)
    by_agent = sequence % 2 == 0 and not internal
    part = TextPart(
        part_id="p1",
        sequence=1,
        text=f"Message {sequence} " + "and what it says. " * (sequence % 30),
        state="done" if by_agent else UNSET,
    )
    return Message(
        message_id=f"seeded_{sequence}",
        session_id=session_id,
        sequence=sequence,
        revision=2,
        role="agent" if by_agent else "user",
        visibility="internal" if internal else "visible",
        created_at=TIME + sequence,
        updated_at=TIME + sequence,
        state="done" if by_agent else UNSET,
        parts=[part],
    )


async def seed(path: Path, session_id: str, count: int) -> None:
    """Write a session of so many messages into a new database."""
    database = await Database.open(path, migrate=migrate)
    session = Session(
        session_id=session_id, revision=2, created_at=TIME, updated_at=TIME, message_count=count
    )
    ledger = LedgerRow(
        version=2,
        ceiling=2,
        epoch="00000000000000e1",
        generation=database.generation,
        dirty=False,
        cleared_version=0,
        last_time=TIME + count,
    )
    messages = [message_of(session_id, sequence) for sequence in range(1, count + 1)]

    def write(connection: apsw.Connection) -> None:
        number = store.create_session(connection, session, ledger)
        store.write_session(
            connection,
            SessionWrite(
                session_no=number,
                ledger=ledger,
                session=session,
                messages=[
                    MessageRow(head=message, created_version=2, part_count=1, is_open=False)
                    for message in messages
                ],
                parts=[(message.sequence, 1, 2, rows.encode(message.parts[0])) for message in messages],
            ),
        )

    await database.write(write)
    await database.close()
