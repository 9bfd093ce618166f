"""How the kit opens WebSockets."""

from __future__ import annotations

from typing import Any, cast

from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 8.0
"""Seconds for which an answer, or a frame that must come, is waited for."""


async def open_socket(
    url: str,
    subprotocols: list[str],
    *,
    seconds: float = PATIENCE,
    **more: Any,  # noqa: ANN401 - of websockets
) -> ClientConnection:
    """Open a WebSocket as the kit wants it: nothing is sent by itself, and nothing is too long."""
    return await connect(
        url,
        subprotocols=cast("Any", subprotocols),
        compression=more.pop("compression", None),
        max_size=None,
        ping_interval=None,
        close_timeout=1,
        open_timeout=seconds,
        proxy=None,
        **more,
    )
