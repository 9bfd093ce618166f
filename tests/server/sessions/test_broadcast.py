"""One change, encoded once for all who see it alike."""

from __future__ import annotations

import msgspec

from midstream.protocol.codec import JSON, MSGPACK
from midstream.protocol.frames import Delta, SessionFrame, Skip
from midstream.server.sessions.broadcast import Broadcast

FULL = Delta(1, 9, 5, 2, 1, "x")
HIDDEN = Skip(1, 8, 9)


def broadcast(visible: SessionFrame | None = None) -> Broadcast:
    """A change at version 9."""
    return Broadcast(version=9, durable=7, epoch="e", full=FULL, visible=visible)


def test_each_view_gets_its_own_frame() -> None:
    """Or both the same, where nothing is hidden."""
    one = broadcast(HIDDEN)
    assert one.frame(include_internal=True) is FULL
    assert one.frame(include_internal=False) is HIDDEN
    both = broadcast()
    assert both.frame(include_internal=False) is both.frame(include_internal=True) is FULL
    assert (one.version, one.durable, one.epoch) == (9, 7, "e")


def test_a_frame_is_encoded_once_for_each_codec_and_view() -> None:
    """All who see it alike get the same bytes object."""
    change = broadcast(HIDDEN)
    for codec in (MSGPACK, JSON):
        for include_internal in (False, True):
            payload = change.payload(codec, include_internal=include_internal)
            assert change.payload(codec, include_internal=include_internal) is payload
            assert codec.decode_server_frame(payload) == (FULL if include_internal else HIDDEN)
    both = broadcast()
    assert both.payload(MSGPACK, include_internal=True) is both.payload(MSGPACK, include_internal=False)
    assert both.payload(MSGPACK, include_internal=True) == msgspec.msgpack.encode(FULL)


def test_what_is_made_of_it_is_made_once() -> None:
    """A websocket frame, say: by its key."""
    change = broadcast()
    made: list[str] = []

    def make() -> bytes:
        made.append("made")
        return b"made"

    assert [change.once("key", make) for _ in range(3)] == [b"made"] * 3
    assert made == ["made"]
    assert change.once("other", lambda: b"other") == b"other"
