"""Laws of compression (SPEC 3.1, RFC 7692): the same frames, compressed once for all, above 1 KiB alone."""

import random
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from midstream.protocol.calls import SubscribeResult
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.server.config import Config
from midstream.server.connections import deflate
from midstream.server.connections.answers import result_frame, sync_frame
from midstream.server.connections.backlog import Backlog
from midstream.server.connections.deflate import LEAST_BYTES, deflating_sealer
from midstream.server.connections.outbox import Outbox
from midstream.server.sessions.sharing import Forms, SharedFrame
from midstream.server.sessions.shelf import SharedSync
from tests.server.connections.readers import CHANNEL, Frame, joined, nothing, plain
from tests.server.connections.registry import Notes
from tests.server.connections.serving import Client, client_of, serving
from tests.server.connections.wire import wire_to
from tests.simulation.frames import FrameSplitter, WireFrame, content, is_compressed

CODECS = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])
WITHOUT_CONTEXT = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"


def words(length: int, seed: int = 1) -> str:
    """Return text that compresses as people's does, more or less."""
    rng = random.Random(seed)  # for text, not for secrets
    known = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(300)]
    return " ".join(rng.choices(known, k=length // 3))[:length]


def noise(length: int) -> str:
    """Return text that compresses badly: each code point is one of sixty thousand."""
    rng = random.Random(2)
    return "".join(chr(rng.randrange(0x20000, 0x2FFFF)) for _ in range(length // 4))


@pytest.fixture
def compressions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the lengths of what the server compressed, one for each time."""
    lengths: list[int] = []

    def counted(data: bytes, *, do: Callable[[bytes], bytes] = deflate.deflated) -> bytes:
        lengths.append(len(data))
        return do(data)

    monkeypatch.setattr(deflate, "deflated", counted)
    deflating_sealer.cache_clear()  # it remembers the last that it sealed
    return lengths


def frames_in(data: bytes) -> list[WireFrame]:
    """Return the WebSocket frames in a server's bytes."""
    return FrameSplitter().feed(b"\r\n\r\n" + data)[1]


# What is agreed on


@pytest.mark.parametrize(
    ("offer", "accepted"),
    [
        ("", None),
        ("permessage-deflate", WITHOUT_CONTEXT),
        ("permessage-deflate; client_max_window_bits", WITHOUT_CONTEXT),
        ("permessage-deflate; server_max_window_bits=15", f"{WITHOUT_CONTEXT}; server_max_window_bits=15"),
        ("permessage-deflate; server_max_window_bits=10", None),
        ("permessage-deflate; server_max_window_bits=10, permessage-deflate", WITHOUT_CONTEXT),
        ("permessage-deflate; client_max_window_bits=10", f"{WITHOUT_CONTEXT}; client_max_window_bits=10"),
        ("permessage-deflate; strength=9", None),
        ("x-webkit-deflate-frame", None),
    ],
)
async def test_an_offer_is_accepted_without_context_in_either_direction(
    offer: str, accepted: str | None
) -> None:
    """One that would need messages of its own is not; then all goes as it is."""
    async with serving(Notes()) as listener, wire_to(listener, offer) as wire:
        assert wire.accepted == accepted


async def test_a_server_may_be_told_not_to_compress() -> None:
    """The setting `compression`."""
    async with serving(Notes(), Config(compression=False)) as listener, wire_to(listener) as wire:
        assert wire.accepted is None


# What goes out


async def test_a_frame_above_1_kib_is_compressed_and_no_shorter_one() -> None:
    """RSV1 says which."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, wire_to(listener) as wire, wire_to(listener, "") as bare:
        for each in (wire, bare):
            each.send("call", 1, "subscribe", {"session_id": "s1"})
            assert (await each.receive())[0] == "result"
        for text in ("hi", words(500), words(1_000), words(1_100), words(50_000)):
            registry.publish("s1", text)
            short, whole = await wire.read(), await bare.read()
            assert not is_compressed(whole)
            assert content(short) == whole.payload
            shrinks = len(whole.payload) > LEAST_BYTES
            assert is_compressed(short) is shrinks
            assert (len(short.raw) < len(whole.raw)) is shrinks


@CODECS
async def test_a_client_gets_the_same_frames_with_and_without_compression(codec: Codec) -> None:
    """Short ones, long ones, ones in chunks, and answers; read by a client that is not ours."""
    registry = Notes(at_once=True)
    texts = ["", "a", words(3_000), words(70_000), noise(200_000), words(400_000), "z"]
    async with AsyncExitStack() as stack:
        listener = await stack.enter_async_context(serving(registry))
        bare = await stack.enter_async_context(client_of(listener, codec))
        async with connect(
            f"ws://{listener.host}:{listener.port}/",
            subprotocols=[Subprotocol(codec.subprotocol)],
            compression="deflate",
            max_size=None,
            proxy=None,
            ping_interval=None,
        ) as websocket:
            assert websocket.protocol.extensions
            client = Client(websocket, codec)
            assert (await client.hello())[0] == "welcome"
            seen: list[list[Frame]] = []
            for each in (bare, client):
                await each.send("call", 1, "subscribe", {"session_id": "s1"})
                assert (await each.receive())[0] == "result"
            for text in texts:
                registry.publish("s1", text, text[:10])
            for each in (bare, client):
                messages: list[bytes] = []
                while not messages or plain(codec, messages[-1])[2] != registry.version:
                    message = await each.websocket.recv()
                    messages.append(message.encode() if isinstance(message, str) else message)
                seen.append([plain(codec, frame) for frame in joined(codec, messages)])
    assert seen[0] == seen[1]
    assert [frame[6] for frame in seen[0]] == [part for text in texts for part in (text, text[:10])]


@pytest.mark.parametrize("length", [2_000, 200_000])
async def test_a_long_change_is_compressed_once_for_a_hundred_subscribers(
    compressions: list[int], length: int
) -> None:
    """In one message or in chunks, which each connection numbers by itself."""
    registry = Notes(at_once=True)
    text = words(length)
    async with serving(registry) as listener, AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(wire_to(listener)) for _ in range(100)]
        for index, wire in enumerate(wires):
            # who reads one session is written to past the outbox, who reads two is not
            for session_id in ["s1", "s2"][: 1 + index % 2]:
                wire.send("call", 1, "subscribe", {"session_id": session_id})
                assert (await wire.receive())[0] == "result"
        compressions.clear()
        registry.publish("s1", text)
        for wire in wires:
            pieces: list[bytes] = []
            while not joined(MSGPACK, pieces):
                frame = await wire.read()
                assert is_compressed(frame)
                pieces.append(content(frame))
            assert plain(MSGPACK, joined(MSGPACK, pieces)[0])[6] == text
    chunks = -(-length // (64 * 1024 - 32)) if length > 64 * 1024 else 1
    assert len(compressions) == chunks
    assert sum(compressions) <= length + 1_000


async def test_a_signal_that_many_are_told_of_is_compressed_once(compressions: list[int]) -> None:
    """And so is whatever else is sealed several times in a row."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(wire_to(listener)) for _ in range(10)]
        for wire in wires:
            wire.send("call", 1, "subscribe", {"session_id": "s1"})
            assert (await wire.receive())[0] == "result"
        compressions.clear()
        for subscriber in registry.subscribers["s1"]:
            subscriber.signal("somebody", "drawing", words(3_000))
        assert [(await wire.receive())[4] for wire in wires] == [words(3_000)] * 10
    assert len(compressions) == 1


def outbox_for(codec: Codec) -> Outbox:
    """Return the outbox of a connection that compresses."""
    return Outbox(
        codec,
        seal=deflating_sealer(codec),
        deflates=True,
        wake=lambda: None,
        spill=nothing,
        chunk_bytes=64 * 1024,
        backlog=Backlog(2**20, 2**40),
    )


@CODECS
def test_a_sync_is_compressed_once_for_all_who_come_back(codec: Codec, compressions: list[int]) -> None:
    """Whatever the ids of their calls and the numbers of their chunks are: what is shared comes after."""
    sync = SharedSync(mode="reset", epoch=words(200_000), version=9, has_more=False)
    counts: list[int] = []
    for reader in range(100):
        outbox = outbox_for(codec)
        for _ in range(reader * 7):
            outbox.put("", b"x" * (64 * 1024 + 1))  # takes numbers of chunks
            outbox.take(10**9)
        compressions.clear()
        outbox.put("s1", result_frame(codec, 300 + reader, SubscribeResult(channel=CHANNEL, sync=sync)))
        outbox.put("s1", sync_frame(codec, CHANNEL, sync))
        messages = outbox.take(10**9)
        counts.append(len(compressions))
        assert sum(map(len, messages)) < 0.5 * 2 * 200_000
        frames = joined(codec, [content(frame) for frame in frames_in(b"".join(messages))])
        result, alone = (plain(codec, frame) for frame in frames)
        assert result[:2] == ["result", 300 + reader]
        assert result[2] == {"channel": CHANNEL, "sync": alone[2]}
    assert counts[0] > 0
    assert not any(counts[1:])


@CODECS
def test_what_does_not_become_shorter_goes_as_it_is(codec: Codec) -> None:
    """Shared or not."""
    random_bytes = random.Random(3).randbytes(5_000)
    for payload in (random_bytes, SharedFrame.of(random_bytes, Forms(10_000))):
        (frame,) = frames_in(deflating_sealer(codec)(payload))
        assert not is_compressed(frame)
        assert frame.payload == random_bytes


def test_what_is_kept_compressed_of_a_sync_is_bounded() -> None:
    """Ids of many lengths cut it into other chunks; all that is made of it counts in what the shelf keeps."""
    sync = SharedSync(mode="reset", epoch=noise(200_000), version=9, has_more=False)
    for digits in range(1, 16):
        outbox = outbox_for(JSON)
        outbox.put("s1", result_frame(JSON, 10**digits, SubscribeResult(channel=CHANNEL, sync=sync)))
        outbox.take(10**9)
        assert sync.forms.size <= sync.forms.max_bytes
    assert sync.forms.max_bytes < sync.size


@CODECS
@given(
    payload=st.one_of(
        st.binary(max_size=5_000),
        st.binary(min_size=1, max_size=300).map(lambda piece: piece * 100),
    ),
    beginnings=st.lists(st.binary(max_size=100), min_size=1, max_size=4),
)
def test_every_sealed_message_inflates_to_its_frame(
    codec: Codec, payload: bytes, beginnings: list[bytes]
) -> None:
    """By itself, with nothing known of those before it; shared or not."""
    seal, forms = deflating_sealer(codec), Forms(10_000)
    frames = [SharedFrame.of(beginning + payload, forms) for beginning in beginnings]
    messages = [seal(each) for each in (payload, payload, *frames)]
    assert [content(frame) for frame in frames_in(b"".join(messages))] == [payload, payload, *frames]
