"""A session leaves a database as a file and enters another, by the commands as people type them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec import UNSET

from midstream.cli import importing
from midstream.cli.exporting import export, export_four_type
from midstream.cli.failure import MISUSED, CommandFailed
from midstream.cli.importing import import_file
from midstream.cli.inspect import inspect, read_only
from midstream.client import Client
from midstream.server.sessions.imports import Import
from midstream.server.storage.database import Database
from midstream.server.storage.errors import StorageError
from midstream.server.storage.schema import migrate
from tests.cli.conftest import Join, Serve
from tests.cli.processes import started
from tests.server.storage.books import tables


async def talked(serve: Serve, join: Join) -> None:
    """Let somebody talk with the demo agent, and summarize what was said."""
    async with serve() as server:
        person = await join(server.url)
        for prompt in ("use a tool", "note buy milk"):
            await person.chat.typed(prompt)
            await person.chat.settled()
        await person.session.update(title="Milk")
        await person.session.compact(2, "A tool was used.")


async def test_a_session_moves_to_another_database_by_two_commands(
    serve: Serve, join: Join, tmp_path: Path
) -> None:
    """Through a pipe; a server of the other database shows the same, and its export is the same file."""
    await talked(serve, join)
    async with started("export", "chat.db", "s", folder=tmp_path) as exporting:
        exported = await exporting.ended()
    assert (exported.code, exported.err) == (0, "")
    (tmp_path / "s.jsonl").write_text(exported.out)
    async with started("import", "other.db", "s.jsonl", folder=tmp_path) as importing:
        imported = await importing.ended()
    assert (imported.code, imported.out) == (0, "Imported s: 4 message(s)\n")
    assert list(inspect(tmp_path / "other.db", "s")) == list(inspect(tmp_path / "chat.db", "s"))
    async with started("export", "other.db", "s", folder=tmp_path) as exporting:
        assert (await exporting.ended()).out == exported.out
    async with started(
        "import", "other.db", "-", "--session", "copy", folder=tmp_path, typing=True
    ) as importing:
        await importing.type(*exported.out.splitlines())
        assert (await importing.ended()).out == "Imported copy: 4 message(s)\n"


async def test_an_imported_session_is_proved_by_its_digests(serve: Serve, join: Join, tmp_path: Path) -> None:
    """A client that follows it verifies it; its summary is there, and the conversation goes on."""
    await talked(serve, join)
    lines = list(export(tmp_path / "chat.db", "s"))
    (tmp_path / "chat.db").unlink()
    (tmp_path / "s.jsonl").write_bytes(b"".join(lines))
    imported = partial(import_file, tmp_path / "chat.db", str(tmp_path / "s.jsonl"), None, is_four_type=False)
    await asyncio.to_thread(imported)
    async with serve() as server, Client(server.url) as client:
        session = await client.session("s")
        assert await session.verify()
        assert (session.info.title, session.info.summarized_through) == ("Milk", 2)
        summary = (await session.segment(3)).summary
        assert summary is not UNSET
        assert summary.text == "A tool was used."
        await (await session.prompt("hello")).finished()
        assert len(session.messages) == 6


async def test_what_cannot_be_imported_is_said_in_one_line_and_leaves_the_database_as_it_was(
    serve: Serve, join: Join, tmp_path: Path
) -> None:
    """A bad line, an id that is taken, a file that is not there, and a database that a server owns."""
    await talked(serve, join)
    path = tmp_path / "chat.db"
    lines = list(export(path, "s"))
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"".join([*lines[:4], lines[4].replace(b'"role":"', b'"role":"x'), *lines[5:]]))
    before = list(inspect(path, None))

    def refused(file: Path, session_id: str | None, *, is_four_type: bool = False) -> CommandFailed:
        with pytest.raises(CommandFailed) as caught:
            import_file(path, str(file), session_id, is_four_type=is_four_type)
        return caught.value

    wrong = await asyncio.to_thread(refused, bad, "t")
    assert str(wrong).startswith("line 5: message.role: ")
    assert str(wrong).endswith(" Nothing was imported.")
    good = tmp_path / "good.jsonl"
    good.write_bytes(b"".join(lines))
    assert "--session" in str(await asyncio.to_thread(refused, good, None))
    assert str(await asyncio.to_thread(refused, good, "t", is_four_type=True)).startswith("line 1: type: ")
    for file, session_id in ((tmp_path / "missing", None), (good, ""), (good, "x" * 129)):
        assert (await asyncio.to_thread(refused, file, session_id)).code == MISUSED
    assert list(inspect(path, None)) == before
    async with serve():
        assert "is in use" in str(await asyncio.to_thread(refused, good, "t"))
        assert list(export(path, "s")) == lines


async def test_what_is_not_there_is_not_exported(serve: Serve, tmp_path: Path) -> None:
    """Neither a session nor a file; nothing is made."""
    async with serve():
        pass
    for path, session_id in ((tmp_path / "chat.db", "never"), (tmp_path / "missing.db", "s")):
        with pytest.raises(CommandFailed) as caught:
            list(export(path, session_id))
        assert caught.value.code == MISUSED
        with pytest.raises(CommandFailed):
            list(export_four_type(path, session_id, Counter()))
    assert not (tmp_path / "missing.db").exists()


async def test_the_older_form_goes_out_and_comes_in_and_says_what_it_lost(
    serve: Serve, join: Join, tmp_path: Path
) -> None:
    """By `--to` and `--from`; a second time nothing more is lost."""
    await talked(serve, join)
    async with started("export", "chat.db", "s", "--to", "four-type", folder=tmp_path) as exporting:
        exported = await exporting.ended()
    assert exported.code == 0
    assert "midstream: lost in the older form: titles (1)\n" in exported.err
    types = [json.loads(line)["type"] for line in exported.out.splitlines()]
    assert set(types) == {"user", "assistant", "action"}
    kinds = [json.loads(line).get("kind") for line in exported.out.splitlines()]
    assert kinds.count("summary") == 1
    (tmp_path / "old.jsonl").write_text(exported.out)
    async with started("import", "new.db", "old.jsonl", "--from", "four-type", folder=tmp_path) as importing:
        assert (await importing.ended()).out == f"Imported s: {len(types) - 1} message(s)\n"
    lost = Counter[str]()
    again = b"".join(export_four_type(tmp_path / "new.db", "s", lost))
    assert again.decode() == exported.out
    assert lost == Counter()


async def test_what_an_import_that_was_killed_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """The id is free again, and nothing of the first is in the second."""
    path = tmp_path / "chat.db"
    database = await Database.open(path, migrate=migrate, inline=True)
    first = Import(database, epoch="e" * 16, now=5, session_id="s")

    def killed() -> Iterator[bytes]:
        for number in range(2_000):
            yield PROMPT % number
        database.abandon()
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, StorageError)):
        await first.run_four_type(killed())
    file = tmp_path / "old.jsonl"
    file.write_bytes(PROMPT % 1)
    session = await asyncio.to_thread(partial(import_file, path, str(file), "s", is_four_type=True))
    assert session.message_count == 1
    with read_only(path) as connection:
        left = tables(connection)
    assert (left["sessions"], left["messages"], left["parts"]) == (1, 1, 1)


PROMPT = b'{"type":"user","message_id":"u%d","created_at":5,"parts":[{"type":"text","text":"Hi"}]}\n'


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused where it passes what any line may have."""
    monkeypatch.setattr(importing, "LINE_BYTES", 100)
    file = tmp_path / "old.jsonl"
    file.write_bytes(PROMPT % 1 + b'{"type":"' + b"x" * 1_000)
    with pytest.raises(CommandFailed, match="line 2: is longer than 100 bytes"):
        import_file(tmp_path / "chat.db", str(file), "s", is_four_type=True)
