"""Reads a session from lines of JSON into a database file, which no server may own meanwhile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.protocol.errors import AlreadyExists
from midstream.protocol.lines import LINE_BYTES, BadLine
from midstream.server.clock import SystemClock
from midstream.server.ids import RandomIds
from midstream.server.sessions.imports import Import
from midstream.server.storage import store
from midstream.server.storage.database import Database
from midstream.server.storage.errors import StorageError
from midstream.server.storage.schema import migrate

if TYPE_CHECKING:
    from midstream.protocol.model import Session

_ID_LENGTH = 128
"""Characters, and bytes, of an id that a person may choose."""


def import_file(path: Path, file: str, session_id: str | None, *, is_four_type: bool) -> Session:
    """Import the lines of a file (``-``: the standard input), and return the session as it is now.

    Raises:
        CommandFailed: a line is not what it must be, the session exists, or the database cannot be owned.

    """
    if session_id is not None and not 0 < len(session_id.encode()) <= _ID_LENGTH:
        raise CommandFailed(f"A session's id has 1 to {_ID_LENGTH} bytes.", code=MISUSED)
    if file == "-":
        return asyncio.run(_import(path, sys.stdin.buffer, session_id, is_four_type=is_four_type))
    try:
        with Path(file).open("rb") as lines:
            return asyncio.run(_import(path, lines, session_id, is_four_type=is_four_type))
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}", code=MISUSED) from error


async def _import(path: Path, lines: IO[bytes], session_id: str | None, *, is_four_type: bool) -> Session:
    try:
        database = await Database.open(path, migrate=migrate)
        try:
            await _clean(database)
            importing = Import(
                database, epoch=RandomIds().epoch(), now=SystemClock().wall_ms(), session_id=session_id
            )
            run = importing.run_four_type if is_four_type else importing.run
            return await run(_lines(lines))
        finally:
            await database.close()
    except BadLine as error:
        raise CommandFailed(f"{error}. Nothing was imported.") from error
    except AlreadyExists as error:
        raise CommandFailed(
            f"There is, or was, a session {error.details['id']!r} in this database. Give another id with"
            " --session. Nothing was imported."
        ) from error
    except StorageError as error:
        raise CommandFailed(str(error)) from error


async def _clean(database: Database) -> None:
    """Remove what an import that was killed has left, as the start of a server would."""
    for session_no in await database.read(store.sessions_to_clean):
        while await database.write(partial(store.purge, session_no=session_no)):
            pass


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    number = 0
    while line := file.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise BadLine(number, "", f"is longer than {LINE_BYTES} bytes")
        yield line
