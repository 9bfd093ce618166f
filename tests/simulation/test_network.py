"""The network of a simulation: who can reach whom, and when."""

import asyncio
from contextvars import ContextVar

import pytest

from tests.link import Shape
from tests.probe import Probe
from tests.simulation.host import Host
from tests.simulation.network import SYN_TIMEOUT
from tests.simulation.run import run
from tests.simulation.simloop import SimLoop

PLACE = "127.0.0.1", 80


async def listening(loop: SimLoop, *probes: Probe) -> asyncio.Server:
    """Listen at PLACE, and give each new connection the next probe."""
    waiting = list(probes)
    return await loop.create_server(lambda: waiting.pop(0), *PLACE)


def test_where_nobody_listens_a_connection_is_refused() -> None:
    """Before a listener comes and after it has gone, connecting raises `ConnectionRefusedError`."""

    async def scenario(loop: SimLoop) -> None:
        with pytest.raises(ConnectionRefusedError, match=r"nobody listens on 127\.0\.0\.1:80"):
            await loop.create_connection(Probe, "localhost", 80)
        async with await listening(loop, Probe()):
            transport, _ = await loop.create_connection(Probe, "localhost", 80)
            transport.close()
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Probe, *PLACE)

    run(scenario, 1)


def test_refuse_turns_new_connections_away_and_leaves_the_others() -> None:
    """While an address refuses, what was connected goes on; `admit` ends it."""

    async def scenario(loop: SimLoop) -> None:
        first, second = Probe(), Probe()
        async with await listening(loop, first, second):
            old, _ = await loop.create_connection(Probe, *PLACE)
            loop.network.refuse(*PLACE)
            with pytest.raises(ConnectionRefusedError):
                await loop.create_connection(Probe, *PLACE)
            old.write(b"still here")
            await first.read(10)
            loop.network.admit("localhost", 80)
            new, _ = await loop.create_connection(Probe, *PLACE)
            old.close()
            new.close()

    run(scenario, 1)


def test_addresses_are_given_once() -> None:
    """Port 0 is replaced by a free one, and a place that is taken is refused until it is free again."""

    async def scenario(loop: SimLoop) -> None:
        one = await loop.create_server(Probe, "localhost", 0)
        two = await loop.create_server(Probe, "localhost", 0)
        place = one.sockets[0].getsockname()
        assert place != two.sockets[0].getsockname()
        with pytest.raises(OSError, match="somebody listens"):
            await loop.create_server(Probe, *place)
        one.close()
        assert one.sockets == ()
        assert not one.is_serving()
        again = await loop.create_server(Probe, *place, start_serving=False)
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Probe, *place)
        await again.start_serving()
        assert again.is_serving()

    run(scenario, 1)


def test_a_listener_on_all_addresses_is_found_under_every_name() -> None:
    """Without a host, or with 0.0.0.0, a listener takes every name."""

    async def scenario(loop: SimLoop) -> None:
        server = await loop.create_server(Probe, None, 80)
        transport, _ = await loop.create_connection(Probe, "server.example", 80)
        assert transport.get_extra_info("peername") == ("server.example", 80)
        server.close()
        transport.close()
        await server.wait_closed()

    run(scenario, 1)


def test_a_closed_listener_keeps_its_connections_and_waits_for_them() -> None:
    """`close` ends no connection; `wait_closed` returns when the last one has ended."""

    async def scenario(loop: SimLoop) -> None:
        far = Probe()
        server = await listening(loop, far)
        near, _ = await loop.create_connection(Probe, *PLACE)
        await far.made.wait()
        server.close()
        waiting = loop.create_task(server.wait_closed())
        await asyncio.sleep(100)
        assert not waiting.done()
        near.close()
        await waiting
        assert far.lost.is_set()

    for seed in range(50):
        run(scenario, seed)


def test_serving_for_ever_ends_when_it_is_cancelled() -> None:
    """`serve_forever` accepts connections, and its cancellation closes the listener."""

    async def scenario(loop: SimLoop) -> None:
        server = await loop.create_server(Probe, *PLACE, start_serving=False)
        serving = loop.create_task(server.serve_forever())
        await asyncio.sleep(1)
        transport, _ = await loop.create_connection(Probe, *PLACE)
        transport.close()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert not server.is_serving()

    run(scenario, 1)


def test_a_connection_that_was_not_accepted_yet_is_reset_when_the_listener_closes() -> None:
    """What waits for acceptance when the listener goes learns it by a reset, in every order of callbacks."""

    async def scenario(loop: SimLoop) -> bool:
        far, near = Probe(), Probe()
        server = await listening(loop, far)
        await loop.create_connection(lambda: near, *PLACE)
        server.close()
        if accepted := far.made.is_set():
            near.transport.close()
            await far.lost.wait()
        else:
            await near.lost.wait()
            assert isinstance(near.error, ConnectionResetError)
        return accepted

    assert {run(scenario, seed) for seed in range(50)} == {False}


def test_a_partition_makes_links_half_open_and_lets_connecting_wait() -> None:
    """Nothing passes and nobody is told; who connects waits, and is connected after `heal`."""

    async def scenario(loop: SimLoop) -> None:
        first, second = Probe(), Probe()
        async with await listening(loop, first, second):
            old, _ = await loop.create_connection(Probe, *PLACE)
            await first.made.wait()
            loop.network.partition()
            old.write(b"held back")
            attempt = loop.create_task(loop.create_connection(Probe, *PLACE))
            await asyncio.sleep(100)
            assert not attempt.done()
            assert first.events == ["made"]
            loop.network.heal()
            new, _ = await attempt
            await first.read(9)
            old.close()
            new.close()

    run(scenario, 1)


def test_who_gets_no_answer_gives_up() -> None:
    """A connection attempt into a partition raises `TimeoutError` after the time a kernel would take."""

    async def scenario(loop: SimLoop) -> None:
        loop.network.partition()
        start = loop.time()
        with pytest.raises(TimeoutError, match=r"no answer from 127\.0\.0\.1:80"):
            await loop.create_connection(Probe, *PLACE)
        assert loop.time() == start + SYN_TIMEOUT

    run(scenario, 1)


def test_a_host_can_be_cut_off_alone() -> None:
    """A partition of one host concerns its links and its attempts, and nobody else's."""

    async def scenario(loop: SimLoop) -> None:
        alice, bob = Host("alice"), Host("bob")
        far = [Probe(), Probe(), Probe(), Probe()]
        async with await listening(loop, *far):
            with alice:
                hers, _ = await loop.create_connection(Probe, *PLACE)
            with bob:
                his, _ = await loop.create_connection(Probe, *PLACE)
            loop.network.partition(alice)
            hers.write(b"x")
            his.write(b"y")
            await far[1].read(1)
            with alice:
                attempt = loop.create_task(loop.create_connection(Probe, *PLACE))
            with bob:
                third, _ = await loop.create_connection(Probe, *PLACE)
            await asyncio.sleep(10)
            assert (far[0].received, attempt.done()) == (b"", False)
            loop.network.heal(alice)
            fourth, _ = await attempt
            await far[0].read(1)
            for transport in (hers, his, third, fourth):
                transport.close()

    run(scenario, 1)


def test_links_can_be_cut_by_host() -> None:
    """`cut(host)` ends the links of that host and leaves the others."""

    async def scenario(loop: SimLoop) -> None:
        alice = Host("alice")
        hers, other = Probe(), Probe()
        async with await listening(loop, Probe(), Probe()):
            with alice:
                await loop.create_connection(lambda: hers, *PLACE)
            await loop.create_connection(lambda: other, *PLACE)
            (link,) = loop.network.links_of(alice)
            assert link is hers.transport.get_extra_info("link")
            loop.network.cut(alice)
            await hers.lost.wait()
            await asyncio.sleep(1)
            assert not other.lost.is_set()
            assert loop.network.links == [other.transport.get_extra_info("link")]
            loop.network.cut()
            await other.lost.wait()

    run(scenario, 1)


def test_killing_a_server_ends_its_connections_and_frees_its_place() -> None:
    """Clients of a killed host learn of it, and a new program can listen where the old one did."""

    async def scenario(loop: SimLoop) -> None:
        server, far, near = Host("server"), Probe(), Probe()
        with server:
            await listening(loop, far)
        await loop.create_connection(lambda: near, *PLACE)
        await far.made.wait()
        loop.kill(server)
        await near.lost.wait()
        assert far.events == ["made"]
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Probe, *PLACE)
        with Host("server, started again"):
            again = await listening(loop, Probe())
        transport, _ = await loop.create_connection(Probe, *PLACE)
        transport.close()
        again.close()
        await again.wait_closed()

    for seed in range(20):
        run(scenario, seed)


WHO = ContextVar("who", default="nobody")


def test_a_connection_runs_in_the_context_of_its_listener_and_not_of_its_client() -> None:
    """Context variables do not leak from one end of a connection to the other."""

    class Witness(Probe):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.events.append(WHO.get())

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.events.append(WHO.get())

    async def scenario(loop: SimLoop) -> None:
        WHO.set("server")
        far = Witness()
        async with await listening(loop, far):
            WHO.set("client")
            near = Witness()
            await loop.create_connection(lambda: near, *PLACE)
            near.transport.write(b"x")
            await far.read(1)
            far.transport.write(b"y")
            await near.read(1)
            assert far.events == ["made", "server", "data", "server"]
            assert near.events == ["made", "client", "data", "client"]
            near.transport.close()

    run(scenario, 1)


def test_bytes_that_are_quicker_than_the_acceptance_wait_for_it() -> None:
    """Without any latency, what a client writes at once is received after `connection_made`, in any order."""

    async def scenario(loop: SimLoop) -> None:
        loop.network.shape = Shape(latency=(0.0, 0.0))
        far = Probe()
        async with await listening(loop, far):
            transport, _ = await loop.create_connection(Probe, *PLACE)
            transport.write(b"first")
            assert await far.read(5) == b"first"
            transport.close()

    for seed in range(100):
        run(scenario, seed)


def test_new_links_can_be_prepared_before_a_byte_moves() -> None:
    """`on_link` is called with each link before its protocols, and links are numbered."""

    async def scenario(loop: SimLoop) -> None:
        seen: list[int] = []
        loop.network.on_link = lambda link: seen.append(link.index)
        async with await listening(loop, Probe(), Probe()):
            for _ in range(2):
                transport, _ = await loop.create_connection(Probe, *PLACE)
                transport.close()
        assert seen == [1, 2]

    run(scenario, 1)
