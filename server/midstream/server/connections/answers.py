"""Encoding what the sessions give, whose parts may be encoded already.

A page read from the store holds its messages as they were stored, as raw msgpack. In msgpack they go
out untouched. For JSON the whole is built in msgpack once and then written anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from midstream.protocol.codec import MSGPACK

if TYPE_CHECKING:
    from midstream.protocol.codec import Codec


def encoded(codec: Codec, value: object) -> bytes:
    """Encode a frame or a result in which :class:`msgspec.Raw` stands for msgpack."""
    data = MSGPACK.encode(value)
    return data if codec is MSGPACK else codec.encode(msgspec.msgpack.decode(data))


def raw(codec: Codec, value: object) -> msgspec.Raw:
    """Encode a result to stand inside a ``result`` frame."""
    return msgspec.Raw(encoded(codec, value))
