"""The server's socket: it takes WebSockets in, answers plain HTTP, and drains (SPEC 3.1, 3.6)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import structlog
from websockets.asyncio.server import serve
from websockets.typing import Subprotocol

from midstream.protocol.codec import CODECS
from midstream.server.config import NO_METRICS, NO_PAGE, ConfigError
from midstream.server.connections.auth import TokenRefused
from midstream.server.connections.backlog import Backlog
from midstream.server.connections.calls import Calls, Pool, Registry
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.deflate import Deflate
from midstream.server.connections.door import Door
from midstream.server.connections.handshake import OPEN_SECONDS, Handshake, bearer_of, comes_back
from midstream.server.connections.hello import Settings
from midstream.server.connections.lobby import Lobby
from midstream.server.connections.page import Page
from midstream.server.connections.page_files import read_files
from midstream.server.connections.peer import Office, Peer
from midstream.server.connections.probes import Census, Health, Monitor, Probes
from midstream.server.connections.rates import Subjects
from midstream.server.connections.tls import tls_of
from midstream.server.connections.websocket import CLOSE_SECONDS, WRITE_BUFFER_BYTES, WebSocket
from midstream.server.tally import Tally

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response
    from websockets.server import ServerProtocol

    from midstream.server.clock import Clock
    from midstream.server.config import Config
    from midstream.server.connections.auth import Authentication
    from midstream.server.ids import Ids

BACKLOG: Final = 4_096
"""Connections that the kernel opens before they are accepted. A whole room comes back at once after a
restart; whose attempt is dropped tries again a second later, then two, then four."""
ACCEPTED_IN_A_ROW: Final = 8
"""Connections that are accepted before others get a turn: about 10 ms."""
FIRST_RETURN_MS: Final = 500
"""How soon the first client may come back after ``goaway``: a restart takes about as long."""
LEAVING_MS: Final = 0.75
"""By how much that is later for each client, up to twice a thousand: to let them go, and a start that finds
many at the door, take that much longer; who comes too early waits by its backoff, which costs far more."""
RETURN_STEP_MS: Final = 10
"""By how much each client comes back later than the one before: accepting one costs a millisecond or so, and
it has sessions to catch up with."""
LEAST_STEP_MS: Final = 2
"""Where they are many they come closer together, down to about twice what accepting them costs."""
RETURN_SPREAD_MS: Final = 4_500
"""In which all are to be back, where that leaves each the least step."""

_log = structlog.stdlib.get_logger(__name__)


class Listener:
    """A listening server; made by :func:`listen`.

    ``host`` and ``port`` are where it listens, the port a real one where 0 was asked for.
    """

    def __init__(  # noqa: PLR0913 - what a server is made of
        self,
        config: Config,
        registry: Registry,
        pool: Pool | None,
        clock: Clock,
        ids: Ids,
        *,
        server: str,
        restart: Callable[[int], None] | None = None,
        monitor: Monitor | None = None,
        authentication: Authentication | None = None,
    ) -> None:
        """Prepare to serve; nothing listens yet.

        Raises:
            ConfigError: the folder of the page, the certificate or its key cannot be used.

        """
        self.host = config.host
        self.port = config.port
        self.draining = False
        self._config = config
        self._ids = ids
        self._tls = tls_of(config)
        self._page = None if config.page == NO_PAGE else Page(read_files(Path(config.page)))
        self._restart = None if restart is None else lambda: restart(self.port)
        self._peers: dict[Peer, None] = {}
        self._sockets: dict[WebSocket, None] = {}
        self._lobby = Lobby(config.lobby)
        self._door = Door()
        self._changed = asyncio.Event()
        self._office = Office(
            settings=Settings(
                server=server,
                limits=config.limits,
                heartbeat_seconds=config.heartbeat_ms / 1000,
                sync_seconds=config.sync_seconds,
                authentication=authentication,
            ),
            backlog=Backlog(config.outbox_bytes, config.backlog_bytes),
            subjects=Subjects(config.limits),
            calls=Calls(registry, config.limits, pool),
            registry=registry,
            clock=clock,
            tally=Tally() if monitor is None else monitor.tally,
        )
        self._probes = Probes(
            self._health,
            monitor=monitor,
            census=self.census,
            serves_metrics=config.metrics != NO_METRICS,
            # one that ends TLS for others may be on this machine, and need not say so
            trusts_machine=not config.tls_ends_at_a_proxy,
            admits=None if authentication is None else partial(_is_admin, authentication, clock),
        )
        self._handshake = Handshake(
            config.allowed_origins,
            self._probes,
            host=config.host,
            has_tokens=authentication is not None,
            tally=self._office.tally,
            page=self._page,
            waiting=self._answer_bytes,
            restart=self._restart,
        )

    @property
    def has_tls(self) -> bool:
        """Whether clients connect by ``wss``."""
        return self._tls is not None

    @property
    def connections(self) -> int:
        """How many WebSockets are open."""
        return len(self._peers)

    def weigh_rights(self) -> None:
        """Weigh again what every client may."""
        for peer in list(self._peers):
            peer.weigh_rights()

    def dismiss(self) -> None:
        """Say ``goaway`` to every client, and to those who still come; a second call does nothing.

        Each is told another delay, so that they do not all come back at once. From now on ``/healthz`` says
        503, and until the listener is left new clients are refused by close code 4000.
        """
        if self.draining:
            return
        self.draining = True
        _log.info("server_draining", connections=len(self._peers))
        first = FIRST_RETURN_MS + LEAVING_MS * min(len(self._peers), 2_000)
        step = min(max(RETURN_SPREAD_MS / max(len(self._peers), 1), LEAST_STEP_MS), RETURN_STEP_MS)
        for index, peer in enumerate(list(self._peers)):
            peer.go_away("draining", round(first + index * step))

    async def drain(self, seconds: float | None = None) -> None:
        """Let the clients go: ``goaway`` now, close code 4000 for those still here after ``seconds``.

        ``seconds`` is :attr:`~midstream.server.config.Config.drain_seconds` where it is not given.
        """
        self.dismiss()
        await self._until_gone(self._config.drain_seconds if seconds is None else seconds)
        await self._close_all()

    async def _close_all(self) -> None:
        for peer in list(self._peers):
            peer.close(CloseCode.GOING_AWAY, "the server stops")
        await self._until_gone(2 * CLOSE_SECONDS)

    async def _until_gone(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while self._peers:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass

    # What websockets calls

    def _connect(self, protocol: ServerProtocol, server: Server, **options: Any) -> WebSocket:  # noqa: ANN401 - passed on
        websocket = WebSocket(
            protocol, server, lobby=self._lobby, hello_bytes=self._config.limits.hello_bytes, **options
        )
        self._sockets[websocket] = None
        websocket.on_lost = self._lost
        return websocket

    def _lost(self, websocket: WebSocket) -> None:
        self._sockets.pop(websocket, None)

    async def _let_in(self, websocket: ServerConnection, request: Request) -> Response | None:
        answer = self._handshake(websocket, request)
        if answer is not None:
            return answer
        newcomer = cast("WebSocket", websocket)
        self._lobby.leave(newcomer)  # it is for the server to go on
        if not await self._door.enter(newcomer.connection_lost_waiter, returning=comes_back(request)):
            return websocket.respond(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connect at once. Try again.\n")
        if not newcomer.connection_lost_waiter.done():
            self._lobby.enter(newcomer)
        return None

    async def _handle(self, websocket: ServerConnection) -> None:
        connection_id = self._ids.new("connection")
        structlog.contextvars.bind_contextvars(connection_id=connection_id)  # of this task, which is its own
        peer = Peer(cast("WebSocket", websocket), connection_id, self._office)
        self._peers[peer] = None
        self._office.tally.opened += 1
        if self.draining:
            peer.go_away("draining", FIRST_RETURN_MS)
        _log.info("connection_opened")
        try:
            await peer.serve()
        finally:
            del self._peers[peer]
            self._changed.set()

    def _health(self) -> Health:
        return Health("draining" if self.draining else "ok", len(self._peers))

    def census(self) -> Census:
        """Return what there is at the moment. Looks at each connection: about 10 ms for ten thousand."""
        states, subscriptions, sizes = Counter[str](), Counter[str](), list[int]()
        for peer in self._peers:
            connection = peer.connection
            states[connection.state] += 1
            sizes.append(connection.outbox.size)
            for subscription in connection.subscriptions.all():
                subscriptions[subscription.state.value] += 1
        states["handshake"] = len(self._sockets) - len(sizes)
        return Census(states, subscriptions, sum(sizes), max(sizes, default=0))

    def _answer_bytes(self) -> int:
        return sum(websocket.answer_bytes for websocket in self._sockets)

    def _serve(self) -> Server:
        config = self._config
        host = "127.0.0.1" if config.host == "localhost" and not config.port else config.host
        return serve(
            self._handle,
            host,  # localhost is two addresses, and port 0 would take another port on each
            config.port,
            subprotocols=[Subprotocol(name) for name in CODECS],
            compression=None,  # websockets' own takes 34 to 42 KiB a connection
            extensions=[Deflate()] if config.compression else [],
            ssl=self._tls,
            process_request=self._let_in,
            server_header=self._office.settings.server,
            open_timeout=OPEN_SECONDS,
            ping_interval=None,  # our own heartbeat also notices a peer that does not read
            close_timeout=CLOSE_SECONDS,
            # a little more than a frame may have, so that a frame that is too long gets an error and no close
            max_size=config.limits.frame_bytes + config.limits.chunk_bytes,
            write_limit=(WRITE_BUFFER_BYTES, 0),
            backlog=ACCEPTED_IN_A_ROW,
            create_connection=self._connect,  # type: ignore[arg-type]  # "a wrapper or a subclass", says its documentation
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Listen while the context is open; at its end close all connections, by code 4000.

        Raises:
            ConfigError: the address or the port cannot be taken.

        """
        try:
            server = await self._serve()
        except OSError as error:
            raise _cannot_listen(self._config, error) from None
        self.host, self.port = server.sockets[0].getsockname()[:2]
        _keep_waiting(server.sockets)
        _log.info("server_listening", host=self.host, port=self.port)
        try:
            yield
        finally:
            self.draining = True
            await self._close_all()
            for websocket in list(self._sockets):
                websocket.abort()  # in the middle of an HTTP handshake
            server.close(close_connections=False)
            await server.wait_closed()
            _log.info("server_stopped")


@asynccontextmanager
async def listen(  # noqa: PLR0913 - what a server is made of
    config: Config,
    registry: Registry,
    pool: Pool | None,
    clock: Clock,
    ids: Ids,
    *,
    restart: Callable[[int], None] | None = None,
    monitor: Monitor | None = None,
    authentication: Authentication | None = None,
) -> AsyncGenerator[Listener]:
    """Serve connections on ``config.host`` and ``config.port`` while the context is open.

    Call :meth:`Listener.drain` before the end for a graceful one. ``restart`` is called with the port when
    the link lab of the page asks for a restart; without it the lab cannot. ``monitor`` knows the metrics, and
    whether the server is ready. ``authentication`` verifies tokens; without one everybody is local.

    Raises:
        BindRefused: the host is not loopback, and tokens or TLS are missing.
        ConfigError: the address or the port cannot be taken, or a file that the settings name cannot be used.

    """
    config.check_host(config.host, has_tokens=authentication is not None)
    listener = Listener(
        config,
        registry,
        pool,
        clock,
        ids,
        server=_software(),
        restart=restart,
        monitor=monitor,
        authentication=authentication,
    )
    async with listener.running():
        yield listener


def _is_admin(authentication: Authentication, clock: Clock, request: Request) -> bool:
    token = bearer_of(request)
    try:
        return token is not None and "admin" in authentication.verify(token, clock.wall_ms()).scopes
    except TokenRefused:
        return False


def _keep_waiting(listening: Iterable[socket.socket]) -> None:
    """Have the kernel keep :data:`BACKLOG` connections; asyncio would accept as many in a row as it keeps."""
    for each in listening:
        if each.fileno() >= 0:  # in a simulation there is none
            with socket.socket(fileno=os.dup(each.fileno())) as sock:
                sock.listen(BACKLOG)


def _cannot_listen(config: Config, error: OSError) -> ConfigError:
    where = f"{config.host} port {config.port}"
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            "port", f"{where} is taken. Stop the program that listens there, or choose another port."
        )
    if error.errno == errno.EACCES:
        return ConfigError(
            "port", f"{where} needs more rights than this process has. Choose a port above 1023."
        )
    return ConfigError("host", f"cannot listen on {where}: {error}. Choose 127.0.0.1, ::1 or localhost.")


def _software() -> str:
    try:
        return f"midstream/{version('midstream')}"
    except PackageNotFoundError:  # run from the source tree
        return "midstream"
