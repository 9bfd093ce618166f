"""The tables: made once, kept by later openings, and never opened by an older program."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from midstream.server.storage import exports, messages, rows, store
from midstream.server.storage.database import Database
from midstream.server.storage.errors import DatabaseUnusable
from midstream.server.storage.records import View
from midstream.server.storage.schema import SCHEMA_VERSION, STEPS, migrate
from tests.server.storage.books import (
    changed_since,
    create,
    new_connection,
    new_session,
    running_turn,
    sequences,
    tables,
    text_message,
    write_of,
)


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
        "attachments",
        "summaries",
    }


def test_migrating_again_changes_nothing() -> None:
    """What is stored stays."""
    connection = new_connection()
    create(connection)
    before = tables(connection)
    migrate(connection)
    assert tables(connection) == before


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_an_older_file_becomes_what_a_new_one_is(version: int) -> None:
    """From every schema that there ever was, and what is stored in it is read as it was."""
    connection = apsw.Connection(":memory:")
    for step in STEPS[:version]:
        connection.execute(step)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(
        "INSERT INTO sessions (session_id, status, revision, title, metadata, created_at, updated_at,"
        " first_sequence, message_count, pending_interactions, version, ceiling, epoch, generation, dirty,"
        " cleared_version, last_time)"
        " VALUES ('s', 'live', 1, 'old', ?, 5, 6, 1, 0, 0, 1, 1, 'first', 1, 0, 0, 6)",
        (rows.encode({}),),
    )
    migrate(connection)
    assert user_version(connection) == SCHEMA_VERSION
    assert columns(connection) == columns(new_connection())
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert loaded.session == structs.replace(new_session(), title="old", created_at=5, updated_at=6)


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_what_an_older_file_holds_is_found_and_goes_on(version: int) -> None:
    """What changed, each prompt and each turn; and the next commits are those of a new file."""
    connection = apsw.Connection(":memory:")
    for step in STEPS[:version]:
        connection.execute(step)
    connection.execute(f"PRAGMA user_version = {version}")
    turns = [running_turn("a", 7), running_turn("b", 8)]
    for sequence, (turn_id, revision) in enumerate([("a", 2), ("a", 9), ("b", 4), ("b", 5)], 1):
        connection.execute(_OLD_MESSAGE, (sequence, f"m{sequence}", turn_id, revision, sequence + 1))
    for turn in turns:
        connection.execute(
            "INSERT INTO turns (session_no, turn_id, revision, body) VALUES (1, ?, ?, ?)",
            (turn.turn_id, turn.revision, rows.encode(turn)),
        )
    migrate(connection)
    view = View(session_no=1, session_id="s")

    def found(above: int) -> list[int]:
        return sequences(changed_since(connection, view, version=above))

    assert [found(above) for above in (1, 3, 4, 5, 9)] == [[1, 2, 3, 4], [2, 3, 4], [2, 4], [2], []]
    prompts = [messages.prompt_of(connection, view, turn.turn_id) for turn in turns]
    assert [one.head.sequence for one in prompts if one] == [1, 3]
    assert messages.turns_since(connection, 1, 6, 9) == turns
    assert messages.turns_since(connection, 1, 7, 9) == turns[1:]
    changed = structs.replace(turns[1], revision=10)
    commit = write_of(1, [text_message(4, revision=10), text_message(5, revision=10)])
    heads = [structs.replace(row, changed_late=False) for row in commit.messages]
    store.write_session(connection, structs.replace(commit, messages=heads, turns=[changed]))
    assert [found(above) for above in (8, 9, 10)] == [[2, 4, 5], [4, 5], []]
    assert messages.turns_since(connection, 1, 6, 9) == [turns[0], changed]
    assert list(exports.turns(connection, 1)) == [turns[0], changed]


_OLD_MESSAGE = """
INSERT INTO messages (session_no, sequence, message_id, turn_id, revision, created_version, role, visibility,
    created_at, updated_at, part_count, is_open) VALUES (1, ?, ?, ?, ?, ?, 'user', 'visible', 5, 6, 0, 0)
"""


def columns(connection: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Every column of every table, with its type, default and place in the key, by name."""
    return {
        name: sorted(
            tuple(row[1:])
            for row in connection.execute("SELECT * FROM pragma_table_info(?) ORDER BY name", (name,))
        )
        for name in tables(connection)
    }


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
