"""What a connection's decisions ask the outside to do. Frames are no effects: they are in the outbox."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from midstream.protocol.frames import Call
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.subscription import Subscription


class Dispatch(msgspec.Struct, frozen=True):
    """Decode the params of this call and send it where it belongs."""

    call: Call


class Resync(msgspec.Struct, frozen=True):
    """Ask the session for the sync that this subscription is owed."""

    subscription: Subscription


class Leave(msgspec.Struct, frozen=True):
    """Tell the session that this subscription is over."""

    subscription: Subscription


class Close(msgspec.Struct, frozen=True):
    """Send what waits, as far as the peer takes it, then close with this code."""

    code: CloseCode
    reason: str


class Abort(msgspec.Struct, frozen=True):
    """Cut the transport: the peer would not take part in a closing handshake."""

    code: CloseCode
    reason: str


Effect: TypeAlias = Dispatch | Resync | Leave | Close | Abort
