"""A database can be read without its server, while it runs and after it was killed."""

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import json
from pathlib import Path

import apsw
import msgspec
import pytest

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.cli.inspect import inspect
from tests.cli.conftest import Join, Serve


async def test_the_messages_are_those_that_clients_see(serve: Serve, join: Join, tmp_path: Path) -> None:
    """While the server owns the file, and after it has closed it."""
    path = tmp_path / "chat.db"
    async with serve() as server:
        person = await join(server.url)
        for prompt in ("use a tool", "note buy milk"):
            await person.chat.typed(prompt)
            await person.chat.settled()
        seen = [json.loads(msgspec.json.encode(message)) for message in person.session.messages]
        assert [json.loads(line) for line in inspect(path, "s")] == seen
    assert [json.loads(line) for line in inspect(path, "s")] == seen


async def test_sessions_are_listed_and_cleared_messages_are_gone(
    serve: Serve, join: Join, tmp_path: Path
) -> None:
    """What a clear removed is not shown, and numbers go on after it."""
    path = tmp_path / "chat.db"
    async with serve() as server:
        person = await join(server.url)
        await person.chat.typed("hello")
        await person.chat.settled()
        await person.session.clear()
        (session,) = [json.loads(line) for line in inspect(path, None)]
        assert (session["session_id"], session["first_sequence"]) == ("s", 3)
        assert list(inspect(path, "s")) == []


async def test_archived_sessions_are_listed_last(serve: Serve, join: Join, tmp_path: Path) -> None:
    """Every session is in the list once."""
    async with serve() as server:
        person = await join(server.url)
        await person.session.archive()
        fork = await person.session.fork(session_id="copy")
        assert fork.session_id == "copy"
    listed = [json.loads(line)["session_id"] for line in inspect(tmp_path / "chat.db", None)]
    assert listed == ["copy", "s"]


async def test_a_database_is_not_changed_by_reading_it(serve: Serve, join: Join, tmp_path: Path) -> None:
    """Not one byte of the file."""
    path = tmp_path / "chat.db"
    async with serve() as server:
        person = await join(server.url)
        await person.chat.typed("hello")
        await person.chat.settled()
    before = path.read_bytes()
    assert len(list(inspect(path, "s"))) == 2
    assert path.read_bytes() == before


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    """A missing file is not made, and another program's file is named as such."""
    with pytest.raises(CommandFailed, match="There is no file") as caught:
        list(inspect(tmp_path / "missing.db", None))
    assert caught.value.code == MISUSED
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text.db").write_text("not a database, but long enough to be read as one" * 100)
    with pytest.raises(CommandFailed, match="cannot be read"):
        list(inspect(tmp_path / "text.db", None))
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(CommandFailed, match="has schema 0"):
        list(inspect(tmp_path / "other.db", None))


async def test_an_unknown_session_is_refused(serve: Serve, tmp_path: Path) -> None:
    """An empty output would look like an empty session."""
    async with serve():
        pass
    with pytest.raises(CommandFailed, match="There is no session 'nobody'"):
        list(inspect(tmp_path / "chat.db", "nobody"))
