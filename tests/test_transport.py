"""The end of a link is an asyncio transport: flow control, endings and callbacks are those of a socket."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.link import Link, Shape
from tests.probe import Probe
from tests.simulation.run import run
from tests.simulation.simloop import SimLoop

CAPACITY = 1000
NARROW = Shape(latency=(0.01, 0.01), capacity=CAPACITY, split=0.0)


def connected(loop: SimLoop, shape: Shape = NARROW) -> tuple[Link, Probe, Probe]:
    """Return a link with a probe at each end, first the client's."""
    link = Link(loop, loop.random, shape)
    client, server = Probe(), Probe()
    link.client.start(client)
    link.server.start(server)
    return link, client, server


def test_a_stalled_reader_fills_the_capacity_then_the_write_buffer_and_pauses_the_writer() -> None:
    """Unread bytes stay with the sender, paused above its high-water mark, resumed when they flow."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop, NARROW)
        server.transport.set_write_buffer_limits(high=500, low=100)
        link.stall("down")
        server.transport.write(bytes(CAPACITY))
        assert (link.down.held, server.transport.get_write_buffer_size()) == (CAPACITY, 0)
        server.transport.write(bytes(500))
        assert server.transport.get_write_buffer_size() == 500
        assert server.events == ["made"]
        server.transport.write(b"x")
        assert server.events == ["made", "pause"]
        await asyncio.sleep(3600)
        assert (client.received, server.transport.get_write_buffer_size()) == (b"", 501)
        link.unstall("down")
        assert await client.read(CAPACITY + 501) == bytes(CAPACITY + 500) + b"x"
        assert server.events == ["made", "pause", "resume"]
        client.transport.close()
        await server.lost.wait()

    run(scenario, 1)


def test_a_writer_is_resumed_at_its_low_water_mark() -> None:
    """While the buffer drains slowly, the protocol stays paused until no more than the low mark is left."""

    async def scenario(loop: SimLoop) -> None:
        _, client, server = connected(loop, Shape(latency=(0.0, 0.0), bandwidth=100.0, capacity=CAPACITY))
        server.transport.set_write_buffer_limits(high=500, low=150)
        at_resume: list[tuple[float, int]] = []
        server.on_resume = lambda: at_resume.append((loop.time(), server.transport.get_write_buffer_size()))
        start = loop.time()
        for _ in range(16):
            server.transport.write(bytes(100))
        assert server.events == ["made", "pause"]
        await client.read(1600)
        ((when, left),) = at_resume
        assert (round(when - start, 3), left) == (5.0, 100)

    run(scenario, 1)


def test_a_transport_that_is_aborted_while_it_could_write_on_is_not_resumed() -> None:
    """Nothing follows `connection_lost`, in whichever order the callbacks that are due come."""

    async def scenario(loop: SimLoop) -> None:
        link, _, server = connected(loop, NARROW)
        server.transport.set_write_buffer_limits(high=500, low=0)
        link.stall("down")
        server.transport.write(bytes(CAPACITY + 501))
        link.server.room()
        server.transport.abort()
        await server.lost.wait()
        await asyncio.sleep(1)
        assert server.events == ["made", "pause", "lost"]

    for seed in range(1, 11):
        run(scenario, seed)


def test_a_paused_reader_holds_bytes_back_and_gets_all_of_them_later() -> None:
    """`pause_reading` is real: nothing is received until `resume_reading`."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop, NARROW)
        client.transport.pause_reading()
        assert not client.transport.is_reading()
        server.transport.write(bytes(5 * CAPACITY))
        await asyncio.sleep(60)
        assert client.received == b""
        assert link.down.held == CAPACITY
        client.transport.resume_reading()
        await client.read(5 * CAPACITY)

    run(scenario, 1)


def test_close_waits_for_a_peer_that_never_reads_and_abort_does_not() -> None:
    """With bytes in the write buffer, `close` hangs on a stalled peer; `abort` ends all at once."""

    async def scenario(loop: SimLoop) -> None:
        link, _, server = connected(loop, NARROW)
        link.stall("down")
        server.transport.write(bytes(2 * CAPACITY))
        server.transport.close()
        await asyncio.sleep(3600)
        assert not server.lost.is_set()
        before = loop.time()
        server.transport.abort()
        await server.lost.wait()
        assert (loop.time(), server.error) == (before, None)

    run(scenario, 1)


def test_the_two_ends_know_their_addresses() -> None:
    """What one end calls its own address is the other's peer; there is a stub in place of a socket."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop)
        near, far = client.transport.get_extra_info, server.transport.get_extra_info
        assert near("sockname") == far("peername") == near("socket").getsockname()
        assert near("peername") == far("sockname") == far("socket").getsockname()
        assert near("link") is link
        near("socket").setsockopt(6, 1, 1)
        assert near("socket").getsockopt(6, 1) == 1
        assert near("sslcontext") is None

    run(scenario, 1)


def test_an_exception_of_a_protocol_ends_its_connection_and_is_not_swallowed() -> None:
    """It reaches the loop's exception handler, and `connection_lost`."""

    class Broken(Probe):
        def data_received(self, data: bytes) -> None:
            raise ZeroDivisionError(data)

    async def scenario(loop: SimLoop) -> None:
        link = Link(loop, loop.random)
        client, server = Broken(), Probe()
        link.client.start(client)
        link.server.start(server)
        server.transport.write(b"x")
        await client.lost.wait()
        assert isinstance(client.error, ZeroDivisionError)
        assert loop.errors == [client.error]
        loop.errors.clear()

    run(scenario, 1)


def test_impossible_uses_are_refused() -> None:
    """Water marks the wrong way round, a write after the end, and a protocol that is none raise an error."""

    async def scenario(loop: SimLoop) -> None:
        link, client, _ = connected(loop)
        with pytest.raises(ValueError, match="must be >="):
            client.transport.set_write_buffer_limits(high=1, low=2)
        client.transport.set_write_buffer_limits(low=10)
        assert client.transport.get_write_buffer_limits() == (10, 40)
        client.transport.write_eof()
        with pytest.raises(RuntimeError, match="after write_eof"):
            client.transport.write(b"x")
        with pytest.raises(TypeError, match=r"asyncio\.Protocol"):
            link.server.set_protocol(asyncio.BaseProtocol())

    run(scenario, 1)


# The oracle: asyncio's own transport over a real socket, given the same script.

Script = Callable[[Probe, Probe], Awaitable[None]]


async def close_after_writing(client: Probe, server: Probe) -> None:
    """Write, then close at once."""
    client.transport.write(b"bye")
    client.transport.close()
    assert client.transport.is_closing()
    client.transport.close()


async def half_close_then_answer(client: Probe, server: Probe) -> None:
    """End one direction, answer in the other."""
    server.keep_open = True
    client.transport.write(b"question")
    client.transport.write_eof()
    await server.ended.wait()
    server.transport.write(b"answer")
    server.transport.close()


async def half_close_behind_much(client: Probe, server: Probe) -> None:
    """End one direction while most of it is still in the write buffer."""
    server.keep_open = True
    server.transport.pause_reading()
    client.transport.set_write_buffer_limits(high=0)
    client.transport.write(bytes(20_000_000))
    client.transport.write_eof()
    server.transport.resume_reading()
    await server.ended.wait()
    server.transport.write(b"answer")
    server.transport.close()


async def abort_with_nothing_pending(client: Probe, server: Probe) -> None:
    """Abort one end after an exchange."""
    client.transport.write(b"ping")
    await server.read(4)
    server.transport.write(b"pong")
    await client.read(4)
    client.transport.abort()


async def close_from_both_ends(client: Probe, server: Probe) -> None:
    """Close both ends in the same moment."""
    server.transport.write(b"a")
    await client.read(1)
    client.transport.close()
    server.transport.close()


async def pause_while_closing(client: Probe, server: Probe) -> None:
    """Write far above the high-water mark, close, and let the other end read it all."""
    server.transport.pause_reading()
    client.transport.set_write_buffer_limits(high=0)
    client.transport.write(bytes(20_000_000))
    client.transport.close()
    server.transport.resume_reading()
    await server.read(20_000_000)


async def converse(script: Script) -> tuple[list[str], list[str], int, int]:
    """Play a script between a server and a client on the running loop, and return what happened to each."""
    loop = asyncio.get_running_loop()
    client, server = Probe(), Probe()
    listener = await loop.create_server(lambda: server, "127.0.0.1", 0)
    async with listener:
        await loop.create_connection(lambda: client, *listener.sockets[0].getsockname())
        await server.made.wait()
        await script(client, server)
        await asyncio.gather(client.lost.wait(), server.lost.wait())
    assert (client.error, server.error) == (None, None)
    return client.events, server.events, len(client.received), len(server.received)


@pytest.mark.parametrize(
    "script",
    [
        close_after_writing,
        half_close_then_answer,
        half_close_behind_much,
        abort_with_nothing_pending,
        close_from_both_ends,
        pause_while_closing,
    ],
)
async def test_protocols_are_called_as_by_a_real_socket(script: Script) -> None:
    """The same script gives the same callbacks, in the same order, over a link and over loopback TCP."""
    real = await converse(script)
    loop = asyncio.get_running_loop()

    def simulated() -> list[object]:
        return [run(lambda _: converse(script), seed) for seed in range(20)]

    for outcome in await loop.run_in_executor(None, simulated):
        assert outcome == real
