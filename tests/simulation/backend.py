"""The server as a program that is started, stopped and killed; its file and its address stay."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, TypeVar

import apsw

from midstream.agents import Agent
from midstream.server import RunningServer, Server
from midstream.server.clock import Clock
from midstream.server.config import REMOTE, Config
from midstream.server.ids import Ids
from midstream.server.storage.database import Database
from midstream.server.storage.errors import CommitFailed
from midstream.server.storage.schema import migrate
from tests.simulation.diary import Diary
from tests.simulation.host import Host
from tests.simulation.knobs import Knobs
from tests.simulation.simloop import SimLoop

HOST_NAME = "127.0.0.1"
PORT = 8_787
URL = f"ws://{HOST_NAME}:{PORT}"

T = TypeVar("T")
Fate = Literal["crash-before", "crash-after", "fail-before", "fail-after"]
"""What happens at a write: the program is killed just before or just after the commit, or the commit is
reported as failed, and did or did not happen."""


class Backend:
    """Starts and ends servers on one file.

    Attributes:
        host: the host of the present server; none while it is down.
        running: the server, once it listens.
        down: set while no server is there, or on its way.
        lives: how many servers were started.
        interruptions: how many times a server ended, or a commit failed.
        met: counts the ends of servers and the fates of writes.
    """

    def __init__(
        self,
        loop: SimLoop,
        path: Path,
        knobs: Knobs,
        diary: Diary,
        *,
        agent: Agent | None,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.host: Host | None = None
        self.running: RunningServer | None = None
        self.down = asyncio.Event()
        self.down.set()
        self.lives = 0
        self.interruptions = 0
        self.met = Counter[str]()
        self._loop = loop
        self._path = path
        self._knobs = knobs
        self._diary = diary
        self._agent = agent
        self._clock = clock
        self._ids = ids
        self._database: Database | None = None
        self._settled: asyncio.Future[None] = loop.create_future()
        self._ending: asyncio.Event = asyncio.Event()
        self._drains = False
        self._fate: tuple[int, Fate] | None = None

    async def start(self) -> None:
        """Start a server, if there is none; returns when it listens, or was killed before that."""
        if self.host is None:
            self.lives += 1
            self._diary.note("server", f"starts its life {self.lives}")
            self.down.clear()
            self._settled = self._loop.create_future()
            self._ending = asyncio.Event()
            with Host("server") as host:
                self.host = host
                serving = self._loop.create_task(self._serve(self._settled, self._ending), name="server")
            serving.add_done_callback(lambda task: self._ended(host, task))
        await asyncio.wait([self._settled])

    def stop(self, *, drain: bool) -> None:
        """Begin to stop the server in good order; `down` is set when it has."""
        if self.host is not None:
            self._diary.note("server", "drains" if drain else "is stopped")
            self._drains = drain
            self._ending.set()

    def crash(self) -> None:
        """Kill the server as `kill -9` does."""
        host, self.host = self.host, None
        if host is None:
            return
        self._diary.note("server", "is killed")
        self.met["killed"] += 1
        self._loop.kill(host)
        if self._database is not None:
            self._database.abandon()
        self._over()

    def arm(self, writes: int, fate: Fate) -> None:
        """Let a fate come at the write after so many others, once."""
        self._diary.note("server", f"will meet {fate} after {writes} writes")
        self._fate = (writes, fate)

    def disarm(self) -> None:
        """Let no fate come any more."""
        self._fate = None

    async def _serve(self, settled: asyncio.Future[None], ending: asyncio.Event) -> None:
        knobs = self._knobs
        server = Server(
            agent=self._agent,
            database=self._path,
            config=self._config(),
            clock=self._clock,
            ids=self._ids,
            open_database=self._open,
            heartbeat_ms=knobs.heartbeat_ms,
            tick_ms=knobs.tick_ms,
            outbox_bytes=knobs.outbox_bytes,
            sync_seconds=knobs.sync_seconds,
            idle_seconds=knobs.idle_seconds,
            history_bytes=knobs.history_bytes,
            drain_seconds=knobs.drain_seconds,
            limits=knobs.limits,
        )
        async with server.listen(HOST_NAME, PORT) as running:
            self.running = running
            settled.set_result(None)
            await ending.wait()
            if self._drains:
                await running.drain()

    def _config(self) -> Config:
        crew = self._knobs.crew
        if crew is None:
            return Config()
        return Config(
            agent=REMOTE,
            lease_seconds=crew.lease_seconds,
            offer_seconds=crew.offer_seconds,
            takeover_seconds=crew.takeover_seconds,
        )

    async def _open(self, path: str) -> Database:
        database = await FragileDatabase.open(path, migrate=migrate, inline=True, synchronous="OFF")
        if isinstance(database, FragileDatabase):
            database.meet = self._meet
        self._database = database
        return database

    async def _meet(self, when: Literal["before", "after"]) -> None:
        """Let a write's fate come, if it has one."""
        if self._fate is None or not self._fate[1].endswith(when):
            return
        writes, fate = self._fate
        if writes:
            self._fate = (writes - 1, fate)
            return
        self._fate = None
        self._diary.note("server", f"meets {fate}")
        self.met[fate] += 1
        if fate.startswith("crash"):
            self.crash()
            await self._loop.create_future()  # nothing of the program runs again
        self.interruptions += 1
        raise CommitFailed(apsw.IOError("as the schedule says"))

    def _ended(self, host: Host, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._diary.complain(f"the server failed: {task.exception()!r}")
        if self.host is host:
            self.host = None
            self._diary.note("server", "has stopped")
            self.met["stopped"] += 1
            self._over()

    def _over(self) -> None:
        self.interruptions += 1
        self.running = None
        self._database = None
        if not self._settled.done():
            self._settled.set_result(None)
        self.down.set()


class FragileDatabase(Database):
    """A real database that tells before and after each commit, so that it can be the last."""

    meet: Callable[[Literal["before", "after"]], Awaitable[None]]

    async def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """Write, if nothing comes between."""
        await self.meet("before")
        result = await super().write(job)
        await self.meet("after")
        return result
