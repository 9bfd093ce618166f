"""Why the server ends a connection, as codes of the WebSocket close frame (SPEC 3.6).

4000 to 4499: the client comes back, by its own backoff. 4500 to 4999: it does not, because the same
would happen again.
"""

from __future__ import annotations

from enum import IntEnum


class CloseCode(IntEnum):
    """The codes of SPEC 11.3. ``UNAVAILABLE`` waits for what will send it."""

    GOING_AWAY = 4000
    """The server drains; ``goaway`` said when to come back."""
    HEARTBEAT_LOST = 4001
    """Not one byte came for two heartbeats."""
    OVERLOADED = 4002
    """The peer does not read what is sent to it, or asks for more than it reads."""
    INTERNAL = 4003
    """The server failed; its log says how."""
    UNAVAILABLE = 4004
    """The server cannot serve now."""
    HELLO_TIMEOUT = 4005
    """No ``hello`` came within ``hello_seconds``: a slow link, or a machine that slept."""
    TOO_MANY_CONNECTIONS = 4006
    """The subject has ``connections_per_subject`` connections already; they come and go."""
    BAD_FRAME = 4500
    """A message was no frame; an ``error`` frame before it says what was wrong."""
    HELLO_EXPECTED = 4501
    """The first message was not a good ``hello`` of at most ``hello_bytes``."""
    UNSUPPORTED_VERSION = 4503
    """``hello`` names a version that this server does not speak."""
    UNAUTHORIZED = 4504
    """There is no token, or it is not accepted."""
    TOKEN_EXPIRED = 4505
    """The token has expired: whoever gets a new one may come back at once."""
    WORKER_REPLACED = 4506
    """Another process registered under this worker's name."""
