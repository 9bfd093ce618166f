"""What comes compressed: as RFC 7692 says, and counted by what it inflates to."""

import tracemalloc
import zlib

import pytest
from websockets.frames import CloseCode as WebSocketCode
from websockets.frames import Opcode

from midstream.protocol.codec import MSGPACK
from midstream.protocol.limits import Limits
from midstream.server.config import Config
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.deflate import Inflating
from tests.server.connections.registry import Notes
from tests.server.connections.serving import serving
from tests.server.connections.wire import deflate, masked, wire_to

MEGABYTE = 1024 * 1024
PING = MSGPACK.encode(["ping", 7])


async def test_a_compressed_frame_is_taken_and_so_is_one_that_is_not() -> None:
    """Clients may compress what they like."""
    async with serving(Notes()) as listener, wire_to(listener) as wire:
        for data in (deflate(PING), PING, deflate(PING)):
            wire.write(masked(data, compressed=data != PING))
            assert (await wire.receive())[:2] == ["pong", 7]


async def test_a_compressed_message_may_come_in_fragments_with_control_frames_between() -> None:
    """RFC 7692, 6.1: the first fragment says that it is compressed; one may be empty."""
    data = deflate(MSGPACK.encode(["ping", 7, "extra " * 50]))
    async with serving(Notes()) as listener, wire_to(listener) as wire:
        for _ in range(2):
            wire.write(masked(data[:3], compressed=True, final=False))
            wire.write(masked(b"are you there", opcode=Opcode.PING))
            wire.write(masked(data[3:10], opcode=Opcode.CONT, final=False))
            wire.write(masked(b"", opcode=Opcode.CONT, final=False))
            wire.write(masked(data[10:], opcode=Opcode.CONT))
            pong = await wire.read()
            assert (pong.opcode, pong.payload) == (Opcode.PONG, b"are you there")
            assert (await wire.receive())[:2] == ["pong", 7]


async def test_blocks_of_all_kinds_are_inflated() -> None:
    """Stored, fixed and dynamic ones; and a message that ends with its last block (RFC 7692, 7.2.3.4)."""
    frame = MSGPACK.encode(["ping", 7, "extra " * 50])
    compressor = zlib.compressobj(0, zlib.DEFLATED, -15)
    as_stored = (compressor.compress(frame) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, strategy=zlib.Z_FIXED)
    fixed = (compressor.compress(frame) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    ended = compressor.compress(frame) + compressor.flush() + b"\x00"
    async with serving(Notes()) as listener, wire_to(listener) as wire:
        for data in (as_stored, fixed, deflate(frame), ended):
            wire.write(masked(data, compressed=True))
            assert (await wire.receive())[:2] == ["pong", 7]


async def test_an_empty_message_is_broken_framing_compressed_or_not() -> None:
    """A compressed one is a single zero byte (RFC 7692, 7.2.3.6)."""
    async with serving(Notes()) as listener:
        for data in (b"", b"\x00"):
            async with wire_to(listener) as wire:
                wire.write(masked(data, compressed=bool(data)))
                error = await wire.receive()
                assert error[:2] == ["error", None]
                assert await wire.closed() == CloseCode.BAD_FRAME


@pytest.mark.parametrize(
    ("offer", "data"),
    [
        ("", masked(deflate(PING), compressed=True)),
        (
            "permessage-deflate",
            masked(deflate(PING)[:2], compressed=True, final=False)
            + masked(deflate(PING)[2:], opcode=Opcode.CONT, compressed=True),
        ),
        ("permessage-deflate", masked(b"\xff\xff\xff\xff", compressed=True)),
        ("permessage-deflate", masked(b"", opcode=Opcode.PING, compressed=True)),
    ],
    ids=["not agreed on", "a later fragment marked", "no deflate", "a control frame"],
)
async def test_what_breaks_the_extension_ends_the_connection(offer: str, data: bytes) -> None:
    """By WebSocket's own code."""
    async with serving(Notes()) as listener, wire_to(listener, offer) as wire:
        wire.write(data)
        assert await wire.closed() == WebSocketCode.PROTOCOL_ERROR


async def test_limits_count_what_a_message_inflates_to() -> None:
    """A little above the limit it gets the error, as an uncompressed one would."""
    config = Config(limits=Limits(frame_bytes=100_000))
    frame = MSGPACK.encode(["call", 1, "nothing", {"text": "x" * 110_000}])
    assert len(deflate(frame)) < 1_000
    async with serving(Notes(), config) as listener, wire_to(listener) as wire:
        wire.write(masked(deflate(frame), compressed=True))
        error = await wire.receive()
        assert error[:2] == ["error", None]
        assert isinstance(error[2], dict)
        assert error[2]["details"] == {"limit": "frame_bytes", "maximum": 100_000, "actual": len(frame)}
        wire.write(masked(deflate(PING), compressed=True))
        assert (await wire.receive())[:2] == ["pong", 7]


@pytest.mark.parametrize("fragments", [1, 2])
async def test_a_message_that_inflates_without_end_is_not_inflated(fragments: int) -> None:
    """A gigabyte in a megabyte: it is given up at the limit, and so is the connection."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = b"".join(compressor.compress(bytes(MEGABYTE)) for _ in range(1024))
    bomb += compressor.flush(zlib.Z_SYNC_FLUSH)[:-4]
    assert len(bomb) < 1.1 * MEGABYTE
    cut = len(bomb) // fragments
    pieces = [masked(bomb[:cut], compressed=True, final=fragments == 1)]
    if fragments > 1:
        pieces.append(masked(bomb[cut:], opcode=Opcode.CONT))
    async with serving(Notes()) as listener, wire_to(listener) as wire, wire_to(listener) as other:
        tracemalloc.start()
        try:
            for piece in pieces:
                wire.write(piece)
            assert await wire.closed() == WebSocketCode.MESSAGE_TOO_BIG
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 16 * MEGABYTE
        other.send("ping", 1)
        assert (await other.receive())[:2] == ["pong", 1]


async def test_many_messages_that_each_inflate_to_the_limit_do_not_wait_together() -> None:
    """Half a gigabyte in half a megabyte, which two reads give: few are inflated ahead, others are served."""
    bomb = masked(deflate(MSGPACK.encode(["shout", "x" * 1_000_000])), compressed=True)
    count = 500
    async with serving(Notes()) as listener, wire_to(listener) as wire, wire_to(listener) as other:
        tracemalloc.start()
        try:
            wire.write(bomb * count)
            other.send("ping", 1)
            assert (await other.receive())[:2] == ["pong", 1]
            for _ in range(count):
                frame = await wire.receive()
                assert isinstance(frame[2], dict)
                assert frame[2]["code"] == "unknown_frame"
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 48 * MEGABYTE
        wire.send("ping", 2)
        assert (await wire.receive())[:2] == ["pong", 2]


async def test_a_client_that_goes_while_its_messages_wait_is_let_go() -> None:
    """What was read and not parsed is lost with the connection."""
    bomb = masked(deflate(MSGPACK.encode(["shout", "x" * 1_000_000])), compressed=True)
    async with serving(Notes()) as listener:
        async with wire_to(listener) as wire:
            wire.write(bomb * 100)
            assert (await wire.receive())[0] == "error"
        async with wire_to(listener) as wire:
            wire.send("ping", 1)
            assert (await wire.receive())[:2] == ["pong", 1]


async def test_no_window_lives_between_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle connection has neither a compressor nor a decompressor."""
    made: list[Inflating] = []

    def noted(self: Inflating) -> None:
        made.append(self)

    monkeypatch.setattr(Inflating, "__init__", noted)
    async with serving(Notes(at_once=True)) as listener, wire_to(listener) as wire:
        wire.write(masked(deflate(PING), compressed=True))
        assert (await wire.receive())[:2] == ["pong", 7]
    (one,) = made
    assert not {"decoder", "encoder"} & vars(one).keys()
