"""What a connection's decisions ask the outside to do. Frames are no effects: they are in the outbox."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from midstream.protocol.frames import Call, WorkerFrame
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.subscription import Subscription
from midstream.server.connections.worker import Worker
from midstream.server.sessions.commands import BadWrite, Caller, Watcher


class Dispatch(msgspec.Struct, frozen=True):
    """Decode the params of this call and send it where it belongs."""

    call: Call


class Work(msgspec.Struct, frozen=True):
    """Give this frame, of so many bytes, to the attachment that it is for."""

    worker: Worker
    frame: WorkerFrame | BadWrite
    size: int


class WorkerGone(msgspec.Struct, frozen=True):
    """Tell the turns that this worker holds, and those who offer, that it is gone."""

    worker: Worker


class Resync(msgspec.Struct, frozen=True):
    """Ask the session for the sync that this subscription is owed."""

    subscription: Subscription


class Leave(msgspec.Struct, frozen=True):
    """Tell the session that this subscription is over."""

    subscription: Subscription


class Weigh(msgspec.Struct, frozen=True):
    """Weigh the rights of this connection again, which it had as this caller."""

    before: Caller


class WatchBegins(msgspec.Struct, frozen=True):
    """Tell this watch what becomes of sessions from now on: its answer is in the outbox."""

    watcher: Watcher


class WatchEnds(msgspec.Struct, frozen=True):
    """Tell this watch nothing any more."""

    watcher: Watcher


class Close(msgspec.Struct, frozen=True):
    """Send what waits, as far as the peer takes it, then close with this code."""

    code: CloseCode
    reason: str


class Abort(msgspec.Struct, frozen=True):
    """Cut the transport: the peer would not take part in a closing handshake."""

    code: CloseCode
    reason: str


Effect: TypeAlias = (
    Dispatch | Work | WorkerGone | Resync | Leave | Weigh | WatchBegins | WatchEnds | Close | Abort
)
