"""A server that can be stopped, killed and started again on its file, and the lines to it, in a simulation.

Everything is real but the network, the time and the threads: the server, its connections, websockets and
SQLite run as they are, and a test says what happens when.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from midstream.protocol.codec import MSGPACK, Codec
from midstream.server import RunningServer, Server, Turn
from midstream.server.config import REMOTE, Config
from midstream.server.storage.connection import Synchronous
from midstream.server.storage.schema import migrate
from tests.clock import SimClock
from tests.laws.gate import GatedDatabase
from tests.laws.line import Line
from tests.laws.reader import Chronicle, Reader
from tests.simulation.host import Host
from tests.simulation.run import run
from tests.simulation.simloop import SimLoop

SEED = 7
Story = Callable[..., Coroutine[Any, Any, None]]
"""What happens in a world, which is its first argument."""


class NumberedIds:
    """Ids that tell whoever reads a failed test what they are of: ``turn_1``, ``turn_2`` and so on."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, kind: str) -> str:
        """Return a new id."""
        self._count += 1
        return f"{kind}_{self._count}"

    def epoch(self) -> str:
        """Return a new epoch."""
        self._count += 1
        return f"{self._count:016x}"


class Puppet:
    """An agent that does what the test does with its turn, until the test ends it."""

    def __init__(self) -> None:
        self._began: asyncio.Queue[Turn] = asyncio.Queue()
        self._ends: dict[str, asyncio.Future[None]] = {}

    async def __call__(self, turn: Turn) -> None:
        """Give a turn to the test, and wait until it has done with it."""
        end = self._ends[turn.turn_id] = asyncio.get_running_loop().create_future()
        self._began.put_nowait(turn)
        await end

    async def next(self) -> Turn:
        """Return the next turn that began."""
        async with asyncio.timeout(60):
            return await self._began.get()

    @property
    def idle(self) -> bool:
        """Whether no turn began that the test does not know of."""
        return self._began.empty()

    def end(self, turn: Turn, error: BaseException | None = None) -> None:
        """Let the agent of a turn return, or raise."""
        end = self._ends[turn.turn_id]
        if not end.done() and error is None:
            end.set_result(None)
        elif not end.done() and error is not None:
            end.set_exception(error)


class World:
    """One database file, the servers that own it one after another, and all who are connected.

    Attributes:
        path: the database.
        port: where servers listen.
        on_open: called with each database before anything is read from it.
        puppet: the agent of every server, unless the settings leave turns to workers.
        chronicle: what all readers showed.
        lives: how many servers were started.
        database, running: of the present server.
    """

    def __init__(self, loop: SimLoop, path: Path, settings: dict[str, Any], *, port: int = 8_787) -> None:
        self.loop = loop
        self.path = path
        self.port = port
        self.clock = SimClock(loop)
        self.ids = NumberedIds()
        self.puppet = Puppet()
        self.chronicle = Chronicle()
        self.lives = 0
        self.settings = settings
        config = settings.get("config")
        self.leaves_turns = isinstance(config, Config) and config.agent == REMOTE
        self.vfs: str | None = None
        self.synchronous: Synchronous = "OFF"
        self.on_open: Callable[[GatedDatabase], None] | None = None
        self.database: GatedDatabase
        self.running: RunningServer
        self._host: Host
        self._serving: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._lines: list[Line] = []

    # The server

    async def start(self) -> None:
        """Start a server; returns when it listens."""
        self.lives += 1
        self._ending = asyncio.Event()
        listening: asyncio.Future[None] = self.loop.create_future()
        with Host(f"server {self.lives}") as host:
            self._host = host
            serving = self.loop.create_task(self._serve(listening, self._ending), name="server")
        self._serving = serving
        await asyncio.wait([listening, serving], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            self._serving = None
            await serving

    async def stop(self) -> None:
        """Stop the server in good order."""
        self._ending.set()
        if self._serving is not None:
            await self._serving
            self._serving = None

    async def kill(self) -> None:
        """End the server as ``kill -9`` does: from here on it reaches neither the disk nor anybody.

        Its tasks are ended after that, so that nothing of it is left; what they do on their way is lost.
        """
        self.loop.network.cut(self._host)
        self.database.abandon()
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.cancel()
            await asyncio.wait([serving])

    async def crash(self) -> None:
        """Kill the server and start another one."""
        await self.kill()
        await self.start()

    async def restart(self) -> None:
        """Stop the server in good order and start another one."""
        await self.stop()
        await self.start()

    async def _serve(self, listening: asyncio.Future[None], ending: asyncio.Event) -> None:
        server = Server(
            agent=None if self.leaves_turns else self.puppet,
            database=self.path,
            clock=self.clock,
            ids=self.ids,
            open_database=self._open,
            **self.settings,
        )
        async with server.listen("127.0.0.1", self.port) as running:
            self.running = running
            listening.set_result(None)
            await ending.wait()

    async def _open(self, path: str) -> GatedDatabase:
        database = await GatedDatabase.open(
            path, migrate=migrate, inline=True, vfs=self.vfs, synchronous=self.synchronous
        )
        assert isinstance(database, GatedDatabase)
        self.database = database
        if self.on_open is not None:
            self.on_open(database)
        return database

    # Lines and readers

    async def line(self, codec: Codec = MSGPACK) -> Line:
        """Connect, and say hello."""
        line = await Line.open(f"ws://127.0.0.1:{self.port}", codec)
        self._lines.append(line)
        return line

    async def reader(self, session_id: str, *, codec: Codec = MSGPACK, **wish: Any) -> Reader:  # noqa: ANN401  # of Reader
        """Return a reader on a line of its own, which has joined; ``wish`` are keywords of `Reader`."""
        reader = Reader(await self.line(codec), session_id, chronicle=self.chronicle, **wish)
        await reader.join()
        return reader

    async def fresh(
        self, session_id: str, *, include_internal: bool = False, codec: Codec = MSGPACK
    ) -> Reader:
        """Return a reader that has just read everything, page by page, and whose digests agree."""
        reader = await self.reader(session_id, codec=codec, include_internal=include_internal, limit=None)
        await reader.read_all(limit=3)
        await reader.prove()
        return reader

    async def close(self) -> None:
        """End everything that runs."""
        for line in self._lines:
            await line.close()
        await self.stop()


async def pause(seconds: float = 0.1) -> None:
    """Let virtual time pass: ticks, latencies and paces of tens of milliseconds, but no heartbeat."""
    await asyncio.sleep(seconds)


def play(
    story: Callable[[World], Coroutine[Any, Any, None]],
    path: Path,
    *,
    seed: int = SEED,
    vfs: str | None = None,
    synchronous: Synchronous = "OFF",
    **settings: Any,  # noqa: ANN401  # of Config
) -> None:
    """Run a story in a world, and fail if anything is left running, or went unhandled.

    ``vfs`` names the disk of the database, and ``synchronous`` says whether it is asked to be safe.
    """

    async def main(loop: SimLoop) -> None:
        world = World(loop, path / "law.db", settings)
        world.vfs, world.synchronous = vfs, synchronous
        await world.start()
        try:
            await story(world)
        finally:
            await world.close()

    run(main, seed)


def in_world(
    **settings: Any,  # noqa: ANN401  # of Config
) -> Callable[[Story], Callable[..., None]]:
    """Make a test of a story: pytest gives it the parameters after the first, which is the world."""

    def decorate(story: Story) -> Callable[..., None]:
        def test(*, tmp_path: Path, **arguments: Any) -> None:  # noqa: ANN401  # the story's
            play(lambda world: story(world, **arguments), tmp_path, **settings)

        keyword = inspect.Parameter.KEYWORD_ONLY
        own = list(inspect.signature(story).parameters.values())[1:]
        given = [inspect.Parameter("tmp_path", keyword), *(one.replace(kind=keyword) for one in own)]
        vars(test)["__signature__"] = inspect.Signature(given)
        test.__name__ = getattr(story, "__name__", "story")
        test.__doc__, test.__module__ = story.__doc__, story.__module__
        return test

    return decorate
