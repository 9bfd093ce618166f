"""Chats with a real server on loopback."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from midstream.agents import Agent
from midstream.cli.chat import Chat
from midstream.client.client import Client
from midstream.client.session import Session
from midstream.server.agents import demo_agent
from midstream.server.server import RunningServer, Server
from tests.cli.watched import WatchedScreen


class Person(NamedTuple):
    """One who chats: what they type into, what they see, and their session."""

    chat: Chat
    screen: WatchedScreen
    session: Session


class Serve(Protocol):
    """Starts a server on the test's database; closing what it returns stops it."""

    def __call__(
        self, agent: Agent = ..., *, port: int = 0
    ) -> contextlib.AbstractAsyncContextManager[RunningServer]:
        """Return a context that serves."""
        ...


Join = Callable[[str], Awaitable[Person]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Give a function that serves the demo agent, or another."""

    def served(
        agent: Agent = demo_agent(speed=0),  # noqa: B008 - it has no state
        *,
        port: int = 0,
    ) -> contextlib.AbstractAsyncContextManager[RunningServer]:
        return Server(agent=agent, database=tmp_path / "chat.db").listen("127.0.0.1", port)

    return served


@pytest.fixture
async def join() -> AsyncGenerator[Join]:
    """Give a function that lets a person join the session `s` of a server."""
    async with AsyncExitStack() as stack:

        async def joined(url: str) -> Person:
            client = await stack.enter_async_context(Client(url))
            session = await client.session("s", create=True)
            screen = WatchedScreen()
            chat = Chat(session, screen)
            following = (asyncio.create_task(chat.follow()), asyncio.create_task(chat.follow_states()))

            async def leave() -> None:
                for task in following:
                    task.cancel()
                await asyncio.gather(*following, return_exceptions=True)
                await chat.close()

            stack.push_async_callback(leave)
            return Person(chat, screen, session)

        yield joined
