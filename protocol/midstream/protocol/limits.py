"""Every limit of the protocol: its name, default, unit and reason (SPEC 11).

A server sends its own values in ``welcome.limits``. Passing a limit is refused by name and the
connection is kept; nothing is cut short silently.
"""

from __future__ import annotations

import msgspec

PROTOCOL_VERSION = 1
"""The version that ``hello`` names."""

SUBPROTOCOL_MSGPACK = "midstream.v1.msgpack"
SUBPROTOCOL_JSON = "midstream.v1.json"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that a server holds its clients to."""

    hello_bytes: int = 8 * 1024
    """Bytes of a ``hello``: it comes before we know who asks."""
    hello_seconds: int = 10
    """Seconds a connection may take to say ``hello``."""
    frame_bytes: int = 1024 * 1024
    """Bytes of a frame from a client, chunks joined."""
    chunk_bytes: int = 64 * 1024
    """Bytes above which a frame goes as chunks, so that pings and other sessions pass between."""
    nesting: int = 64
    """Levels of arrays and maps in a frame."""
    subscriptions: int = 1_000
    """Subscriptions of a connection."""
    calls_in_flight: int = 64
    """Calls of a connection that are not answered yet."""
    calls_per_second: int = 200
    """Calls of a connection in a second; as many may come at once."""
    calls_per_subject: int = 20_000
    """Calls of all connections of a subject in a second; as many may come at once."""
    parts: int = 10_000
    """Parts of a message."""
    part_bytes: int = 8 * 1024 * 1024
    """Bytes of a part, encoded."""
    message_bytes: int = 32 * 1024 * 1024
    """Bytes of a message, encoded."""
    queue: int = 32
    """Accepted inputs of a session that are not yet in a message."""
    page_messages: int = 200
    """Messages of a page; also of a ``verify``."""
    page_bytes: int = 1024 * 1024
    """Bytes after which a page ends; it holds at least one message."""
    session_id_bytes: int = 128
    """Bytes of an id that a client chooses: session, message, part, key."""
    title_bytes: int = 1_024
    """Bytes of a session's title."""
    metadata_bytes: int = 16 * 1024
    """Bytes of a session's metadata, encoded."""
    summary_bytes: int = 64 * 1024
    """Bytes of a summary: it goes to the model with every turn, so it is to be short."""
    signal_bytes: int = 4 * 1024
    """Bytes of a signal's data, encoded: signals are for typing and presence, not for content."""
    agent_frame_bytes: int = 16 * 1024 * 1024
    """Bytes of a frame from a registered worker, chunks joined: tools give more than people type."""
    agent_window_bytes: int = 256 * 1024
    """Bytes of writes and appends of an attachment that may be on their way and not acknowledged yet; one
    longer frame may be on its way alone."""
    connections_per_subject: int = 1_000
    """Connections of one subject at a time."""


DEFAULT_LIMITS = Limits()
