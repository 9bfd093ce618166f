"""Files that are damaged, of a newer program, or no database: what is refused, what is served and said."""

from __future__ import annotations

import json
from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest

from midstream.protocol.calls import Page, PromptResult, SessionResult
from midstream.protocol.errors import Unavailable
from midstream.server.storage.schema import SCHEMA_VERSION
from tests.cli.processes import Ended, serving, started
from tests.end_to_end.stage import prompt_params
from tests.laws.line import Line

NEEDLE = "a needle in the file "
PAGE_BYTES = 4096


async def written(folder: Path) -> Path:
    """Write a database with two sessions; what was said in ``a`` stands on pages of its own."""
    async with serving(folder, "--no-page") as (_, url):
        line = await Line.open(url)
        for name, text in (("a", NEEDLE * 1000), ("b", "hello")):
            await line.ask(SessionResult, "sessions.create", session_id=name)
            await line.ask(PromptResult, "prompt", **prompt_params(text, name, f"of {name}"))
        await line.close()
    path = folder / "chat.db"
    apsw.Connection(str(path)).pragma("wal_checkpoint", "truncate")
    return path


async def served(folder: Path) -> Ended:
    """Start a server that is expected to refuse to."""
    async with started("serve", "--port", "0", "--database", "chat.db", folder=folder) as server:
        return await server.ended()


async def checked(folder: Path, name: str = "chat.db") -> Ended:
    """Run ``midstream check``."""
    async with started("check", name, folder=folder) as check:
        return await check.ended()


async def test_a_file_whose_header_is_overwritten_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """In one line that says what to do."""
    path = await written(tmp_path)
    damaged = b"not a database at all" + path.read_bytes()[21:]
    path.write_bytes(damaged)
    ended = await served(tmp_path)
    assert ended.code == 1
    assert "not a database" in ended.err
    assert ended.err.count("\n") == 1
    assert path.read_bytes() == damaged
    assert (await checked(tmp_path)).code == 1


async def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    """And the text says to put a backup in its place."""
    path = await written(tmp_path)
    path.write_bytes(path.read_bytes()[: 3 * PAGE_BYTES])
    ended = await served(tmp_path)
    assert ended.code == 1
    assert "malformed" in ended.err
    assert "backup" in ended.err
    assert (await checked(tmp_path)).code == 1


async def test_a_damaged_page_costs_what_stands_on_it_and_is_said_once(tmp_path: Path) -> None:
    """Other sessions go on, whatever is asked of that one; the check names it."""
    path = await written(tmp_path)
    content = path.read_bytes()
    page = next(
        at
        for at in range(PAGE_BYTES, len(content), PAGE_BYTES)
        if content[at] not in {0x0A, 0x0D} and NEEDLE.encode() in content[at : at + PAGE_BYTES]
    )
    path.write_bytes(content[:page] + b"\xff" * PAGE_BYTES + content[page + PAGE_BYTES :])
    async with serving(tmp_path, "--no-page", "--log-format", "json") as (server, url):
        line = await Line.open(url)
        for _ in range(5):
            with pytest.raises(Unavailable):
                await line.ask(Page, "messages", session_id="a")
            assert (await line.ask(Page, "messages", session_id="b")).items
        await line.ask(PromptResult, "prompt", **prompt_params("still", "b", "another"))
        await server.until_note("database_damaged")
        await line.close()
        logged = [json.loads(one) for one in server.err.splitlines()]
    assert [one["event"] for one in logged] == ["database_damaged"]
    assert "midstream check" in logged[0]["do"]
    ended = await checked(tmp_path)
    assert ended.code == 1
    assert "damaged" in ended.err
    assert ended.out


async def test_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """The file is left as it is."""
    path = await written(tmp_path)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", SCHEMA_VERSION + 1)
    newer.close()
    before = path.read_bytes()
    ended = await served(tmp_path)
    assert ended.code == 1
    assert f"schema {SCHEMA_VERSION + 1}" in ended.err
    assert "Start it with the version that wrote it" in ended.err
    assert ended.err.count("\n") == 1
    assert path.read_bytes() == before
