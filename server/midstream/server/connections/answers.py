"""Encoding what the sessions give, whose parts may be encoded already.

A page read from the store holds its messages as they were stored, as raw msgpack. In msgpack they go
out untouched. For JSON the whole is built in msgpack once and then written anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from midstream.protocol.codec import MSGPACK

if TYPE_CHECKING:
    from midstream.protocol.codec import Codec
    from midstream.protocol.errors import ErrorInfo, MidstreamError

SHOWN: Final = 1_000
"""Characters of a text in an error that goes out: a part of it may be a stranger's, and megabytes long."""


def encoded(codec: Codec, value: object) -> bytes:
    """Encode a frame or a result in which :class:`msgspec.Raw` stands for msgpack."""
    data = MSGPACK.encode(value)
    return data if codec is MSGPACK else codec.encode(msgspec.msgpack.decode(data))


def raw(codec: Codec, value: object) -> msgspec.Raw:
    """Encode a result to stand inside a ``result`` frame."""
    return msgspec.Raw(encoded(codec, value))


def error_info(error: MidstreamError) -> ErrorInfo:
    """Return the wire form of an error, long texts in it cut short."""
    info = error.info()
    details = {
        name: _short(value) if isinstance(value, str) else value for name, value in info.details.items()
    }
    return msgspec.structs.replace(info, message=_short(info.message), details=details)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
