"""The calls: one Struct for the parameters and one for the result of each method (SPEC 7).

Constraints stand in the types, so that decoding refuses what is out of range and names the field.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from midstream.protocol.agent_calls import AGENT_PARAMS, AGENT_RESULTS
from midstream.protocol.agent_calls import EmptyResult as EmptyResult  # noqa: PLC0414  # a result of calls, too
from midstream.protocol.frames import Count, SyncPayload
from midstream.protocol.lists import ListParams as ListParams  # noqa: PLC0414  # calls, as the others
from midstream.protocol.lists import ListResult as ListResult  # noqa: PLC0414  # likewise
from midstream.protocol.lists import UnwatchParams as UnwatchParams  # noqa: PLC0414  # likewise
from midstream.protocol.lists import WatchParams as WatchParams  # noqa: PLC0414  # likewise
from midstream.protocol.model import (
    ApprovalMode,
    InteractionPart,
    InteractionResponse,
    Message,
    Session,
    Summary,
    Turn,
    UserPart,
)
from midstream.protocol.values import MAX_INTEGER, Value

Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
"""An id that a client may choose: 1 to 128 characters; the limit in bytes is ``session_id_bytes``."""
Sequence: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
Epoch: TypeAlias = Annotated[str, Meta(min_length=1, max_length=32)]
Delivery: TypeAlias = Literal["auto", "queue", "reject", "interrupt"]
InputState: TypeAlias = Literal["started", "queued", "absorbed", "cancelled"]
CancelQueue: TypeAlias = Literal["own", "all", "none"]
PageSource: TypeAlias = Literal["active", "segment"]


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has: the version it reached in an epoch, and the last committed one at or below."""

    epoch: Epoch
    version: Count
    durable: Count


class _Params(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class _Result(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class SubscribeParams(_Params, frozen=True, kw_only=True):
    """``subscribe``: without cursor and limit the answer is a ``reset`` without messages."""

    session_id: Id
    cursor: Cursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] | UnsetType = UNSET
    include_internal: bool = False
    pace_ms: Annotated[int, Meta(ge=20, le=500)] | UnsetType = UNSET


class SubscribeResult(_Result, frozen=True, kw_only=True):
    """The channel of the session and what brings the replica up to now."""

    channel: int
    sync: SyncPayload


class UnsubscribeParams(_Params, frozen=True, kw_only=True):
    """``unsubscribe``."""

    session_id: Id


class MessagesParams(_Params, frozen=True, kw_only=True):
    """``messages``: ``before_sequence`` is exclusive; ``stored`` is the strict view of the database.

    With ``segment`` a page holds messages of one segment only (SPEC 7.3).
    """

    session_id: Id
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    before_sequence: Sequence | UnsetType = UNSET
    include_internal: bool = False
    stored: bool = False
    segment: bool = False


class Page(_Result, frozen=True, kw_only=True):
    """A page: whole messages, ascending. ``total`` is the session's highest sequence.

    A page of a segment has a ``source``: ``active`` is what no summary closed yet, a ``segment`` has its
    ``summary``. It is ``cut`` where the segment has more messages below it.
    """

    items: list[Message]
    total: int
    start_sequence: int | UnsetType = UNSET
    end_sequence: int | UnsetType = UNSET
    next_before_sequence: int | UnsetType = UNSET
    has_more: bool
    include_internal: bool
    before_sequence: int | UnsetType = UNSET
    turns: list[Turn]
    epoch: str
    version: int
    source: PageSource | UnsetType = UNSET
    summary: Summary | UnsetType = UNSET
    cut: bool = False


class MessageParams(_Params, frozen=True, kw_only=True):
    """``message``."""

    session_id: Id
    message_id: Id


class MessageResult(_Result, frozen=True, kw_only=True):
    """One message as it is now, streamed text included."""

    message: Message
    epoch: str
    version: int


class TurnParams(_Params, frozen=True, kw_only=True):
    """``turn``: an id, or ``current``."""

    session_id: Id
    turn_id: Id = "current"


class TurnResult(_Result, frozen=True, kw_only=True):
    """The turn; ``null`` where ``current`` was asked and none runs."""

    turn: Turn | None
    epoch: str
    version: int


class PromptParams(_Params, frozen=True, kw_only=True):
    """``prompt``: ``message_id`` is the client's idempotency key (SPEC 8)."""

    session_id: Id
    message_id: Id
    parts: Annotated[list[UserPart], Meta(min_length=1)]
    delivery: Delivery = "auto"


class PromptResult(_Result, frozen=True, kw_only=True):
    """Where the input is now. ``position`` counts from 1, while it is queued."""

    state: InputState
    message_id: str
    turn_id: str | UnsetType = UNSET
    position: int | UnsetType = UNSET


class StopParams(_Params, frozen=True, kw_only=True):
    """``stop``: a turn's id, or ``current``."""

    session_id: Id
    turn_id: Id = "current"
    cancel_queue: CancelQueue = "own"


class StopResult(_Result, frozen=True, kw_only=True):
    """What was stopped, and which queued inputs were cancelled with it."""

    stopped: bool
    turn_id: str | UnsetType = UNSET
    cancelled: list[str]
    reason: Literal["stopped", "idle"]


class RespondParams(_Params, frozen=True, kw_only=True):
    """``respond``: the response must fit the request."""

    session_id: Id
    interaction_id: Id
    response: InteractionResponse


class RespondResult(_Result, frozen=True, kw_only=True):
    """The interaction as it is now."""

    interaction: InteractionPart


class InteractionsParams(_Params, frozen=True, kw_only=True):
    """``interactions``: asks for those that wait for an answer."""

    session_id: Id


class PendingInteraction(_Result, frozen=True, kw_only=True):
    """An interaction and the message that holds it."""

    message_id: str
    message_sequence: int
    turn_id: str | UnsetType = UNSET
    interaction: InteractionPart


class InteractionsResult(_Result, frozen=True, kw_only=True):
    """All pending interactions, in order of appearance."""

    items: list[PendingInteraction]
    epoch: str
    version: int


class CancelInputParams(_Params, frozen=True, kw_only=True):
    """``cancel_input``: takes a queued input back; an input that is no longer queued stays as it is."""

    session_id: Id
    message_id: Id


class CompactParams(_Params, frozen=True, kw_only=True):
    """``compact``: stores what the messages up to ``through_sequence`` said (SPEC 8.10)."""

    session_id: Id
    through_sequence: Sequence
    summary: str


class CompactResult(_Result, frozen=True, kw_only=True):
    """The summary as it is stored."""

    summary: Summary
    epoch: str
    version: int


class VerifyParams(_Params, frozen=True, kw_only=True):
    """``verify``: at most 200 messages."""

    session_id: Id
    from_sequence: Sequence
    to_sequence: Sequence
    include_internal: bool = False


class VerifyResult(_Result, frozen=True, kw_only=True):
    """``digests`` are ``[sequence, revision, digest]``, ascending."""

    version: int
    epoch: str
    digests: list[tuple[int, int, str]]


class SignalParams(_Params, frozen=True, kw_only=True):
    """``signal``: is passed on to the live subscriptions of the session, and to no store."""

    session_id: Id
    name: Annotated[str, Meta(min_length=1, max_length=64)]
    data: Value = None


class CreateParams(_Params, frozen=True, kw_only=True):
    """``sessions.create``: ``key`` makes a repeat harmless, also after a restart."""

    session_id: Id | UnsetType = UNSET
    key: Id | UnsetType = UNSET
    title: str | UnsetType = UNSET
    metadata: dict[str, Value] = {}


class SessionParams(_Params, frozen=True, kw_only=True):
    """``sessions.get``, ``sessions.clear``, ``sessions.delete``."""

    session_id: Id


class SessionResult(_Result, frozen=True, kw_only=True):
    """The session as it is now."""

    session: Session
    epoch: str
    version: int


class UpdateParams(_Params, frozen=True, kw_only=True):
    """``sessions.update``: what is given is replaced whole; a title of ``null`` removes it."""

    session_id: Id
    title: str | UnsetType | None = UNSET
    metadata: dict[str, Value] | UnsetType = UNSET


class ArchiveParams(_Params, frozen=True, kw_only=True):
    """``sessions.archive``."""

    session_id: Id
    archived: bool = True


class ApprovalModeParams(_Params, frozen=True, kw_only=True):
    """``sessions.approval_mode``: whether approvals are asked for, or given at once."""

    session_id: Id
    approval_mode: ApprovalMode


class ForkParams(_Params, frozen=True, kw_only=True):
    """``sessions.fork``: copies up to and with ``message_id``, or everything."""

    session_id: Id
    message_id: Id | UnsetType = UNSET
    new_session_id: Id | UnsetType = UNSET
    key: Id | UnsetType = UNSET
    title: str | UnsetType = UNSET


class AuthParams(_Params, frozen=True, kw_only=True):
    """``auth``: another token of the same subject."""

    token: Annotated[str, Meta(min_length=1)]


class AuthResult(_Result, frozen=True, kw_only=True):
    """What holds from now on; ``token_ms`` is absent where the token never expires."""

    subject: str
    scopes: list[str]
    token_ms: Count | UnsetType = UNSET


PARAMS: dict[str, type[msgspec.Struct]] = {
    "subscribe": SubscribeParams,
    "unsubscribe": UnsubscribeParams,
    "messages": MessagesParams,
    "message": MessageParams,
    "turn": TurnParams,
    "prompt": PromptParams,
    "stop": StopParams,
    "respond": RespondParams,
    "interactions": InteractionsParams,
    "cancel_input": CancelInputParams,
    "compact": CompactParams,
    "verify": VerifyParams,
    "signal": SignalParams,
    "auth": AuthParams,
    "sessions.create": CreateParams,
    "sessions.get": SessionParams,
    "sessions.list": ListParams,
    "sessions.watch": WatchParams,
    "sessions.unwatch": UnwatchParams,
    "sessions.update": UpdateParams,
    "sessions.clear": SessionParams,
    "sessions.archive": ArchiveParams,
    "sessions.approval_mode": ApprovalModeParams,
    "sessions.delete": SessionParams,
    "sessions.fork": ForkParams,
    **AGENT_PARAMS,
}
"""The parameters of every method of this version."""

RESULTS: dict[str, type[msgspec.Struct]] = {
    "subscribe": SubscribeResult,
    "unsubscribe": EmptyResult,
    "messages": Page,
    "message": MessageResult,
    "turn": TurnResult,
    "prompt": PromptResult,
    "stop": StopResult,
    "respond": RespondResult,
    "interactions": InteractionsResult,
    "cancel_input": PromptResult,
    "compact": CompactResult,
    "verify": VerifyResult,
    "signal": EmptyResult,
    "auth": AuthResult,
    "sessions.create": SessionResult,
    "sessions.get": SessionResult,
    "sessions.list": ListResult,
    "sessions.watch": ListResult,
    "sessions.unwatch": EmptyResult,
    "sessions.update": SessionResult,
    "sessions.clear": SessionResult,
    "sessions.archive": SessionResult,
    "sessions.approval_mode": SessionResult,
    "sessions.delete": EmptyResult,
    "sessions.fork": SessionResult,
    **AGENT_RESULTS,
}
"""The result of every method of this version."""
