"""The proxy breaks what it says, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidMessage

from tests.proxy import Messages, Proxy, proxy_to


async def echo(connection: ServerConnection) -> None:
    """Say everything again, as text or as bytes."""
    async for message in connection:
        await connection.send(message)


@pytest.fixture
async def server_url() -> AsyncGenerator[str]:
    """A server that echoes."""
    async with serve(echo, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


@pytest.fixture
async def proxy(server_url: str) -> AsyncGenerator[Proxy]:
    """A proxy to it."""
    async with proxy_to(server_url) as proxy:
        yield proxy


def joined(place: Proxy | str) -> connect:
    """Connect through the proxy, or directly."""
    url = place if isinstance(place, str) else place.url
    return connect(url, compression=None, ping_interval=None, proxy=None, max_size=None)


async def said(connection: ClientConnection, message: str | bytes) -> str | bytes:
    """Say something, and return the echo."""
    await connection.send(message)
    return await connection.recv()


async def test_messages_of_every_length_pass(proxy: Proxy) -> None:
    """With and without extended lengths, also where messages are looked at."""
    proxy.drop(lambda _: False)
    async with joined(proxy) as connection:
        for length in (0, 1, 125, 126, 65_535, 65_536, 300_000):
            assert await said(connection, b"x" * length) == b"x" * length
    assert proxy.accepted == 1


async def test_a_cut_resets_both_ends_and_the_next_connection_lives(proxy: Proxy) -> None:
    """No close frame is seen."""
    async with joined(proxy) as connection:
        assert await said(connection, "a") == "a"
        proxy.cut()
        with pytest.raises(ConnectionClosed):
            await connection.recv()
        assert connection.close_code == 1006
    async with joined(proxy) as connection:
        assert await said(connection, "b") == "b"


async def test_in_a_blackhole_nothing_arrives_until_it_heals(proxy: Proxy, server_url: str) -> None:
    """Not while others talk at length; and nothing is lost, it only comes later."""
    async with joined(proxy) as connection, joined(server_url) as other:
        proxy.blackhole()
        await connection.send("a")
        waiting = asyncio.create_task(connection.recv())
        for number in range(50):
            assert await said(other, str(number)) == str(number)
        assert not waiting.done()
        proxy.heal()
        assert await waiting == "a"


async def test_refused_connections_end_before_they_begin(proxy: Proxy) -> None:
    """And again they pass when they are not refused."""
    proxy.refuse()
    with pytest.raises((OSError, InvalidMessage)):
        await joined(proxy)
    proxy.refuse(refuses=False)
    async with joined(proxy) as connection:
        assert await said(connection, "a") == "a"


async def test_a_picked_message_is_left_out_and_no_other(proxy: Proxy) -> None:
    """Those before and after it arrive."""
    proxy.drop(lambda payload: payload == b"b")
    async with joined(proxy) as connection:
        for message in ("a", "b", "c"):
            await connection.send(message)
        assert [await connection.recv(), await connection.recv()] == ["a", "c"]
    assert proxy.dropped == [b"b"]


async def test_what_is_delayed_arrives_in_order(proxy: Proxy) -> None:
    """Late, and all of it."""
    proxy.delay(0.001)
    async with joined(proxy) as connection:
        for number in range(20):
            await connection.send(str(number))
        assert [await connection.recv() for _ in range(20)] == [str(number) for number in range(20)]


def test_messages_are_found_however_the_bytes_are_cut() -> None:
    """Byte by byte: the head and every message but the picked one."""
    stream = b"HTTP/1.1 101 x\r\n\r\n" + b"\x82\x01a" + b"\x82\x01b" + b"\x82\x7e\x00\x80" + b"c" * 128
    messages = Messages(lambda payload: payload == b"b")
    passed = b"".join(messages.feed(stream[at : at + 1]) for at in range(len(stream)))
    assert passed == stream.replace(b"\x82\x01b", b"")
