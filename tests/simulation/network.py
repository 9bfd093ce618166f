"""The network of a simulation: listeners by address, links to them, and what can go wrong with all.

`SimLoop` sends `create_server` and `create_connection` here, so that `websockets.serve` and
`websockets.connect` run unmodified.
"""

import asyncio
import errno
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from itertools import count
from random import Random
from typing import TypeVar
from weakref import WeakValueDictionary

from midstream.server.connections import express, websocket
from tests.link import Address, Link, LinkTransport, Shape
from tests.pipe import Note, unnoted
from tests.simulation.host import HOST, Host
from tests.transport import SocketStub

SYN_TIMEOUT = 127.0
"""Seconds until an attempt to connect gives up when nobody answers: what Linux does by default."""
FIRST_CLIENT_PORT = 50_001
FIRST_SERVER_PORT = 40_001

Factory = Callable[[], asyncio.BaseProtocol]
P = TypeVar("P", bound=asyncio.BaseProtocol)


_descriptor_of, _write = websocket.descriptor_of, express.write
_links: WeakValueDictionary[int, LinkTransport] = WeakValueDictionary()
_numbers = count(1_000_000)  # no process has so many files


def _number(transport: asyncio.BaseTransport) -> int:
    if not isinstance(transport, LinkTransport):
        return _descriptor_of(transport)
    number = next(_numbers)
    _links[number] = transport
    return number


def _take(descriptor: int, data: bytes) -> int:
    link = _links.get(descriptor)
    return _write(descriptor, data) if link is None else link.take(data)


# a server writes past the transport where it can: to the descriptor, in place of which a link has a number
websocket.descriptor_of = _number
express.write = _take


class SimServer(asyncio.AbstractServer):
    """A listener in memory, with the surface of `asyncio.Server`.

    `wait_closed` waits until every accepted connection is gone, as Python 3.12 and later do, on all versions.
    """

    def __init__(self, network: "Network", factory: Factory, addresses: Sequence[Address]) -> None:
        self.addresses = tuple(addresses)
        self.host = HOST.get()
        # Connections are accepted in the context that began to listen, not in that of the client.
        self._context: Context = copy_context()
        self._network = network
        self._factory = factory
        self._accepted: dict[LinkTransport, None] = {}  # a dict, because its order is that of acceptance
        self._waiters: list[asyncio.Future[None]] = []
        self._serving = self._closed = False

    @property
    def sockets(self) -> tuple[SocketStub, ...]:
        """Stubs that know the addresses listened on; none after `close`."""
        return () if self._closed else tuple(SocketStub(address) for address in self.addresses)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop it belongs to."""
        return self._network.loop

    def is_serving(self) -> bool:
        """Say whether connections are accepted."""
        return self._serving

    async def start_serving(self) -> None:
        """Begin to accept connections."""
        self.listen()

    async def serve_forever(self) -> None:
        """Accept connections until cancelled, then close."""
        self.listen()
        try:
            await self._network.loop.create_future()
        finally:
            self.close()
            await self.wait_closed()

    def listen(self) -> None:
        """Begin to accept connections.

        Raises:
            OSError: Somebody else listens on the address.
        """
        if not self._serving:
            self._network.add(self)
            self._serving = True

    def close(self) -> None:
        """Stop accepting; accepted connections go on."""
        self._closed = True
        self._serving = False
        self._network.remove(self)
        self._wake()

    async def wait_closed(self) -> None:
        """Wait until the listener is closed and all its connections are gone."""
        while not (self._closed and not self._accepted):
            waiter: asyncio.Future[None] = self._network.loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def close_clients(self) -> None:
        """Close every accepted connection."""
        for transport in tuple(self._accepted):
            transport.close()

    def abort_clients(self) -> None:
        """Abort every accepted connection."""
        for transport in tuple(self._accepted):
            transport.abort()

    def accept(self, link: Link) -> None:
        """Plan to give the server's end of a new link its protocol."""
        self._network.loop.call_soon(self._accept, link.server, context=self._context)

    def make_context(self) -> Context:
        """Return the context for the callbacks of one accepted connection."""
        return self._context.copy()

    def _accept(self, transport: LinkTransport) -> None:
        if self._closed:
            transport.reset()  # it was in the backlog of a listener that is gone
        elif not transport.is_closing():
            self._accepted[transport] = None
            transport.on_closed = lambda: self._forget(transport)
            transport.start(self._factory())

    def _forget(self, transport: LinkTransport) -> None:
        self._accepted.pop(transport, None)
        self._wake()

    def _wake(self) -> None:
        if self._closed and not self._accepted:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)


class Network:
    """All links and listeners of one loop.

    Host names are not resolved: `localhost` and `127.0.0.1` are the same, a listener on `0.0.0.0` or without
        a host takes every name, and any other name is just itself.

    Attributes:
        shape: how new links carry bytes.
        on_link: called with each new link before a byte moves, to install faults on it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: Random, note: Note = unnoted) -> None:
        self.loop = loop
        self.shape = Shape()
        self.on_link: Callable[[Link], None] | None = None
        self._rng = rng
        self._note = note
        self._links: dict[Link, tuple[Host, Host]] = {}
        self._listeners: dict[Address, SimServer] = {}
        self._refused: set[Address] = set()
        self._partitioned: set[Host | None] = set()  # None stands for all
        self._waiting: list[asyncio.Future[None]] = []
        self._link_count = 0
        self._next_server_port = FIRST_SERVER_PORT

    @property
    def links(self) -> list[Link]:
        """The links that are open at one end at least, oldest first."""
        self._links = {link: hosts for link, hosts in self._links.items() if not link.closed}
        return list(self._links)

    def links_of(self, host: Host) -> list[Link]:
        """Return the open links with an end on `host`, oldest first."""
        return [link for link in self.links if host in self._links[link]]

    # Faults

    def refuse(self, host: str, port: int) -> None:
        """Refuse new connections to an address, though somebody may listen; what is connected goes on."""
        self._refused.add((_plain(host), port))

    def admit(self, host: str, port: int) -> None:
        """Undo `refuse`."""
        self._refused.discard((_plain(host), port))

    def cut(self, host: Host | None = None) -> None:
        """Cut every link (of `host`, if given); both ends are told at once."""
        for link in self.links if host is None else self.links_of(host):
            link.cut()

    def partition(self, host: Host | None = None) -> None:
        """Let nothing pass between `host` and the others (or between any two), until `heal`.

        Open links become half-open; who tries to connect waits, and gives up after `SYN_TIMEOUT` seconds.
        """
        self._partitioned.add(host)
        for link in self.links if host is None else self.links_of(host):
            link.half_open()

    def heal(self, host: Host | None = None) -> None:
        """Undo `partition(host)`; without a host, undo all of them, and every `half_open`."""
        if host is None:
            self._partitioned.clear()
        self._partitioned.discard(host)
        for link in self.links if host is None else self.links_of(host):
            if not self._cut_off(*self._links[link]):
                link.heal()
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def kill(self, host: Host) -> None:
        """Do what a kernel does when a program is killed: close its listeners and connections."""
        for server in list(self._listeners.values()):
            if server.host is host:
                server.close()
        for link in self.links_of(host):
            near, far = self._links[link]
            if near is host:
                link.client.vanish()
            if far is host:
                link.server.vanish()

    # What the loop asks for

    def create_server(
        self, factory: Factory, host: str | Sequence[str] | None, port: int | None
    ) -> SimServer:
        """Return a listener, not yet listening. Port 0 (or `None`) is replaced by a free one."""
        names = [host] if host is None or isinstance(host, str) else list(host)
        if not port:
            port = self._next_server_port
            self._next_server_port += 1
        return SimServer(self, factory, [(_plain(name or "0.0.0.0"), port) for name in names])  # noqa: S104 - no real socket

    def add(self, server: SimServer) -> None:
        """Let a server be found at its addresses.

        Raises:
            OSError: Somebody listens there.
        """
        for address in server.addresses:
            if self._listener(address) is not None:
                raise OSError(errno.EADDRINUSE, f"somebody listens on {address[0]}:{address[1]} already")
        for address in server.addresses:
            self._listeners[address] = server

    def remove(self, server: SimServer) -> None:
        """Let a server not be found any more."""
        self._listeners = {
            address: other for address, other in self._listeners.items() if other is not server
        }

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> tuple[LinkTransport, P]:
        """Connect to a listener, after a round trip.

        Raises:
            ConnectionRefusedError: Nobody listens there, or `refuse` is in force.
            TimeoutError: Nobody answered for `SYN_TIMEOUT` seconds.
        """
        address = (_plain(host), port)
        await self._reach(address)
        server = self._listener(address)
        if server is None or address in self._refused:
            raise ConnectionRefusedError(
                errno.ECONNREFUSED, f"nobody listens on {address[0]}:{port} in this simulation"
            )
        link = self._link(server, address)
        server.accept(link)
        protocol = factory()
        link.client.start(protocol)
        return link.client, protocol

    def _link(self, server: SimServer, address: Address) -> Link:
        self._link_count += 1
        link = Link(
            self.loop,
            self._rng,
            self.shape,
            index=self._link_count,
            addresses=(("127.0.0.1", FIRST_CLIENT_PORT - 1 + self._link_count), address),
            contexts=(copy_context(), server.make_context()),
            note=self._note,
        )
        self._links[link] = (HOST.get(), server.host)
        self._note("connect", link.index, 0)
        if self.on_link is not None:
            self.on_link(link)
        return link

    async def _reach(self, address: Address) -> None:
        """Wait for a round trip, and while the way is cut off."""
        timeout = self.loop.time() + SYN_TIMEOUT
        try:
            async with asyncio.timeout_at(timeout):
                await asyncio.sleep(2 * self._rng.uniform(*self.shape.latency))
                while self._cut_off(HOST.get(), self._host_at(address)):
                    waiter: asyncio.Future[None] = self.loop.create_future()
                    self._waiting.append(waiter)
                    await waiter
        except TimeoutError:
            raise TimeoutError(
                errno.ETIMEDOUT, f"no answer from {address[0]}:{address[1]} in {SYN_TIMEOUT} s"
            ) from None

    def _cut_off(self, near: Host, far: Host | None) -> bool:
        return bool(self._partitioned) and not self._partitioned.isdisjoint((None, near, far or near))

    def _host_at(self, address: Address) -> Host | None:
        server = self._listener(address)
        return None if server is None else server.host

    def _listener(self, address: Address) -> SimServer | None:
        return self._listeners.get(address) or self._listeners.get(("0.0.0.0", address[1]))  # noqa: S104 - no real socket


def _plain(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host
