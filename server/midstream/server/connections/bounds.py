"""What the types of the calls cannot hold: limits in bytes, ranges, the parts of a prompt (SPEC 7, 11).

Pure. A call that passes here may still be refused by its session, for what the session is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET

from midstream.protocol.calls import (
    CreateParams,
    ForkParams,
    ListParams,
    MessagesParams,
    PromptParams,
    SignalParams,
    SubscribeParams,
    UpdateParams,
    VerifyParams,
    WatchParams,
)
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import InvalidRequest, LimitExceeded
from midstream.protocol.parts import check_input

if TYPE_CHECKING:
    from midstream.protocol.limits import Limits

_ID_FIELDS: Final = (
    "session_id",
    "message_id",
    "turn_id",
    "interaction_id",
    "new_session_id",
    "key",
    "name",
    "instance",
)


def check(params: msgspec.Struct, limits: Limits) -> None:
    """Refuse params that pass a limit, whatever their method.

    Raises:
        LimitExceeded: names the limit.
        InvalidRequest: names the field.

    """
    for field in _ID_FIELDS:
        _bytes("session_id_bytes", getattr(params, field, UNSET), limits.session_id_bytes)
    if isinstance(params, PromptParams):
        _check_prompt(params, limits)
    elif isinstance(params, (CreateParams, UpdateParams, ForkParams)):
        _check_description(params, limits)
    elif isinstance(params, (SubscribeParams, MessagesParams, ListParams, WatchParams)):
        if params.limit is not UNSET:
            _at_most("page_messages", params.limit, limits.page_messages)
    elif isinstance(params, VerifyParams):
        if params.to_sequence < params.from_sequence:
            raise InvalidRequest("to_sequence", f"is below from_sequence, {params.from_sequence}")
        _at_most("page_messages", params.to_sequence - params.from_sequence + 1, limits.page_messages)
    elif isinstance(params, SignalParams):
        _at_most("signal_bytes", len(MSGPACK.encode(params.data)), limits.signal_bytes)


def _check_prompt(params: PromptParams, limits: Limits) -> None:
    # how many parts there are, and how long they are, is the session's to hold: an input that was accepted
    # under other limits is answered all the same
    check_input(params.parts)
    for part in params.parts:
        _bytes("session_id_bytes", part.part_id, limits.session_id_bytes)


def _check_description(params: CreateParams | UpdateParams | ForkParams, limits: Limits) -> None:
    _bytes("title_bytes", params.title, limits.title_bytes)
    if not isinstance(params, ForkParams) and params.metadata is not UNSET:
        _at_most("metadata_bytes", len(MSGPACK.encode(params.metadata)), limits.metadata_bytes)


def _bytes(limit: str, text: object, maximum: int) -> None:
    if isinstance(text, str):
        _at_most(limit, len(text.encode()), maximum)


def _at_most(limit: str, actual: int, maximum: int) -> None:
    if actual > maximum:
        raise LimitExceeded(limit, maximum, actual)
