"""The listener under virtual time, over in-memory links, with every order of callbacks that chance gives."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count

import msgspec
import pytest

from midstream.protocol.calls import SubscribeResult
from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Delta, Ping, Sync
from midstream.server.config import Config
from midstream.server.connections.listener import Listener, listen
from tests.clock import SimClock
from tests.link import Shape
from tests.server.connections.readers import outbox_of, read
from tests.server.connections.registry import Notes
from tests.server.connections.serving import Client, client_of
from tests.simulation.run import divergence, run
from tests.simulation.simloop import SimLoop

LAST = 400


class CountedIds:
    """Ids that are the same in every run of a seed."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, kind: str) -> str:
        """Return the next id."""
        return f"{kind}_{next(self._numbers)}"

    def epoch(self) -> str:
        """Return the next epoch."""
        return f"{next(self._numbers):016x}"


async def follow(client: Client) -> tuple[int, int]:
    """Read to the last version, checking the chain; return how many deltas and syncs came."""
    await client.send("call", 1, "subscribe", {"session_id": "s1"})
    result = msgspec.convert((await client.receive_tag("result"))[2], SubscribeResult)
    whole, reached, deltas, syncs = outbox_of(MSGPACK), result.sync.version, 0, 0
    while reached < LAST:
        message = await client.websocket.recv()
        assert isinstance(message, bytes)
        whole.put_sealed("s1", message)
        for frame in read(whole):
            if isinstance(frame, Delta):
                assert frame.version == reached + 1
                reached, deltas = frame.version, deltas + 1
            elif isinstance(frame, Sync):
                assert frame.payload.from_version == reached
                reached, syncs = frame.payload.version, syncs + 1
            elif isinstance(frame, Ping):
                await client.send("pong", frame.nonce, 0)
    return deltas, syncs


async def publish(registry: Notes, loop: SimLoop) -> None:
    """Publish up to the last version, at chance's pace."""
    while registry.version < LAST:
        for _ in range(loop.random.randrange(1, 20)):
            if registry.version < LAST:
                registry.publish("s1", "x" * loop.random.choice([4, 400, 3_000]))
        await asyncio.sleep(loop.random.choice([0, 0.01, 0.2]))


async def readers(loop: SimLoop) -> list[tuple[int, int]]:
    """Let three clients follow one session, over lines of chance's speed."""
    registry = Notes(at_once=True)
    config = Config(port=8787, outbox_bytes=loop.random.choice([20_000, 1_000_000]))
    loop.network.shape = Shape(
        latency=(0.0, 0.05), bandwidth=loop.random.choice([None, 1_000_000, 100_000]), capacity=20_000
    )
    async with listen(config, registry, None, SimClock(loop), CountedIds()) as listener:

        async def reader() -> tuple[int, int]:
            async with client_of(listener) as client:
                return await follow(client)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(reader()) for _ in range(3)]
            await registry.until_posted(3)
            group.create_task(publish(registry, loop))
    return [task.result() for task in tasks]


@pytest.mark.parametrize("twenty", range(3))
def test_every_reader_gets_one_chain_under_any_schedule(twenty: int) -> None:
    """Fast lines get deltas, slow ones syncs in between; none has a gap, and everything ends by itself."""
    for seed in range(20 * twenty, 20 * twenty + 20):
        assert len(run(readers, seed)) == 3


def test_slow_lines_are_among_the_schedules() -> None:
    """Some of them fall behind, and some do not: the law above says something of both."""
    results = [run(readers, seed) for seed in range(12)]
    syncs = [sum(syncs for _, syncs in result) for result in results]
    assert min(syncs) == 0
    assert max(syncs) > 0


def test_the_listener_is_repeatable() -> None:
    """The same seed gives the same trace: no real time, no real chance, no places in memory."""
    for seed in (1, 2, 3):
        assert divergence(readers, seed) is None


def test_a_peer_that_is_cut_off_is_let_go_after_two_heartbeats() -> None:
    """A half-open link: nothing comes, nothing is refused, and no closing handshake can work."""

    async def scenario(loop: SimLoop) -> float:
        registry = Notes(at_once=True)
        async with listen(Config(port=8787), registry, None, SimClock(loop), CountedIds()) as listener:
            entered = client_of(listener)
            client = await entered.__aenter__()
            await client.send("call", 1, "subscribe", {"session_id": "s1"})
            await client.receive_tag("result")
            loop.network.partition()
            start = loop.time()
            await registry.until_left(1)
            lost = loop.time() - start
            client.websocket.transport.abort()
            await entered.__aexit__(None, None, None)
            return lost

    assert 29.9 < run(scenario, 1) <= 30.1


def test_a_drain_waits_for_those_who_go_and_no_longer() -> None:
    """Clients that leave at `goaway` end the drain early; one that stays ends it after the grace."""

    async def scenario(loop: SimLoop, *, stubborn: bool) -> float:
        async with listen(Config(port=8787), Notes(), None, SimClock(loop), CountedIds()) as listener:

            async def client() -> None:
                async with client_of(listener) as client:
                    await client.receive_tag("goaway")
                    if stubborn:
                        await client.closed()

            return await _timed_drain(loop, listener, client)

    assert run(lambda loop: scenario(loop, stubborn=False), 1) < 1
    assert 10 <= run(lambda loop: scenario(loop, stubborn=True), 1) < 11


async def _timed_drain(
    loop: SimLoop, listener: Listener, client: Callable[[], Coroutine[None, None, None]]
) -> float:
    async with asyncio.TaskGroup() as group:
        group.create_task(client())
        await asyncio.sleep(1)
        assert listener.connections == 1
        start = loop.time()
        await listener.drain()
        return loop.time() - start
