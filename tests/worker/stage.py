"""A server that leaves its turns to workers, on a real socket and file, and workers in the test's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from midstream.agents import Agent
from midstream.client import Session
from midstream.client.transport import Encoding
from midstream.protocol.model import Message, TextPart
from midstream.server import Server
from midstream.server.config import Config
from midstream.worker import Worker, WorkerOptions
from tests.end_to_end.stage import QUICK, Stage
from tests.laws.world import Puppet

P = TypeVar("P")


class Working:
    """A worker that runs as a task.

    Attributes:
        worker: the worker.
        puppet: its agent, where it was given no other.
    """

    def __init__(self, worker: Worker, puppet: Puppet) -> None:
        self.worker = worker
        self.puppet = puppet
        self.running = asyncio.create_task(worker.run(), name=f"worker {worker.name}")

    async def close(self) -> None:
        """End it at once; what it failed with is the test's to look at."""
        await self.worker.close()
        with suppress(Exception):
            await self.running


class WorkerStage(Stage):
    """A stage whose server runs no agent."""

    def __init__(self, path: Path, **settings: Any) -> None:  # noqa: ANN401  # of Config
        super().__init__(path, **settings)
        self._workers = AsyncExitStack()
        self._count = 0

    async def start(self) -> None:
        """Start a server."""
        server = Server(database=self.path, config=Config(agent="remote"), **self.settings)
        self._running = await self._life.enter_async_context(server.listen("127.0.0.1", 0))

    def work(
        self,
        agent: Agent | None = None,
        *,
        url: str | None = None,
        name: str = "w",
        encoding: Encoding = "msgpack",
        **wish: Any,  # noqa: ANN401  # of Worker
    ) -> Working:
        """Start a worker, which is closed at the end."""
        puppet = Puppet()
        self._count += 1
        worker = Worker(
            url or self.url,
            agent or puppet,
            name=name,
            random=Random(self._count),
            options=WorkerOptions(policy=QUICK, encoding=encoding),
            **wish,
        )
        working = Working(worker, puppet)
        self._workers.push_async_callback(working.close)
        return working

    async def close(self) -> None:
        """End everything."""
        await self._workers.aclose()
        await super().close()

    async def session(self, url: str | None = None) -> Session:
        """Return the session ``s`` as a client of the project sees it."""
        return await (await self.client(url)).session("s", include_internal=True)


def parts_of(messages: list[Message], kind: type[P]) -> list[P]:
    """Return all parts of one type, in order."""
    return [part for message in messages for part in message.parts if isinstance(part, kind)]


def text_of(messages: list[Message]) -> str:
    """Return all that the agent said, joined."""
    agents = [message for message in messages if message.role == "agent"]
    return "".join(part.text for part in parts_of(agents, TextPart))


OpenWorkerStage = Callable[..., Awaitable[WorkerStage]]
"""``await open_stage(**settings)``: a stage whose server runs, and which is closed after the test."""
