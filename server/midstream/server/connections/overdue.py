"""What ends a connection because something has not come, or gone, in time (SPEC 6, 10.6, 11.3). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.server.connections.closing import CloseCode
from midstream.server.connections.effects import Abort, Close

if TYPE_CHECKING:
    from midstream.server.connections.heartbeat import Heartbeat
    from midstream.server.connections.standing import Standing
    from midstream.server.connections.subscriptions import Subscriptions


def overdue(
    now: float,
    heartbeat: Heartbeat,
    standing: Standing,
    subscriptions: Subscriptions,
    *,
    sync_seconds: float,
) -> Close | Abort | None:
    """Return how an open connection ends, if it does."""
    if now >= standing.over_at:
        return Close(CloseCode.TOKEN_EXPIRED, "the token has expired; come back with a new one")
    if heartbeat.lost(now):
        return Abort(CloseCode.HEARTBEAT_LOST, "not one byte came for two heartbeats")
    if heartbeat.stalled(now):
        return Abort(CloseCode.OVERLOADED, "not one byte could be sent for a heartbeat")
    if now >= subscriptions.overdue_at(now):
        return Abort(CloseCode.OVERLOADED, f"a sync has been owed for {sync_seconds:g} s")
    return None
