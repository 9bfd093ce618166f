"""Mutations: what changed in a session, in full, for those who follow it (SPEC 4.6)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from midstream.protocol.model import Message, Part, Session, Turn

Variant: TypeAlias = Literal["message", "part", "delta", "turn", "session", "reset"]
ResetReason: TypeAlias = Literal["synced", "cleared", "loaded", "slow"]


class TextAppended(msgspec.Struct, frozen=True, kw_only=True):
    """Text at the end of a part: of its ``text``, or of a tool part's ``input_text``."""

    text: str


class ReplicaReset(msgspec.Struct, frozen=True, kw_only=True):
    """The session's messages are to be read again, because more changed than mutations can tell.

    ``synced``: the replica was replaced as a whole. ``cleared``: messages were removed. ``loaded``:
    earlier messages joined. ``slow``: this reader did not keep up, and mutations were left out.
    """

    reason: ResetReason


Payload: TypeAlias = Message | Part | TextAppended | Turn | Session | ReplicaReset


class Mutation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that changed, and what it is now.

    | variant | payload |
    |---|---|
    | ``message`` | the whole :class:`Message`: it is new, was committed, or lost a part |
    | ``part`` | a whole part that is new or changed and not committed yet |
    | ``delta`` | :class:`TextAppended` |
    | ``turn`` | the whole :class:`Turn` |
    | ``session`` | the whole :class:`Session` entity |
    | ``reset`` | :class:`ReplicaReset`: read ``session.messages`` again |
    """

    mutation_id: str
    """``epoch:version``, and ``:index`` where one version changed several things. Unique in the session."""
    session_id: str
    created_at: int
    """When it happened, in ms since the epoch by the server's clock."""
    variant: Variant
    message_id: str | None = None
    part_id: str | None = None
    revision: int
    """The version that made the payload what it is."""
    payload: Payload
