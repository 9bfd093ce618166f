"""The first frame of a client: what stands against it, and its answer (SPEC 4.1). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from midstream.protocol.errors import InvalidRequest, UnknownFrame
from midstream.protocol.frames import Hello, Welcome, WelcomeInfo
from midstream.protocol.limits import PROTOCOL_VERSION, Limits
from midstream.server.connections.auth import Authentication
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.effects import Close

if TYPE_CHECKING:
    from midstream.protocol.codec import Codec
    from midstream.server.connections.standing import Standing


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What all connections of a server have in common."""

    server: str
    """Names the server's software and version in ``welcome``."""
    limits: Limits
    heartbeat_seconds: float
    sync_seconds: float
    authentication: Authentication | None = None
    """Who somebody is; None: everybody is local."""


def read(codec: Codec, data: bytes, limits: Limits, *, draining: bool) -> Hello | Close:
    """Return the ``hello`` of a connection that may go on, or how it ends.

    Raises:
        MalformedFrame: it is no frame.

    """
    limit = limits.hello_bytes
    if len(data) > limit:
        return Close(CloseCode.HELLO_EXPECTED, f"hello has {len(data)} bytes, hello_bytes is {limit}")
    try:
        hello = codec.decode_client_frame(data)
    except (UnknownFrame, InvalidRequest) as error:
        return Close(CloseCode.HELLO_EXPECTED, f"expected hello. {error.message}")
    if not isinstance(hello, Hello):
        return Close(CloseCode.HELLO_EXPECTED, "expected hello as the first frame")
    if hello.version != PROTOCOL_VERSION:
        reason = f"hello asks for version {hello.version}, this server speaks {PROTOCOL_VERSION}"
        return Close(CloseCode.UNSUPPORTED_VERSION, reason)
    if draining:
        return Close(CloseCode.GOING_AWAY, "the server stops; come back later")
    return hello


def welcome(settings: Settings, standing: Standing, wall_ms: int) -> Welcome:
    """Return the answer to one that may go on."""
    caller = standing.caller
    info = WelcomeInfo(
        connection_id=caller.connection_id,
        server=settings.server,
        time=wall_ms,
        heartbeat_ms=round(settings.heartbeat_seconds * 1000),
        limits=settings.limits,
        subject=caller.subject,
        scopes=standing.scopes,
        token_ms=standing.token_ms(wall_ms),
    )
    return Welcome(info)
