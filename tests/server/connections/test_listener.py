"""Laws of the listener, over real sockets."""

import asyncio

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import Delta
from midstream.protocol.limits import Limits
from midstream.server.clock import SystemClock
from midstream.server.config import Config, ConfigError
from midstream.server.connections import express
from midstream.server.connections.listener import listen
from midstream.server.connections.websocket import WebSocket
from midstream.server.ids import RandomIds
from tests.server.connections.readers import CHANNEL, EPOCH, joined, plain
from tests.server.connections.registry import Notes
from tests.server.connections.serving import client_of, serving

both_codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])


@both_codecs
async def test_a_client_that_says_hello_is_welcome_and_its_calls_are_answered(codec: Codec) -> None:
    """The whole way there and back, in both encodings."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener, codec, hello=False) as client:
        tag, info = await client.hello()
        assert tag == "welcome"
        assert isinstance(info, dict)
        assert info["heartbeat_ms"] == 15_000
        await client.send("ping", 5)
        assert (await client.receive())[:2] == ["pong", 5]
        await client.send("call", 1, "turn", {"session_id": "s1"})
        assert await client.receive() == ["result", 1, {}]


@both_codecs
async def test_a_subscriber_gets_what_is_published_behind_its_answer(codec: Codec) -> None:
    """First the result, then each broadcast, in order."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener, codec) as client:
        await client.send("call", 1, "subscribe", {"session_id": "s1"})
        await registry.until_posted(1)
        for text in ("Hé", "llo", '"𝄞"'):
            registry.publish("s1", text)
        frames = [await client.receive() for _ in range(4)]
        assert frames[0][:2] == ["result", 1]
        assert [frame[-1] for frame in frames[1:]] == ["Hé", "llo", '"𝄞"']


class Writes:
    """Counts what is written to WebSockets, by the way it goes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offered: list[int] = []
        """The bytes of each."""
        self.written: list[int] = []
        """The messages of each."""
        past, write = express.write, WebSocket.write

        def offered(descriptor: int, message: bytes) -> int:
            self.offered.append(len(message))
            return past(descriptor, message)

        def written(websocket: WebSocket, messages: list[bytes]) -> None:
            self.written.append(len(messages))
            write(websocket, messages)

        monkeypatch.setattr(express, "write", offered)
        monkeypatch.setattr(WebSocket, "write", written)

    def forget(self) -> None:
        """Begin to count."""
        self.offered.clear()
        self.written.clear()


async def test_what_is_published_together_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand deltas leave together, past asyncio's transport: joined writes make fan-out cheap."""
    registry, writes = Notes(at_once=True), Writes(monkeypatch)
    async with serving(registry) as listener, client_of(listener) as client:
        await client.send("call", 1, "subscribe", {"session_id": "s1"})
        await client.receive_tag("result")
        writes.forget()
        registry.publish("s1", *map(str, range(1_000)))
        assert [(await client.receive())[-1] for _ in range(1_000)] == [str(n) for n in range(1_000)]
        if isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop):
            assert (len(writes.offered), writes.written) == (1, [])
        else:  # uvloop closes descriptors too early, and joins writes by itself
            assert (writes.offered, writes.written) == ([], [1])


async def test_what_several_sessions_say_in_one_turn_of_the_loop_is_one_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that follows many sessions waits for the end of the turn, and pays once."""
    registry, writes = Notes(at_once=True), Writes(monkeypatch)
    async with serving(registry) as listener, client_of(listener) as client:
        for number in (1, 2):
            await client.send("call", number, "subscribe", {"session_id": f"s{number}"})
            await client.receive_tag("result")
        writes.forget()
        for number in range(100):
            registry.publish(f"s{1 + number % 2}", str(number))
        assert {(await client.receive())[-1] for _ in range(100)} == {str(n) for n in range(100)}
        assert (writes.offered, writes.written) == ([], [100])


@both_codecs
async def test_a_long_frame_arrives_whole_in_chunks_and_lets_a_pong_pass(codec: Codec) -> None:
    """5 MB of one session stand in no other frame's way."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener, codec) as client:
        await client.send("call", 1, "subscribe", {"session_id": "s1"})
        await client.receive_tag("result")
        registry.publish("s1", "é" * 2_500_000)
        await client.send("ping", 1)
        messages, tags = list[bytes](), list[object]()
        while not (tags and tags[-1] == "last chunk"):
            message = await client.websocket.recv()
            messages.append(message.encode() if isinstance(message, str) else message)
            frame = plain(codec, messages[-1])
            tags.append("last chunk" if frame[0] == "chunk" and frame[2] else frame[0])
        assert "pong" in tags
        assert len(messages) > 5_000_000 / 64 / 1024
        whole = [codec.decode_server_frame(data) for data in joined(codec, messages)]
        assert whole[-1] == Delta(CHANNEL, 11, 0, 1, 1, "é" * 2_500_000)


async def test_a_lost_connection_lets_its_sessions_go() -> None:
    """However it went, the session forgets the subscriber, and the server the connection."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener:
        async with client_of(listener) as client:
            await client.send("call", 1, "subscribe", {"session_id": "s1"})
            await client.receive_tag("result")
            assert listener.connections == 1
            client.websocket.transport.abort()
        await registry.until_left(1)
        assert registry.subscribers["s1"] == []


async def test_an_answer_for_a_client_that_is_gone_is_dropped() -> None:
    """The session finishes its work; its subscriber is let go."""
    registry = Notes()
    async with serving(registry) as listener:
        async with client_of(listener) as client:
            await client.send("call", 1, "subscribe", {"session_id": "s1"})
            command = await registry.until_posted(1)
        await registry.until_left(1)
        registry.answer(command)
        await registry.until_left(2)
        assert registry.subscribers["s1"] == []


async def test_a_client_without_hello_is_closed() -> None:
    """By its own code, in the time that the limits give."""
    limits = Limits(hello_seconds=1)
    async with (
        serving(Notes(), Config(limits=limits)) as listener,
        client_of(listener, hello=False) as client,
    ):
        code, reason = await client.closed()
        assert code == 4005
        assert "hello" in str(reason)


async def test_a_silent_client_is_asked_and_a_silent_server_is_not_possible() -> None:
    """At each heartbeat of silence a ping comes, and a client that answers stays."""
    async with serving(Notes(), Config(heartbeat_ms=250)) as listener, client_of(listener) as client:
        for number in range(1, 4):
            frame = await client.receive_tag("ping")
            assert frame == ["ping", number]
            await client.send("pong", number, 0)


async def test_a_client_that_never_answers_is_cut() -> None:
    """After two heartbeats, with or without the close frame: its code comes back."""
    async with serving(Notes(), Config(heartbeat_ms=50)) as listener, client_of(listener) as client:
        code, _ = await client.closed()
        assert code in {4001, 1006}


async def test_marks_follow_at_each_heartbeat() -> None:
    """The client learns of a lost last frame."""
    registry = Notes(at_once=True)
    async with serving(registry, Config(heartbeat_ms=100)) as listener, client_of(listener) as client:
        await client.send("call", 1, "subscribe", {"session_id": "s1"})
        await client.receive_tag("result")
        registry.publish("s1", "text")
        assert (await client.receive_tag("mark")) == ["mark", CHANNEL, 11]


async def test_a_paced_subscription_gets_syncs_at_its_pace() -> None:
    """Many deltas in a beat are one sync."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener) as client:
        await client.send("call", 1, "subscribe", {"session_id": "s1", "pace_ms": 20})
        await client.receive_tag("result")
        for _ in range(100):
            registry.publish("s1", "text")
        tag, channel, payload = await client.receive()
        assert (tag, channel) == ("sync", CHANNEL)
        assert isinstance(payload, dict)
        assert (payload["from"], payload["version"], payload["epoch"]) == (10, 110, EPOCH)


async def test_a_subject_has_only_so_many_connections() -> None:
    """One more is closed with a code that does not come back; when one is gone there is room again."""
    config = Config(limits=Limits(connections_per_subject=1))
    async with serving(Notes(), config) as listener:
        async with client_of(listener), client_of(listener, hello=False) as second:
            await second.send("hello", 1, None, {})
            assert (await second.closed())[0] == 4006
        async with client_of(listener):
            pass


async def test_draining_sends_everyone_away_at_another_time_and_then_closes() -> None:
    """Each client is told another delay; who does not go is closed with a code that comes back."""
    async with serving(Notes()) as listener:
        async with (
            client_of(listener) as first,
            client_of(listener) as second,
            client_of(listener, hello=False) as late,
        ):
            draining = asyncio.ensure_future(listener.drain(0.2))
            delays = set[object]()
            for client in (first, second):
                tag, reason, delay = await client.receive()
                assert (tag, reason) == ("goaway", "draining")
                delays.add(delay)
            assert len(delays) == 2
            await late.send("hello", 1, None, {})
            assert (await late.closed())[0] == 4000
            assert (await first.closed())[0] == 4000
            assert (await second.closed())[0] == 4000
            await draining
        assert listener.connections == 0


async def test_leaving_the_listener_closes_what_is_open() -> None:
    """Also a TCP connection that never sent a request, at once."""
    async with serving(Notes()) as listener:
        reader, writer = await asyncio.open_connection(listener.host, listener.port)
        entered = client_of(listener)
        client = await entered.__aenter__()
        closed = asyncio.ensure_future(client.closed())
    assert (await closed)[0] == 4000
    assert await reader.read() == b""
    writer.close()
    await entered.__aexit__(None, None, None)


async def test_a_taken_port_is_an_error_that_says_what_to_do() -> None:
    """The second server on a port names the port."""
    async with serving(Notes()) as listener:
        config = Config(port=listener.port)
        with pytest.raises(ConfigError, match=f"port {listener.port} is taken"):
            async with listen(config, Notes(), None, SystemClock(), RandomIds()):
                pass


async def test_it_listens_on_the_other_loopback_too() -> None:
    """IPv6, and the name."""
    for host in ("::1", "localhost"):
        async with serving(Notes(), Config(host=host)) as listener, client_of(listener) as client:
            await client.send("ping", 1)
            assert (await client.receive())[:2] == ["pong", 1]


async def test_a_client_that_offers_no_subprotocol_is_told_which_there_are() -> None:
    """The HTTP answer names them."""
    async with serving(Notes()) as listener:
        with pytest.raises(InvalidStatus) as caught:
            async with connect(f"ws://{listener.host}:{listener.port}", proxy=None):
                pass
        assert caught.value.response.status_code == 400
        assert b"midstream.v1.msgpack or midstream.v1.json" in caught.value.response.body
