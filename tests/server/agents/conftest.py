"""A session with an agent: a real server on loopback, and a client that has joined."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from midstream.agents import Agent
from midstream.client.client import Client
from midstream.client.session import Session
from midstream.server.server import Server

Join: TypeAlias = Callable[[Agent], Awaitable[Session]]


@pytest.fixture
async def join(tmp_path: Path) -> AsyncGenerator[Join]:
    """Give a function that serves an agent and joins a session with it."""
    async with AsyncExitStack() as stack:

        async def joined(agent: Agent) -> Session:
            server = Server(agent=agent, database=tmp_path / "agents.db")
            running = await stack.enter_async_context(server.listen("127.0.0.1", 0))
            client = await stack.enter_async_context(Client(running.url))
            return await client.session("s", create=True)

        yield joined
