"""Laws of clients that do not read: memory is bounded, others go on, and in the end they are cut."""

import tracemalloc

import pytest
from websockets.exceptions import ConnectionClosed

from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Delta, Sync
from midstream.server.config import Config
from tests.server.connections.readers import CHANNEL, outbox_of, read
from tests.server.connections.registry import Notes
from tests.server.connections.serving import Client, client_of, serving

MEGABYTE = 1024 * 1024


async def subscribed(client: Client, session_id: str = "s1") -> None:
    """Subscribe, and read the answer."""
    await client.send("call", 1, "subscribe", {"session_id": session_id})
    await client.receive_tag("result")


async def shout_without_end(client: Client) -> None:
    """Send frames that are answered by errors."""
    while True:
        await client.send("shout", "x" * 500)


async def test_a_client_that_never_reads_costs_bounded_memory_disturbs_nobody_and_is_cut() -> None:
    """60 MB are published while one of two readers does not read: the other gets every delta."""
    registry = Notes(at_once=True)
    config = Config(heartbeat_ms=2_000)
    text = "x" * 3_000
    async with (
        serving(registry, config) as listener,
        client_of(listener) as deaf,
        client_of(listener) as good,
    ):
        await subscribed(deaf)
        await subscribed(good)
        deaf.websocket.transport.pause_reading()
        tracemalloc.start()
        try:
            for version in range(11, 20_011):
                registry.publish("s1", text)
                while (frame := await good.receive())[0] != "d":
                    if frame[0] == "ping":
                        await good.send("pong", frame[1], 0)
                assert frame[:3] == ["d", CHANNEL, version]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 6 * MEGABYTE
        await registry.until_left(1)
        assert len(registry.subscribers["s1"]) == 1
        deaf.websocket.transport.abort()


async def test_a_client_that_reads_late_gets_one_sync_and_the_chain_holds() -> None:
    """What it could not take is joined to a sync that continues where its stream had stopped."""
    registry = Notes(at_once=True)
    async with serving(registry, Config(heartbeat_ms=60_000)) as listener, client_of(listener) as slow:
        await subscribed(slow)
        slow.websocket.transport.pause_reading()
        # enough that what the kernels buffer and the outbox cannot hold it
        for _ in range(20_000):
            registry.publish("s1", "x" * 3_000)
        slow.websocket.transport.resume_reading()
        whole = outbox_of(MSGPACK)
        reached, syncs = 10, 0
        while reached < registry.version:
            message = await slow.websocket.recv()
            assert isinstance(message, bytes)
            whole.put_sealed("s1", message)
            for frame in read(whole):
                if isinstance(frame, Delta):
                    assert frame.version == reached + 1
                    reached = frame.version
                elif isinstance(frame, Sync):
                    assert frame.payload.from_version == reached
                    reached = frame.payload.version
                    syncs += 1
        assert syncs == 1
        assert registry.resynced == ["s1"]


async def test_a_client_that_does_not_read_its_answers_is_cut() -> None:
    """The errors that it causes do not pile up without end."""
    registry = Notes(at_once=True)
    async with serving(registry, Config(outbox_bytes=4_096)) as listener, client_of(listener) as deaf:
        await subscribed(deaf)
        deaf.websocket.transport.pause_reading()
        registry.publish("s1", "x" * 30_000_000)  # more than the kernels take
        with pytest.raises(ConnectionClosed):
            await shout_without_end(deaf)
        await registry.until_left(1)
        assert registry.subscribers["s1"] == []
