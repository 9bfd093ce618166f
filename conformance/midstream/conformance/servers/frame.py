"""A frame as it came: as plain values, and as the protocol's own Struct where it is one that is known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import msgspec

from midstream.conformance.outcome import Failed
from midstream.protocol.codec import Codec
from midstream.protocol.errors import MidstreamError
from midstream.protocol.frames import ServerFrame

Map: TypeAlias = dict[str, Any]
Plain: TypeAlias = list[Any]
SHOWN = 400
"""Characters of a frame that a log shows."""


@dataclass(frozen=True)
class Frame:
    """One frame of the server. ``typed`` is None where its tag is not of this version."""

    plain: Plain
    typed: ServerFrame | None

    @property
    def tag(self) -> str:
        """Its tag; ``short`` for the one that has none."""
        return self.plain[0] if isinstance(self.plain[0], str) else "short"


def read(data: bytes, codec: Codec) -> Frame:
    """Decode what a server sent.

    Raises:
        Failed: it is no frame, or one of a known tag that cannot be read.

    """
    try:
        typed = codec.decode_server_frame(data)
        plain = decode(data, codec)
    except (MidstreamError, msgspec.DecodeError) as error:
        raise Failed(
            "the server sent a frame that cannot be read",
            expected="a frame of SPEC 3.9",
            seen=f"{error}: {data[:SHOWN]!r}",
        ) from error
    return Frame(cast("Plain", plain), typed)


def decode(data: bytes, codec: Codec) -> object:
    """Decode a message as plain values."""
    return msgspec.msgpack.decode(data) if codec.binary else msgspec.json.decode(data)


def short(frame: object) -> str:
    """Return a frame as one line of a log."""
    text = json.dumps(frame, default=repr, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
