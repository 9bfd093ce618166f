"""The tables: made once, kept by later openings, and never opened by an older program."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from pathlib import Path

import apsw
import pytest

from midstream.server.storage.database import Database
from midstream.server.storage.errors import DatabaseUnusable
from midstream.server.storage.schema import SCHEMA_VERSION, migrate
from tests.server.storage.books import create, new_connection, tables


def user_version(connection: apsw.Connection) -> int:
    """The schema that the file says it has."""
    return int(next(iter(connection.execute("PRAGMA user_version")))[0])


def test_a_new_file_gets_the_tables_and_says_which() -> None:
    """So that a later program knows what to do with it."""
    connection = new_connection()
    assert user_version(connection) == SCHEMA_VERSION
    assert set(tables(connection)) == {
        "sessions",
        "epochs",
        "messages",
        "parts",
        "interactions",
        "turns",
        "inputs",
    }


def test_migrating_again_changes_nothing() -> None:
    """What is stored stays."""
    connection = new_connection()
    create(connection)
    before = tables(connection)
    migrate(connection)
    assert tables(connection) == before


def test_every_table_refuses_values_of_another_type() -> None:
    """A text where a number belongs is a fault of ours, and must not be stored."""
    connection = new_connection()
    strict = dict(connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'"))
    assert all(strict[name] for name in tables(connection))


async def test_a_newer_file_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    """The text names both schemas, and says what to do."""
    path = tmp_path / "a.db"
    database = await Database.open(path, migrate=migrate, inline=True)
    await database.write(lambda connection: connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}"))
    await database.close()
    with pytest.raises(DatabaseUnusable, match=f"schema {SCHEMA_VERSION + 1}.*knows up to {SCHEMA_VERSION}"):
        await Database.open(path, migrate=migrate, inline=True)
    connection = apsw.Connection(str(path))
    assert user_version(connection) == SCHEMA_VERSION + 1
    connection.close()


async def test_the_file_of_another_program_is_refused_and_gets_no_tables(tmp_path: Path) -> None:
    """A path that was mistyped must not put conversations into somebody else's data."""
    path = tmp_path / "theirs.db"
    theirs = apsw.Connection(str(path))
    theirs.execute("CREATE TABLE accounts (balance)")
    with pytest.raises(DatabaseUnusable, match=r"'accounts'.*another program"):
        await Database.open(path, migrate=migrate, inline=True)
    assert tables(theirs).keys() == {"accounts"}
    theirs.close()
