"""The websockets library runs in the simulation unmodified, and meets every fault of a network there."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from tests.link import Link, Shape
from tests.simulation.frames import DropFrames
from tests.simulation.run import divergence, run, simulate
from tests.simulation.simloop import SimLoop

Handler = Callable[[ServerConnection], Awaitable[None]]


def served(handler: Handler, *, ping_interval: float | None = None) -> Server:
    """Return a server, to be entered, with `handler` at port 8787."""
    return serve(handler, "127.0.0.1", 8787, compression=None, ping_interval=ping_interval)


def connecting(*, ping_interval: float | None = None) -> connect:
    """Return a connection to it, to be entered or awaited."""
    return connect("ws://127.0.0.1:8787", proxy=None, compression=None, ping_interval=ping_interval)


async def echo(connection: ServerConnection) -> None:
    """Send back every message."""
    async for message in connection:
        await connection.send(message)


async def conversation(loop: SimLoop) -> int:
    """Let three clients talk to an echo, each as chance will have it; return how many messages came back."""
    came_back = 0

    async def client(number: int) -> None:
        nonlocal came_back
        async with connecting(ping_interval=20) as connection:
            for turn in range(5):
                messages = [bytes([number, turn, index]) * 50 for index in range(loop.random.randrange(1, 4))]
                for message in messages:
                    await connection.send(message)
                for message in messages:
                    assert await connection.recv() == message
                    came_back += 1
                await asyncio.sleep(loop.random.choice([0, 0.001, 30]))

    loop.network.shape = Shape(latency=(0.0, 0.05), split=0.3)
    async with served(echo, ping_interval=20), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(client(number))
    return came_back


@pytest.mark.parametrize("hundred", range(3))
def test_an_echo_is_an_echo_under_any_schedule(hundred: int) -> None:
    """In 300 seeds every client gets its messages back, whole and in order, and everything ends by itself."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        assert run(conversation, seed) >= 15


def test_a_conversation_is_repeatable() -> None:
    """The same seed gives the same trace though masks and keys differ; other seeds give other traces."""
    assert divergence(conversation, 5) is None
    assert len({simulate(conversation, seed).digest for seed in range(20)}) == 20


def test_a_server_closes_many_connections_in_a_repeatable_order() -> None:
    """Closing a server with open connections gives the same trace in every run of a seed."""

    async def scenario(_loop: SimLoop) -> None:
        async with served(echo):
            clients = [await connecting() for _ in range(5)]
        for client in clients:
            await client.wait_closed()
            assert client.close_code == 1001

    for seed in range(1, 11):
        assert len({simulate(scenario, seed).digest for _ in range(5)}) == 1


def test_nobody_listens_where_no_server_runs() -> None:
    """Connecting before the start and after the end of a server is refused; between, it works."""

    async def scenario(_loop: SimLoop) -> None:
        with pytest.raises(ConnectionRefusedError):
            await connecting()
        for _ in range(2):
            async with served(echo), connecting() as connection:
                await connection.send("x")
                assert await connection.recv() == "x"
            with pytest.raises(ConnectionRefusedError):
                await connecting()

    run(scenario, 1)


def test_a_message_that_is_cut_in_its_middle_is_never_received() -> None:
    """Both ends see the connection fail, and neither sees a part of the message."""

    async def scenario(loop: SimLoop) -> None:
        seen: list[object] = []
        failed = asyncio.Event()

        async def handler(connection: ServerConnection) -> None:
            try:
                seen.append(await connection.recv())
                seen.append(await connection.recv())
            except ConnectionClosedError:
                failed.set()

        loop.network.shape = Shape(latency=(0.01, 0.01), bandwidth=1000.0)
        async with served(handler):
            connection = await connecting()
            await connection.send(b"whole")
            await connection.send(bytes(1000))
            (link,) = loop.network.links
            await asyncio.sleep(0.5)
            assert link.up.held == 1000 + 8
            link.cut(server=1.0)
            with pytest.raises(ConnectionClosedError):
                await connection.recv()
            await failed.wait()
        assert seen == [b"whole"]

    for seed in range(20):
        run(scenario, seed)


async def hold(connection: ServerConnection) -> None:
    """Do nothing until the connection ends."""
    await connection.wait_closed()


def test_a_half_open_link_is_noticed_only_by_who_asks() -> None:
    """Without a heartbeat an end stays open for hours; with one, it notices after interval and timeout."""

    async def scenario(loop: SimLoop) -> None:
        async with served(hold):
            trusting, asking = await connecting(), await connecting(ping_interval=20)
            loop.network.partition()
            start = loop.time()
            with pytest.raises(ConnectionClosedError, match="keepalive ping timeout"):
                await asking.recv()
            assert 40 <= loop.time() - start <= 60
            await asyncio.sleep(7200)
            assert trusting.state.name == "OPEN"
            loop.network.cut()
            await trusting.wait_closed()

    run(scenario, 1)


def test_a_reader_that_stalls_blocks_the_writer_and_only_abort_frees_it() -> None:
    """`send` waits, the write buffer keeps to its mark, `close` hangs for an hour, `abort` takes no time."""

    async def scenario(loop: SimLoop) -> None:
        freed = asyncio.Event()
        closing: list[asyncio.Task[None]] = []

        async def flood(connection: ServerConnection) -> None:
            loop.call_later(600, lambda: closing.append(loop.create_task(connection.close())))
            try:
                while True:
                    await connection.send(bytes(1000))
            except ConnectionClosedError:
                freed.set()

        async with served(flood):
            connection = await connecting()
            (link,) = loop.network.links
            link.stall("down")
            await asyncio.sleep(4200)
            assert (freed.is_set(), closing[0].done()) == (False, False)
            assert link.down.held == loop.network.shape.capacity
            assert 2**15 < link.server.get_write_buffer_size() < 2**15 + 2000
            before = loop.time()
            link.server.abort()
            await freed.wait()
            await closing[0]
            assert loop.time() == before
            link.unstall("down")
            await asyncio.wait_for(drained(connection), 60)

    run(scenario, 1)


async def drained(connection: ClientConnection) -> None:
    """Read until the connection ends."""
    with suppress(ConnectionClosedError):
        while True:
            await connection.recv()


def test_exactly_one_frame_can_be_removed_from_a_stream() -> None:
    """The wanted frame is gone though it was joined with others in one write, and all others arrive."""

    async def scenario(loop: SimLoop) -> list[object]:
        drop = DropFrames(lambda frame: frame.payload == b"two")

        def install(link: Link) -> None:
            link.filter = drop

        loop.network.on_link = install

        async def handler(connection: ServerConnection) -> None:
            frames = [
                Frame(Opcode.BINARY, word).serialize(mask=False)
                for word in (b"one", b"two", b"three", b"two")
            ]
            connection.transport.write(b"".join(frames))

        async with served(handler), connecting() as connection:
            received: list[object] = [message async for message in connection]
        assert [frame.payload for frame in drop.dropped] == [b"two"]
        return received

    for seed in range(20):
        assert run(scenario, seed) == [b"one", b"three", b"two"]


def test_the_handshake_serves_plain_requests_and_subprotocols() -> None:
    """`process_request`, subprotocols, a connection class and addresses work as on real sockets."""

    class Connection(ServerConnection):
        greeting = "hello"

    def health(connection: ServerConnection, request: Request) -> Response | None:
        return connection.respond(200, "well\n") if request.path == "/healthz" else None

    async def handler(connection: ServerConnection) -> None:
        assert isinstance(connection, Connection)
        await connection.send(f"{connection.greeting} {connection.remote_address}")

    async def scenario(_loop: SimLoop) -> None:
        name = Subprotocol("midstream.v1.json")
        async with serve(
            handler, "localhost", 0, subprotocols=[name], process_request=health, create_connection=Connection
        ) as server:
            host, port = server.sockets[0].getsockname()
            async with connect(f"ws://{host}:{port}/", subprotocols=[name], proxy=None) as connection:
                assert connection.subprotocol == name
                assert await connection.recv() == f"hello {connection.local_address}"
                with pytest.raises(ConnectionClosedOK):
                    await connection.recv()
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.endswith(b"\r\n\r\nwell\n")
            writer.close()
            await writer.wait_closed()

    for seed in range(20):
        run(scenario, seed)
