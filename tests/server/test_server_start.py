"""A server that cannot start leaves nothing behind: no task, no agent that runs, no lock on its database."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from midstream.client import Client
from midstream.server import ConfigError, Server, Turn

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_port_that_is_taken_ends_what_had_begun(tmp_path: Path) -> None:
    """Sessions with work are loaded before the server listens; their agents are stopped again."""
    began: asyncio.Queue[str] = asyncio.Queue()
    ended: list[str] = []

    async def agent(turn: Turn) -> None:
        began.put_nowait(turn.prompt_text)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(turn.prompt_text)

    def server() -> Server:
        return Server(agent=agent, database=tmp_path / "chat.db", log_level="error")

    async with server().listen("127.0.0.1", 0) as running, Client(running.url) as client:
        session = await client.session("s", create=True)
        await session.prompt("first")
        await session.prompt("second")
        await session.until(lambda: session.queue)
        assert await began.get() == "first"
    assert ended == ["first"]

    taken = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with taken:
        port = taken.sockets[0].getsockname()[1]
        with pytest.raises(ConfigError, match=str(port)):
            async with server().listen("127.0.0.1", port):
                pass
    assert await began.get() == "second"
    assert ended == ["first", "second"]
    assert asyncio.all_tasks() == {asyncio.current_task()}

    async with server().listen("127.0.0.1", 0) as running, Client(running.url) as client:
        session = await client.session("s")
        assert [message.role for message in session.messages] == ["user", "agent", "user", "agent"]
