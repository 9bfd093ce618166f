"""Under every mixture of faults and orders, websockets keeps its promise and ends by itself.

The promise is small: what is received on one connection is a prefix of what was sent on it. What midstream
    promises on top of that is tested with midstream's own server and client; here the ground they stand on is
    tested.
"""

import asyncio
from contextlib import suppress
from random import Random

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, WebSocketException

from tests.link import Direction, Link, Shape, Side
from tests.simulation.host import Host
from tests.simulation.run import divergence, run
from tests.simulation.simloop import SimLoop

DIRECTIONS: tuple[Direction, Direction] = ("up", "down")
SIDES: tuple[Side, Side] = ("client", "server")
HEARTBEAT = 5.0
CLIENTS = 3
CONNECTIONS = 4


async def count_up(connection: ServerConnection) -> None:
    """Send 0, 1, 2… with pauses, and read what comes, until the connection ends."""
    with suppress(ConnectionClosed):
        for number in range(200):
            await connection.send(str(number) * 20)
            if number % 20 == 19:
                await connection.recv()


async def serve_now_and_then(loop: SimLoop, done: asyncio.Event) -> None:
    """Start, stop and kill the server, over and over."""
    rng = loop.random
    while not done.is_set():
        host = Host("server")
        with host:
            server = await serve(
                count_up, "127.0.0.1", 80, compression=None, ping_interval=HEARTBEAT, ping_timeout=HEARTBEAT
            )
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), rng.uniform(5, 40))
        if rng.random() < 0.5:
            loop.kill(host)
        else:
            server.close()
            await server.wait_closed()


async def follow(loop: SimLoop, host: Host) -> int:
    """Connect a few times, check every stream, and return how many messages came."""
    came = 0
    with host:
        for _ in range(CONNECTIONS):
            with suppress(OSError, WebSocketException):
                async with connect(
                    "ws://127.0.0.1:80",
                    proxy=None,
                    compression=None,
                    ping_interval=HEARTBEAT,
                    ping_timeout=HEARTBEAT,
                ) as connection:
                    for number in range(200):
                        assert await connection.recv() == str(number) * 20
                        came += 1
                        if number % 20 == 19:
                            await asyncio.sleep(loop.random.choice([0, 1, 10]))
                            await connection.send("go on")
            await asyncio.sleep(loop.random.uniform(0, 2))
    return came


async def harm(loop: SimLoop, hosts: list[Host]) -> None:
    """Do one harm after another, until cancelled."""
    rng = loop.random
    while True:
        await asyncio.sleep(rng.expovariate(0.5))
        if rng.random() < 0.2:
            host = rng.choice(hosts)
            loop.network.partition(host)
            await asyncio.sleep(rng.choice([1, 30]))
            loop.network.heal(host)
        elif links := loop.network.links:
            await harm_link(rng, rng.choice(links))


async def harm_link(rng: Random, link: Link) -> None:
    """Do one harm to a link."""
    match rng.randrange(5):
        case 0:
            link.cut(client=rng.choice([0.0, 3.0, None]), server=rng.choice([0.0, 3.0, None]))
        case 1:
            link.reset(rng.choice(SIDES))
        case 2:
            rng.choice([link.client, link.server]).abort()
        case 3:
            direction = rng.choice(DIRECTIONS)
            link.stall(direction)
            await asyncio.sleep(rng.choice([1, 20]))
            link.unstall(direction)
        case _:
            link.half_open(rng.choice([None, *DIRECTIONS]))
            await asyncio.sleep(rng.choice([1, 20]))
            link.heal()


async def chaos(loop: SimLoop) -> int:
    """Let clients follow a server through all of that, then let everything heal and end."""
    rng = loop.random
    loop.network.shape = Shape(
        latency=rng.choice([(0.0, 0.0), (0.001, 0.05)]), split=0.3, capacity=rng.choice([500, 65_536])
    )
    hosts = [Host(f"client {number}") for number in range(CLIENTS)]
    done = asyncio.Event()
    server = loop.create_task(serve_now_and_then(loop, done))
    harming = loop.create_task(harm(loop, hosts))
    came = sum(await asyncio.gather(*(follow(loop, host) for host in hosts)))
    harming.cancel()
    loop.network.heal()
    for link in loop.network.links:
        link.unstall("up")
        link.unstall("down")
    done.set()
    await server
    return came


@pytest.mark.parametrize("fifty", range(4))
def test_a_connection_receives_a_prefix_of_what_was_sent_whatever_fails(fifty: int) -> None:
    """In 200 seeds of cuts, stalls, partitions, restarts and kills no stream is torn and nothing hangs."""
    came = [run(chaos, seed) for seed in range(50 * fifty, 50 * fifty + 50)]
    assert sum(came) > 50 * 200


def test_chaos_is_repeatable() -> None:
    """The same seed gives the same chaos, kills and restarts included."""
    for seed in range(5):
        assert divergence(chaos, seed) is None
