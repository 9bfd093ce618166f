"""What these tests share: an outbox without WebSocket framing, and the client's end of it."""

from collections.abc import Callable

import msgspec

from midstream.protocol.chunks import ChunkAssembler
from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.frames import (
    Change,
    ChangeContent,
    Chunk,
    Delta,
    ServerFrame,
    SessionFrame,
    SyncPayload,
)
from midstream.server.connections.backlog import Backlog
from midstream.server.connections.outbox import Outbox
from midstream.server.sessions.broadcast import Broadcast

EPOCH = "00000000000000e1"
CHANNEL = 3

Frame = list[object]


def nothing(rest: bytes) -> None:
    """Write nothing: nothing passes an outbox by that has no socket."""


def outbox_of(
    codec: Codec = MSGPACK,
    *,
    chunk: int = 1_024,
    mark: int = 4_096,
    wake: Callable[[], None] = lambda: None,
) -> Outbox:
    """Return an outbox whose messages are the encoded frames themselves."""
    return Outbox(
        codec,
        seal=lambda payload: payload,
        wake=wake,
        spill=nothing,
        chunk_bytes=chunk,
        backlog=Backlog(mark, 2**40),
    )


def plain(codec: Codec, message: bytes) -> Frame:
    """Decode a message as a plain array."""
    decode: Callable[[bytes], Frame] = msgspec.msgpack.decode if codec is MSGPACK else msgspec.json.decode
    return decode(message)


def joined(codec: Codec, messages: list[bytes]) -> list[bytes]:
    """Return the encoded frames of messages, chunks joined, as a client joins them."""
    assembler = ChunkAssembler(10**9, codec)
    frames: list[bytes] = []
    for message in messages:
        frame = plain(codec, message)
        if frame[0] == "chunk":
            whole = assembler.feed(msgspec.convert(frame, Chunk))
            if whole is not None:
                frames.append(whole)
        else:
            frames.append(message)
    return frames


def read(outbox: Outbox, max_bytes: int = 10**9) -> list[ServerFrame]:
    """Take what waits, and return it as frames."""
    frames = [outbox.codec.decode_server_frame(data) for data in joined(outbox.codec, outbox.take(max_bytes))]
    return [frame for frame in frames if frame is not None]


def delta(version: int, text: str = "text", *, visible: SessionFrame | None = None) -> Broadcast:
    """Return the broadcast of one delta."""
    frame = Delta(CHANNEL, version, 10, 1, 1, text)
    return Broadcast((EPOCH, version, 0), [frame], None if visible is None else [visible])


def commit(version: int) -> Broadcast:
    """Return the broadcast of one durable change."""
    frame = Change(CHANNEL, version, True, ChangeContent())  # noqa: FBT003 - the frame's order
    return Broadcast((EPOCH, version, version), [frame])


def sync(version: int, *, since: int = 0, epoch: str = EPOCH) -> SyncPayload:
    """Return a sync up to a version."""
    return SyncPayload(mode="replay", from_version=since, epoch=epoch, version=version, durable=since)
