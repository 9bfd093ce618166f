"""Messages are framed as RFC 6455 says, and a WebSocket ends cleanly with whatever still waits in it."""

import asyncio

import pytest
from websockets.frames import Frame, Opcode

from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.server.connections.websocket import WebSocket, sealer
from tests.server.connections.registry import Notes
from tests.server.connections.serving import Client, client_of, serving


@pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])
@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65_535, 65_536, 1_000_000])
def test_a_sealed_message_is_the_frame_that_websockets_makes(codec: Codec, length: int) -> None:
    """At every length of the header."""
    opcode = Opcode.BINARY if codec.binary else Opcode.TEXT
    payload = b"x" * length
    assert sealer(codec)(payload) == Frame(opcode, payload).serialize(mask=False)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[WebSocket]:
    """Return a list to which the server's ends of the connections come."""
    websockets = list[WebSocket]()
    connection_made = WebSocket.connection_made

    def note(websocket: WebSocket, transport: asyncio.BaseTransport) -> None:
        websockets.append(websocket)
        connection_made(websocket, transport)

    monkeypatch.setattr(WebSocket, "connection_made", note)
    return websockets


async def stuff(websocket: WebSocket, client: Client, registry: Notes) -> None:
    """Publish to a subscriber that does not read until something waits in front of the kernel."""
    await client.send("call", 1, "subscribe", {"session_id": "s1"})
    await client.receive_tag("result")
    client.websocket.transport.pause_reading()
    registry.publish("s1", "x" * 5_000_000)
    while not websocket.buffered:  # noqa: ASYNC110 - nobody is told
        await asyncio.sleep(0)


async def test_nothing_is_written_past_a_transport_that_was_cut(opened: list[WebSocket]) -> None:
    """What waited in it is dropped: a message behind that would stand in the middle of another one."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener) as client:
        (websocket,) = opened
        await stuff(websocket, client, registry)
        websocket.transport.abort()
        assert not websocket.is_clear
        client.websocket.transport.resume_reading()


async def test_a_client_that_has_said_all_may_read_on_and_then_ends_without_an_error(
    opened: list[WebSocket], caplog: pytest.LogCaptureFixture
) -> None:
    """Its transport closes by itself when it is empty, and nothing is left to cut."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener) as client:
        (websocket,) = opened
        await stuff(websocket, client, registry)
        client.websocket.transport.write_eof()
        while not websocket.transport.is_closing():  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0)
        client.websocket.transport.resume_reading()
        await client.closed()
        await registry.until_left(1)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_what_waits_is_not_written_while_the_transport_says_that_it_has_room(
    opened: list[WebSocket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so amid its own writing; where the next write breaks it, the end would come twice."""
    registry = Notes(at_once=True)
    saying, written = False, list[bool]()
    resume_writing, write = WebSocket.resume_writing, WebSocket.write

    def say(websocket: WebSocket) -> None:
        nonlocal saying
        saying = True
        resume_writing(websocket)
        saying = False

    def note(websocket: WebSocket, messages: list[bytes]) -> None:
        written.append(saying)
        write(websocket, messages)

    monkeypatch.setattr(WebSocket, "resume_writing", say)
    async with serving(registry) as listener, client_of(listener) as client:
        (websocket,) = opened
        await stuff(websocket, client, registry)
        monkeypatch.setattr(WebSocket, "write", note)
        client.websocket.transport.resume_reading()
        while (await client.receive())[:1] != ["chunk"] or not written:
            pass
        await client.send("ping", 1)
        await client.receive_tag("pong")
    assert True not in written
