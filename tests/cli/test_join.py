"""Where a session cannot be joined, one line says why and what to do."""

import socket

import pytest

from midstream.cli import join
from midstream.cli.failure import FAILED, CommandFailed
from midstream.cli.join import joined
from tests.cli.conftest import Join, Serve


async def test_where_no_server_answers_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some patience, with the reason in words, and how to start a server."""
    monkeypatch.setattr(join, "PATIENCE_S", 0.05)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(CommandFailed, match=url) as caught:
            async with joined(url, "s", create=True):
                pass
    assert caught.value.code == FAILED
    assert "midstream serve" in str(caught.value)


async def test_a_session_that_is_deleted_ends_the_chat_with_a_reason(serve: Serve, join: Join) -> None:
    """Whoever deletes it, the others are told."""
    async with serve() as server:
        person = await join(server.url)

        async def follow_to_the_end() -> None:
            async with joined(server.url, "s", create=False) as session:
                mutations = session.mutations()
                await person.session.delete()
                async for _ in mutations:
                    pass

        with pytest.raises(CommandFailed, match="deleted"):
            await follow_to_the_end()
