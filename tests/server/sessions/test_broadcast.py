"""What was published at one time, encoded once for all who see it alike."""

from __future__ import annotations

import msgspec

from midstream.protocol.calls import Cursor
from midstream.protocol.codec import JSON, MSGPACK
from midstream.protocol.frames import Delta, Skip
from midstream.server.sessions.broadcast import Broadcast

FULL = [Delta(1, 8, 5, 2, 1, "x"), Delta(1, 9, 5, 2, 2, "y")]
HIDDEN = [Skip(1, 7, 8), Skip(1, 8, 9)]
STANDING = "e", 9, 7


def test_each_view_gets_its_own_frames() -> None:
    """Or both the same, where nothing is hidden."""
    one = Broadcast(STANDING, FULL, HIDDEN)
    assert one.frames(include_internal=True) is FULL
    assert one.frames(include_internal=False) is HIDDEN
    both = Broadcast(STANDING, FULL)
    assert both.frames(include_internal=False) is both.frames(include_internal=True) is FULL
    assert both.standing is STANDING
    assert both.cursor == Cursor(epoch="e", version=9, durable=7)


def test_a_frame_is_encoded_once_for_each_codec_and_view() -> None:
    """All who see it alike get the same bytes objects."""
    change = Broadcast(STANDING, FULL, HIDDEN)
    for codec in (MSGPACK, JSON):
        for include_internal in (False, True):
            payloads = change.payloads(codec, include_internal=include_internal)
            assert change.payloads(codec, include_internal=include_internal) is payloads
            frames = [codec.decode_server_frame(payload) for payload in payloads]
            assert frames == (FULL if include_internal else HIDDEN)
    both = Broadcast(STANDING, FULL)
    assert both.payloads(MSGPACK, include_internal=True) is both.payloads(MSGPACK, include_internal=False)
    assert both.payloads(MSGPACK, include_internal=True) == [msgspec.msgpack.encode(one) for one in FULL]


def test_what_is_made_of_it_is_made_once() -> None:
    """The WebSocket messages of a kind of reader: also where there are none, which is an empty one."""
    change = Broadcast(STANDING, FULL)
    made: list[Broadcast] = []

    def make(broadcast: Broadcast) -> bytes:
        made.append(broadcast)
        return b""

    assert [change.message("kind", make) for _ in range(3)] == [b""] * 3
    assert made == [change]
    assert change.message("other", lambda _: b"other") == b"other"
    assert change.message("kind", lambda _: b"again") == b""
