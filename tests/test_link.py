"""An in-memory link carries bytes as TCP does, and its faults do what they say."""

import asyncio
from random import Random

import pytest

from tests.link import Direction, Link, Shape
from tests.probe import Probe
from tests.simulation.run import run
from tests.simulation.simloop import SimLoop

QUICK = Shape(latency=(0.01, 0.01), split=0.0)
CAPACITY = 1000
NARROW = Shape(latency=(0.01, 0.01), capacity=CAPACITY, split=0.0)


def connected(loop: SimLoop, shape: Shape = QUICK) -> tuple[Link, Probe, Probe]:
    """Return a link with a probe at each end, first the client's."""
    link = Link(loop, loop.random, shape)
    client, server = Probe(), Probe()
    link.client.start(client)
    link.server.start(server)
    return link, client, server


async def chatter(loop: SimLoop) -> None:
    """Write randomly from both ends, pausing readers at random, and check that both streams arrive whole."""
    rng = loop.random
    shape = Shape(
        latency=rng.choice([(0.0, 0.02), (0.0, 0.0)]),
        bandwidth=rng.choice([None, 50_000.0]),
        capacity=rng.choice([64, 4096]),
        split=0.3,
    )
    link, client, server = connected(loop, shape)
    sent = {client: b"", server: b""}
    for _ in range(30):
        end = rng.choice([client, server])
        data = rng.randbytes(rng.randrange(1, 200))
        end.transport.write(data)
        sent[end] += data
        if rng.random() < 0.3:
            reader = rng.choice([client, server])
            reader.transport.pause_reading()
            loop.call_later(rng.uniform(0, 0.05), reader.transport.resume_reading)
        await asyncio.sleep(rng.choice([0, 0, 0.001, 0.03]))
    assert await server.read(len(sent[client])) == sent[client]
    assert await client.read(len(sent[server])) == sent[server]
    client.transport.close()
    await asyncio.gather(client.lost.wait(), server.lost.wait())
    for probe in (client, server):
        assert probe.events[0] == "made"
        assert probe.events.index("lost") == len(probe.events) - 1
        assert probe.error is None
    assert link.closed


@pytest.mark.parametrize("hundred", range(10))
def test_each_direction_is_first_in_first_out_under_any_order_of_callbacks(hundred: int) -> None:
    """In a thousand seeds no byte is lost, doubled or reordered; `made` is first, `lost` last and once."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        run(chatter, seed)


def test_latency_lies_in_its_range() -> None:
    """A byte arrives after the least and before the greatest latency."""

    async def scenario(loop: SimLoop) -> None:
        for _ in range(50):
            _, client, server = connected(loop, Shape(latency=(0.2, 0.3)))
            start = loop.time()
            client.transport.write(b"x")
            await server.read(1)
            assert 0.2 <= loop.time() - start <= 0.3

    run(scenario, 1)


def test_bandwidth_limits_what_passes_in_a_second() -> None:
    """A thousand bytes at a hundred a second take ten seconds and the latency."""

    async def scenario(loop: SimLoop) -> None:
        _, client, server = connected(loop, Shape(latency=(0.01, 0.01), bandwidth=100.0))
        start = loop.time()
        for _ in range(10):
            client.transport.write(bytes(100))
        await server.read(1000)
        assert loop.time() - start == pytest.approx(10.01)

    run(scenario, 1)


def test_a_cut_loses_what_is_in_flight_and_tells_both_ends() -> None:
    """After a cut nothing arrives, and each end learns of it when it was to."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop)
        start = loop.time()
        client.transport.write(b"lost")
        link.cut(client=0.0, server=30.0)
        await client.lost.wait()
        assert loop.time() == start
        server.transport.pause_reading()
        server.transport.resume_reading()
        await server.lost.wait()
        assert loop.time() == start + 30.0
        assert server.received == b""
        assert isinstance(client.error, ConnectionResetError)
        assert isinstance(server.error, ConnectionResetError)

    run(scenario, 1)


def test_an_end_that_is_not_told_of_a_cut_writes_into_nothing() -> None:
    """An untold end fills the capacity and its write buffer, and only `abort` ends it."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop, NARROW)
        link.cut(server=None)
        await client.lost.wait()
        server.transport.write(bytes(2 * CAPACITY))
        await asyncio.sleep(3600)
        assert not server.lost.is_set()
        assert server.transport.get_write_buffer_size() == CAPACITY
        server.transport.abort()
        await server.lost.wait()

    run(scenario, 1)


def test_a_reset_arrives_behind_the_bytes_that_were_sent_before_it() -> None:
    """The other end receives what was in flight and then `ConnectionResetError`."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop)
        server.transport.write(b"last words")
        link.reset("server")
        await client.lost.wait()
        assert client.received == b"last words"
        assert isinstance(client.error, ConnectionResetError)
        assert server.error is None

    run(scenario, 1)


def test_a_reset_is_noticed_by_an_end_that_does_not_read() -> None:
    """An end that has paused reading learns of a reset all the same."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop)
        client.transport.pause_reading()
        server.transport.write(b"unread")
        link.reset("server")
        await client.lost.wait()
        assert client.received == b""

    run(scenario, 1)


def test_who_closes_without_reading_what_has_arrived_sends_a_reset() -> None:
    """Unread bytes turn the end of the stream into a reset, as in TCP."""

    async def scenario(loop: SimLoop) -> None:
        _, client, server = connected(loop)
        client.transport.pause_reading()
        server.transport.write(b"unread")
        await asyncio.sleep(1)
        client.transport.close()
        await server.lost.wait()
        assert server.events == ["made", "lost"]
        assert isinstance(server.error, ConnectionResetError)

    run(scenario, 1)


def test_bytes_in_flight_to_an_end_that_closes_are_answered_with_a_reset() -> None:
    """Also where that end had paused reading, and the sender would go on writing for ever."""

    async def scenario(loop: SimLoop) -> None:
        _, client, server = connected(loop)
        server.keep_open = True
        client.transport.pause_reading()
        server.transport.write(b"too late")
        client.transport.close()
        await server.lost.wait()
        assert isinstance(server.error, ConnectionResetError)

    run(scenario, 1)


def test_a_half_open_link_tells_nobody_anything() -> None:
    """Bytes, the end of the stream and resets do not pass a half-open link, for hours; a cut ends it."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop)
        link.half_open()
        client.transport.write(b"x")
        server.transport.write(b"y")
        client.transport.close()
        await client.lost.wait()
        await asyncio.sleep(7200)
        assert (server.received, server.events) == (b"", ["made"])
        link.cut()
        await server.lost.wait()

    run(scenario, 1)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_half_open_can_be_one_way(direction: Direction) -> None:
    """The other direction goes on; after `heal` what was held back arrives, in order."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop)
        link.half_open(direction)
        client.transport.write(b"to the server")
        server.transport.write(b"to the client")
        await asyncio.sleep(60)
        open_end, dark_end = (client, server) if direction == "up" else (server, client)
        assert open_end.received
        assert not dark_end.received
        link.heal(direction)
        (server if dark_end is client else client).transport.write(b", later")
        await asyncio.sleep(1)
        assert dark_end.received.endswith(b", later")
        assert dark_end.received.startswith(b"to the ")

    run(scenario, 1)


def test_bytes_for_an_end_that_has_closed_are_answered_with_a_reset() -> None:
    """Who writes to a closed peer is told, also when it ignores the end of the stream."""

    async def scenario(loop: SimLoop) -> None:
        _, client, server = connected(loop)
        server.keep_open = True
        client.transport.close()
        await server.ended.wait()
        server.transport.write(b"anybody there?")
        await server.lost.wait()
        assert isinstance(server.error, ConnectionResetError)
        server.transport.write(b"ignored")

    run(scenario, 1)


def test_a_filter_decides_what_is_sent() -> None:
    """What the filter returns is sent in place of what was written; an empty answer sends nothing."""

    async def scenario(loop: SimLoop) -> None:
        link, client, server = connected(loop)
        seen: list[tuple[Direction, bytes]] = []

        def surgeon(direction: Direction, data: bytes) -> bytes:
            seen.append((direction, data))
            return b"" if data == b"secret" else data.upper()

        link.filter = surgeon
        server.transport.writelines([b"a", b"b"])
        server.transport.write(b"secret")
        client.transport.write(b"c")
        await asyncio.sleep(1)
        assert (client.received, server.received) == (b"AB", b"C")
        assert seen == [("down", b"ab"), ("down", b"secret"), ("up", b"c")]

    run(scenario, 1)


def test_a_link_runs_on_any_event_loop() -> None:
    """Without a simulation, a link carries bytes on asyncio's own loop."""

    async def scenario() -> bytes:
        link = Link(asyncio.get_running_loop(), Random(1), Shape(latency=(0.0, 0.0)))
        client, server = Probe(), Probe()
        link.client.start(client)
        link.server.start(server)
        client.transport.write(b"hello")
        return await server.read(5)

    assert asyncio.run(scenario()) == b"hello"
