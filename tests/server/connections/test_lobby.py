"""Laws of those who are not welcomed yet: few, short, and gone first."""

import asyncio
from contextlib import suppress

import msgspec
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Hello
from midstream.protocol.limits import Limits
from midstream.server.config import Config
from midstream.server.connections.listener import Listener
from midstream.server.connections.lobby import HANDSHAKE_BYTES, Lobby
from tests.server.connections.readers import plain
from tests.server.connections.registry import Notes
from tests.server.connections.serving import client_of, serving

OPEN = ["GET / HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade"]


class Guest:
    """Somebody in a lobby."""

    def __init__(self) -> None:
        """Be there."""
        self.is_out = False

    def turn_out(self) -> None:
        """Go."""
        self.is_out = True


def test_the_one_that_waits_longest_goes() -> None:
    """Of those who are there still, and nobody while there is room."""
    lobby = Lobby(2)
    first, second, third, fourth = (Guest() for _ in range(4))
    lobby.enter(first)
    lobby.enter(second)
    lobby.leave(first)
    lobby.enter(third)
    assert not any(one.is_out for one in (first, second, third))
    lobby.enter(fourth)
    assert [one.is_out for one in (first, second, third, fourth)] == [False, True, False, False]
    lobby.leave(second)  # whoever was turned out leaves when its transport is gone
    assert (len(lobby), lobby.turned_out) == (2, 1)


async def test_silent_connections_make_room_and_welcomed_ones_stay() -> None:
    """Each new one turns out the oldest that has not said hello; a client that has is never touched."""
    async with serving(Notes(at_once=True), Config(lobby=3)) as listener, client_of(listener) as client:
        silent = [await asyncio.open_connection(listener.host, listener.port) for _ in range(5)]
        assert [await reader.read() for reader, _ in silent[:2]] == [b"", b""]
        await client.send("ping", 1)
        assert (await client.receive())[:2] == ["pong", 1]
        async with client_of(listener) as other:  # there is room for one who says who it is
            await other.send("ping", 2)
            assert (await other.receive())[:2] == ["pong", 2]
        for _, writer in silent:
            writer.close()


async def test_headers_without_end_are_cut() -> None:
    """What comes before the handshake's end is bounded, and nothing is kept of it."""
    async with serving(Notes()) as listener:
        reader, writer = await asyncio.open_connection(listener.host, listener.port)
        writer.write("\r\n".join([*OPEN, *[f"X-{number}: {'a' * 1_000}" for number in range(20)]]).encode())
        with suppress(ConnectionResetError):  # it was cut while more was on its way
            assert await reader.read() == b""
        writer.close()


async def test_a_browser_with_many_cookies_may_come() -> None:
    """The bound leaves room for what a browser sends by itself."""
    async with (
        serving(Notes()) as listener,
        connect(
            f"ws://{listener.host}:{listener.port}/",
            subprotocols=[Subprotocol("midstream.v1.msgpack")],
            additional_headers=[(f"Cookie-{n}", "c" * 4_000) for n in range(3)],
            proxy=None,
        ) as websocket,
    ):
        assert HANDSHAKE_BYTES > 3 * 4_000
        await websocket.send(MSGPACK.encode(Hello(1, None, {})))
        welcome = await websocket.recv()
        assert isinstance(welcome, bytes)
        assert plain(MSGPACK, welcome)[0] == "welcome"


async def _end_of(listener: Listener, first: bytes) -> int | None:
    async with connect(
        f"ws://{listener.host}:{listener.port}/",
        subprotocols=[Subprotocol("midstream.v1.msgpack")],
        proxy=None,
    ) as websocket:
        await websocket.send(first)
        try:
            await websocket.recv()
            await websocket.recv()
        except ConnectionClosed:
            pass
        return websocket.close_code


async def test_a_first_message_that_is_much_too_long_is_not_taken_in() -> None:
    """Up to twice `hello_bytes` it is refused in words; beyond that its length alone ends it."""
    limits = Limits(hello_bytes=1_000)
    async with serving(Notes(), Config(limits=limits)) as listener:
        assert await _end_of(listener, MSGPACK.encode(["hello", 1, None, {"a": "x" * 1_500}])) == 4501
        assert await _end_of(listener, MSGPACK.encode(["hello", 1, None, {"a": "x" * 2_500}])) == 1009


async def test_long_calls_may_come_right_behind_a_hello() -> None:
    """In one packet with it, before the welcome: they are held to the limits of a frame."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener, hello=False) as client:
        long = {"session_id": "s", "message_id": "m", "parts": [{"type": "text", "text": "x" * 50_000}]}
        await client.send("hello", 1, None, {})
        await client.send("call", 1, "prompt", long)
        assert (await client.receive())[0] == "welcome"
        assert (await client.receive())[:2] == ["result", 1]
        assert msgspec.to_builtins(registry.posted[0][1].params)["message_id"] == "m"
