"""Importing into a database, and reading back what is in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.protocol.export import write_line
from midstream.server.sessions.imports import Import
from midstream.server.storage import exports
from midstream.server.storage.database import Database
from midstream.server.storage.schema import migrate

if TYPE_CHECKING:
    import apsw

    from midstream.protocol.export import Entity
    from midstream.protocol.model import Session
    from tests.whole_sessions import Whole

NOW = 1_950_000_000_000
"""The time of every import: after all that is drawn."""


@asynccontextmanager
async def opened(path: Path, *, vfs: str | None = None) -> AsyncGenerator[Database]:
    """A database that the test owns."""
    database = await Database.open(path, migrate=migrate, inline=True, synchronous="OFF", vfs=vfs)
    try:
        yield database
    finally:
        await database.close()


async def bring(database: Database, lines: Iterable[bytes], session_id: str | None = None) -> Session:
    """Import an export."""
    return await Import(database, epoch="e" * 16, now=NOW, session_id=session_id).run(lines)


async def bring_older(database: Database, lines: Iterable[bytes], session_id: str | None = None) -> Session:
    """Import the older form."""
    return await Import(database, epoch="e" * 16, now=NOW, session_id=session_id).run_four_type(lines)


async def held(database: Database, session_id: str = "s") -> list[Entity]:
    """All that is stored of a session, as its export has it."""
    return await database.read(partial(_held, session_id=session_id))


def _held(connection: apsw.Connection, session_id: str) -> list[Entity]:
    entities = exports.exported(connection, session_id)
    assert entities is not None, session_id
    return list(entities)


def written(entities: Whole | Iterable[Entity]) -> list[bytes]:
    """The lines of a session."""
    return [write_line(one) for one in (entities if isinstance(entities, Iterable) else entities.entities())]
