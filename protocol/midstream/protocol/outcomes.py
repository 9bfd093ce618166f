"""What a replica says after it was given a frame or a page: what came of it, and what changed (SPEC 4)."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec


class Appended(msgspec.Struct, frozen=True):
    """Text was added to the end of a part; nothing else changed but the message's ``updated_at``.

    ``text`` went to the part's ``text``, or to a tool part's ``input_text``.
    """

    message_id: str
    part_id: str
    message_sequence: int
    part_sequence: int
    revision: int
    updated_at: int
    """That of the message now, in ms since the epoch."""
    text: str


class MessageChanged(msgspec.Struct, frozen=True):
    """A message is new, or its own fields or some parts changed.

    ``parts`` are the sequences of the parts that are new or replaced; a part that is gone is not
    named. ``durable`` says that the change was committed before it was sent, ``lost`` that a part is
    gone, or another one stands in its place.
    """

    message_id: str
    message_sequence: int
    revision: int
    new: bool
    parts: tuple[int, ...]
    durable: bool
    lost: bool = False


class TurnChanged(msgspec.Struct, frozen=True):
    """A turn is new or changed."""

    turn_id: str
    revision: int


class SessionChanged(msgspec.Struct, frozen=True):
    """The session's own state changed."""

    revision: int


class MessagesDropped(msgspec.Struct, frozen=True):
    """Messages left the replica, because the session was cleared."""

    message_ids: tuple[str, ...]


class WasReset(msgspec.Struct, frozen=True):
    """Everything was replaced: read the replica anew. No other change is named beside it."""


ReplicaChange: TypeAlias = (
    Appended | MessageChanged | TurnChanged | SessionChanged | MessagesDropped | WasReset
)
"""One thing that changed in a replica. Those of a frame come in order: dropped, messages, turns, session."""


class Applied(msgspec.Struct, frozen=True):
    """The frame was applied, as a whole. ``changes`` are empty where it touched nothing that is held."""

    changes: tuple[ReplicaChange, ...] = ()


class Ignored(msgspec.Struct, frozen=True):
    """The frame said nothing new; nothing changed."""


class Gap(msgspec.Struct, frozen=True):
    """Something is missing; the replica's content did not change. Subscribe again.

    With ``keep_cursor`` the replica is whole at its version: subscribe with its cursor. Without,
    the replica cannot be repaired: subscribe without a cursor, for a ``reset``.
    """

    reason: str
    keep_cursor: bool


Outcome: TypeAlias = Applied | Ignored | Gap
"""What came of a frame: match on the type."""


class PageOutcome(Enum):
    """What came of a page."""

    MERGED = "merged"
    REREAD = "reread"
    """It does not fit the stream's place or form any more: ask for it again."""
    DROPPED = "dropped"
    """It does not continue the window; nothing is to be done."""
