"""Encoding what the sessions give, whose parts may be encoded already.

A page read from the store holds its messages as they were stored, as raw msgpack. In msgpack they go
out untouched. For JSON the whole is built in msgpack once and then written anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from midstream.protocol.calls import SubscribeResult
from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Sync
from midstream.server.sessions.sharing import SharedFrame
from midstream.server.sessions.shelf import SharedSync

if TYPE_CHECKING:
    from midstream.protocol.codec import Codec
    from midstream.protocol.errors import ErrorInfo, MidstreamError
    from midstream.protocol.frames import SyncPayload

SHOWN: Final = 1_000
"""Characters of a text in an error that goes out: a part of it may be a stranger's, and megabytes long."""


def encoded(codec: Codec, value: object) -> bytes:
    """Encode a frame or a result in which :class:`msgspec.Raw` stands for msgpack."""
    data = MSGPACK.encode(value)
    return data if codec is MSGPACK else codec.encode(msgspec.msgpack.decode(data))


def result_frame(codec: Codec, call_id: int, value: object) -> bytes:
    """Encode the ``result`` frame that answers a call; once for all who get the same sync under one id."""
    if not (isinstance(value, SubscribeResult) and isinstance(value.sync, SharedSync)):
        return encoded(codec, ("result", call_id, value))
    channel, sync = value.channel, value.sync

    def make() -> bytes:
        result = {"channel": channel, "sync": _sync(codec, sync)}
        return SharedFrame.of(codec.encode(("result", call_id, result)), sync.forms, codec.name, "result")

    return sync.once((codec.name, call_id), make)


def sync_frame(codec: Codec, channel: int, payload: SyncPayload) -> bytes:
    """Encode a ``sync`` frame; once for all who get the same one."""
    if not isinstance(payload, SharedSync):
        return encoded(codec, Sync(channel, payload))

    def make() -> bytes:
        data = codec.encode(("sync", channel, _sync(codec, payload)))
        return SharedFrame.of(data, payload.forms, codec.name, "sync")

    return payload.once((codec.name, "sync"), make)


def _sync(codec: Codec, sync: SharedSync) -> msgspec.Raw:
    return msgspec.Raw(sync.once(codec.name, lambda: encoded(codec, sync)))


def error_info(error: MidstreamError) -> ErrorInfo:
    """Return the wire form of an error, long texts in it cut short."""
    info = error.info()
    details = {
        name: _short(value) if isinstance(value, str) else value for name, value in info.details.items()
    }
    return msgspec.structs.replace(info, message=_short(info.message), details=details)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
