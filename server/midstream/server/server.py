"""A server from its parts: database, sessions, agents, listener (SPEC 9)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

from msgspec import structs

from midstream.agents import Agent
from midstream.server.agents import agent_named
from midstream.server.clock import Clock, SystemClock
from midstream.server.config import NO_METRICS, REMOTE, Config
from midstream.server.connections.auth import authentication_of
from midstream.server.connections.listener import Listener, listen
from midstream.server.ids import Ids, RandomIds
from midstream.server.inputs import InputPolicy
from midstream.server.logs import configure_unless_done
from midstream.server.monitor import Monitor
from midstream.server.sessions.access import ByToken
from midstream.server.sessions.agents import InProcessAgents
from midstream.server.sessions.offers import RemoteAgents
from midstream.server.sessions.registry import Registry
from midstream.server.sessions.services import Services, Settings
from midstream.server.sessions.traced import TracedAgents
from midstream.server.storage.database import Database
from midstream.server.storage.schema import migrate
from midstream.server.tally import Tally
from midstream.server.tracing import Tracing
from midstream.server.watchdog import watching

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from midstream.server.connections.auth import Authentication
    from midstream.server.sessions.access import Authorization

    OpenDatabase = Callable[[str], Awaitable[Database]]

LEAVING_SECONDS: Final = 1.0
"""What clients get to have their calls answered and to leave, once no turn runs here any more."""


class RunningServer:
    """A server that listens; made by :meth:`Server.listen`."""

    def __init__(
        self,
        listener: Listener,
        agents: InProcessAgents | RemoteAgents,
        stopped: asyncio.Event,
        end_turns: Callable[[], Awaitable[None]],
        *,
        drain_seconds: float,
    ) -> None:
        """Made by the server."""
        self._listener = listener
        self._agents = agents
        self._drain_seconds = drain_seconds
        self._stopped = stopped
        self._end_turns = end_turns
        self.host = listener.host
        self.port = listener.port
        self._scheme = "wss" if listener.has_tls else "ws"

    @property
    def url(self) -> str:
        """Where clients connect to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{self.port}"

    @property
    def page_url(self) -> str:
        """Where a browser finds the page, if one is served."""
        return f"http{self.url.removeprefix('ws')}/"  # https where it is wss

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return self._listener.connections

    def weigh_rights(self) -> None:
        """Weigh again what every client may: an :class:`~midstream.server.Authorization` changed its mind."""
        self._listener.weigh_rights()

    async def closed(self) -> None:
        """Wait until the server must stop: another process has taken its database over."""
        await self._stopped.wait()

    async def drain(self, seconds: float | None = None) -> None:
        """Send the clients away, and give running turns up to ``seconds`` to end by themselves.

        At once ``/healthz`` says so, and each client gets its ``goaway``. Who stays sees the turns end, the
        last ones as interrupted; those of workers, which go on when a server is back, are stored as they are.
        Then all connections are closed. ``seconds`` is ``drain_seconds`` of the configuration where it is
        not given.
        """
        limit = self._drain_seconds if seconds is None else seconds
        self._listener.dismiss()
        await self._agents.finished(limit)
        await self._end_turns()
        await self._listener.drain(min(limit, LEAVING_SECONDS))


class Server:
    """One server: an agent, a database, and how it runs.

    ``async with Server(agent=agent, database="chat.db").listen("127.0.0.1", 8787): ...``
    """

    def __init__(  # noqa: PLR0913 - what a server is made of
        self,
        agent: Agent | None = None,
        database: str | Path | None = None,
        *,
        config: Config | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        open_database: OpenDatabase | None = None,
        restart: Callable[[int], None] | None = None,
        authentication: Authentication | None = None,
        authorization: Authorization | None = None,
        **settings: object,
    ) -> None:
        """Describe a server; nothing is opened yet.

        Args:
            agent: runs the turns; without one, the agent that the configuration names.
            database: path of the SQLite file, made where it is missing.
            config: the settings; ``settings`` are single ones that win over it.
            clock: the time; the machine's by default.
            ids: where ids come from; random by default.
            open_database: opens the file; by default with one writer thread and ``synchronous=FULL``.
            restart: called with the port when the link lab of the page asks for a restart: it should end this
                process at once and begin it anew. Without it the lab cannot.
            authentication: verifies tokens; by default as ``token_secret`` and ``token_keys`` say.
            authorization: decides who may do what; by default each does what its token covers.
            settings: fields of :class:`~midstream.server.config.Config`.

        Raises:
            ConfigError: a setting is wrong; the text names it.
            AgentUnavailable: the agent that the configuration names cannot be imported.

        """
        if database is not None:
            settings["database"] = str(database)
        self.config = (config or Config()).changed(settings)
        self._agent = agent or (None if self.config.agent == REMOTE else agent_named(self.config.agent))
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._open_database = open_database or _open_database
        self._restart = restart
        self._authentication = authentication
        self._authorization = authorization

    @asynccontextmanager
    async def listen(self, host: str | None = None, port: int | None = None) -> AsyncGenerator[RunningServer]:
        """Open the database, recover what an unclean end left, and serve while the context is open.

        At its end the running turns are ended as interrupted, which their readers still see, then the
        connections are closed, then the database. Logs are set up as the settings say, unless the program
        has done that.

        Raises:
            BindRefused: the host is not loopback, and tokens or TLS are missing.
            ConfigError: the address or the port cannot be taken, or a file of the settings cannot be used.
            DatabaseLocked: another process owns the database.
            DatabaseUnusable: the file cannot serve as a database.

        """
        config = structs.replace(
            self.config,
            host=self.config.host if host is None else host,
            port=self.config.port if port is None else port,
        )
        configure_unless_done(config.log_format, config.log_level)
        authentication = self._authentication or authentication_of(config)
        config.check_host(config.host, has_tokens=authentication is not None)
        by_token = None if authentication is None else ByToken()
        async with AsyncExitStack() as stack:
            database = await self._open_database(config.database)
            stack.push_async_callback(database.close)
            remote = _remote(config) if self._agent is None else None
            agents = remote or InProcessAgents(self._agent)
            tally = Tally()
            if config.tracing:
                tally.tracing = database.tally.tracing = Tracing()
            services = Services(
                database=database,
                clock=self._clock,
                ids=self._ids,
                agents=agents if tally.tracing is None else TracedAgents(agents, tally.tracing),
                settings=_settings(config),
                tally=tally,
                authorization=self._authorization or by_token,
            )
            stack.push_async_callback(services.close)
            if isinstance(self._clock, SystemClock):  # else time is not what passes
                stack.enter_context(watching())
            stopped = asyncio.Event()
            registry = Registry(services, on_ownership_lost=stopped.set)

            async def end_turns() -> None:
                await registry.stop()
                await agents.close()

            stack.push_async_callback(end_turns)  # should the start or the listener fail
            await registry.start()
            monitor = Monitor(tally, database, registry, remote, self._clock)
            stack.push_async_callback(monitor.close)
            if config.metrics != NO_METRICS:
                monitor.start()
            listener = await stack.enter_async_context(
                listen(
                    config,
                    registry,
                    remote,
                    self._clock,
                    self._ids,
                    restart=self._restart,
                    monitor=monitor,
                    authentication=authentication,
                )
            )
            stack.push_async_callback(end_turns)  # before the connections, so that readers see the ends
            yield RunningServer(listener, agents, stopped, end_turns, drain_seconds=config.drain_seconds)


def _remote(config: Config) -> RemoteAgents:
    return RemoteAgents(
        lease_seconds=config.lease_seconds,
        offer_seconds=config.offer_seconds,
        takeover_seconds=config.takeover_seconds,
        window_bytes=config.limits.agent_window_bytes,
    )


def _settings(config: Config) -> Settings:
    return Settings(
        limits=config.limits,
        inputs=InputPolicy(auto=config.auto_delivery, allowed=config.deliveries),
        tick_seconds=config.tick_ms / 1000,
        tick_limit_seconds=config.tick_limit_ms / 1000,
        watch_seconds=config.watch_ms / 1000,
        history_bytes=config.history_bytes,
        idle_seconds=config.idle_seconds,
    )


async def _open_database(path: str) -> Database:
    return await Database.open(path, migrate=migrate)
