"""Reads a database file without its server: the sessions, or the messages of one as JSON lines."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import msgspec

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.server.storage import listing, messages, rows, store
from midstream.server.storage.connection import Place
from midstream.server.storage.errors import DatabaseUnusable
from midstream.server.storage.records import View
from midstream.server.storage.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from midstream.protocol.model import Message, Session

_BATCH = 200
"""Messages that are read at once."""


@contextmanager
def read_only(path: Path, *, is_held: bool = True, any_schema: bool = False) -> Generator[apsw.Connection]:
    """Open a database for reading, on one state throughout (``is_held``), whether or not a server owns it.

    Its schema is this program's, or, with ``any_schema``, one of a server's.

    Raises:
        CommandFailed: there is no such file, or it is no database of midstream.

    """
    if not path.is_file():
        raise CommandFailed(
            f"There is no file {path}. Name the database that `midstream serve` uses.", code=MISUSED
        )
    try:
        connection = Place.at(path, vfs=None, synchronous="FULL").connect_reader()
        try:
            _check_schema(path, connection, any_schema=any_schema)
            with connection if is_held else nullcontext():
                yield connection
        finally:
            connection.close(force=True)
    except DatabaseUnusable as error:
        raise CommandFailed(str(error)) from error
    except apsw.Error as error:
        raise CommandFailed(f"{path} cannot be read: {error}") from error


def sessions_in(connection: apsw.Connection) -> Iterator[Session]:
    """Yield every session, those that changed last first, and the archived ones after the others."""
    for archived in (False, True):
        after: tuple[int, str] | None = None
        while True:
            listed, after = listing.list_sessions(connection, limit=_BATCH, after=after, archived=archived)
            yield from listed
            if after is None:
                break


def messages_in(connection: apsw.Connection, session_id: str) -> Iterator[Message]:
    """Yield the messages of a session as they are stored, ascending, internal ones included.

    Raises:
        CommandFailed: there is no such session.

    """
    loaded = store.load_session(connection, session_id)
    if loaded is None:
        raise CommandFailed(f"There is no session {session_id!r} in this database.", code=MISUSED)
    session = loaded.session
    view = View(session_no=loaded.session_no, session_id=session_id, first=session.first_sequence)
    for start in range(session.first_sequence, session.message_count + 1, _BATCH):
        found = messages.span(connection, view, start=start, end=start + _BATCH - 1)
        yield from map(rows.whole_message, found)


def inspect(path: Path, session_id: str | None) -> Iterator[str]:
    """Yield JSON lines: the sessions of a database, or the messages of one of them."""
    with read_only(path) as connection:
        entities = sessions_in(connection) if session_id is None else messages_in(connection, session_id)
        for entity in entities:
            yield msgspec.json.encode(entity).decode()


def _check_schema(path: Path, connection: apsw.Connection, *, any_schema: bool) -> None:
    found = connection.pragma("user_version")
    if found != SCHEMA_VERSION and not (any_schema and found):
        raise CommandFailed(
            f"{path} has schema {found}, and this midstream reads {SCHEMA_VERSION}: it is no database of"
            " midstream, or one of another version. A server that starts on an older one brings it up."
        )
