"""Rows to entities and back: the one place that knows both the columns and the model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from midstream.protocol.model import ApprovalMode, Message, Origin, Part, Session, Turn
from midstream.protocol.values import Value
from midstream.server.storage.records import InputRow, LedgerRow, StoredMessage

encode = msgspec.msgpack.Encoder().encode
_decode_metadata = msgspec.msgpack.Decoder(dict[str, Value]).decode
_decode_origin = msgspec.msgpack.Decoder(Origin).decode
_decode_turn = msgspec.msgpack.Decoder(Turn).decode
_decode_parts = msgspec.msgpack.Decoder(list[Part]).decode
_decode_part = msgspec.msgpack.Decoder(Part).decode
_decode_message = msgspec.msgpack.Decoder(Message).decode

Row = tuple[Any, ...]
"""A row as apsw gives it; its types are those of the column lists below."""

SESSION_COLUMNS = (
    "session_id, revision, title, metadata, created_at, updated_at, archived_at, first_sequence,"
    " message_count, running_turn_id, pending_interactions, approval_mode, approval_mode_by,"
    " summarized_through"
)
SESSION_WIDTH = len(SESSION_COLUMNS.split(", "))
"""How many columns those are: what else a query asks for stands behind them."""
LEDGER_COLUMNS = "version, ceiling, epoch, generation, dirty, cleared_version, last_time, time_ceiling"
MESSAGE_COLUMNS = (
    "sequence, message_id, turn_id, revision, created_version, role, visibility, state, created_at,"
    " updated_at, origin"
)
INPUT_COLUMNS = "message_id, content_hash, subject, delivery, state, turn_id, accepted, parts"


def optional(value: Any) -> Any:  # noqa: ANN401  # a column's value, whatever its type
    """Return what SQL says, with NULL as absent."""
    return UNSET if value is None else value


def nullable(value: object) -> Any:  # noqa: ANN401  # a column's value, whatever its type
    """Return what SQL stores, with absent as NULL."""
    return None if isinstance(value, UnsetType) else value


def read_session(row: Row, queue: list[str]) -> Session:
    """Return the entity of a row of SESSION_COLUMNS."""
    return Session(
        session_id=row[0],
        revision=row[1],
        title=optional(row[2]),
        metadata=_decode_metadata(row[3]),
        created_at=row[4],
        updated_at=row[5],
        archived_at=optional(row[6]),
        first_sequence=row[7],
        message_count=row[8],
        running_turn_id=optional(row[9]),
        queue=queue,
        pending_interactions=row[10],
        # interned, or the encoder would not know it for the usual value, which is not written
        approval_mode=cast("ApprovalMode", sys.intern(row[11])),
        approval_mode_by=optional(row[12]),
        summarized_through=row[13],
    )


def session_values(session: Session) -> Row:
    """Return the values of SESSION_COLUMNS."""
    return (
        session.session_id,
        session.revision,
        nullable(session.title),
        encode(session.metadata),
        session.created_at,
        session.updated_at,
        nullable(session.archived_at),
        session.first_sequence,
        session.message_count,
        nullable(session.running_turn_id),
        session.pending_interactions,
        session.approval_mode,
        nullable(session.approval_mode_by),
        session.summarized_through,
    )


def read_ledger(row: Row) -> LedgerRow:
    """Return the record of a row of LEDGER_COLUMNS."""
    version, ceiling, epoch, generation, dirty, cleared_version, last_time, time_ceiling = row
    return LedgerRow(
        version=version,
        ceiling=ceiling,
        epoch=epoch,
        generation=generation,
        dirty=bool(dirty),
        cleared_version=cleared_version,
        last_time=last_time,
        time_ceiling=time_ceiling,
    )


def ledger_values(ledger: LedgerRow) -> Row:
    """Return the values of LEDGER_COLUMNS."""
    return (
        ledger.version,
        ledger.ceiling,
        ledger.epoch,
        ledger.generation,
        int(ledger.dirty),
        ledger.cleared_version,
        ledger.last_time,
        ledger.time_ceiling,
    )


def read_message(session_id: str, row: Row, parts: Sequence[Row]) -> StoredMessage:
    """Return the record of a row of MESSAGE_COLUMNS and of rows of its parts (sequence, revision, body)."""
    return StoredMessage(
        head=message_of(session_id, row, [Raw(part[2]) for part in parts]),
        created_version=row[4],
        part_revisions=[part[1] for part in parts],
        size=sum([len(part[2]) for part in parts]),
    )


def message_of(session_id: str, row: Row, parts: list[Raw]) -> Message:
    """Return the message of a row of MESSAGE_COLUMNS, with encoded parts."""
    turn_id, state, origin = row[2], row[7], row[10]
    return Message(
        message_id=row[1],
        session_id=session_id,
        turn_id=UNSET if turn_id is None else turn_id,
        sequence=row[0],
        revision=row[3],
        role=row[5],
        visibility=row[6],
        created_at=row[8],
        updated_at=row[9],
        origin=UNSET if origin is None else _decode_origin(origin),
        state=UNSET if state is None else state,
        parts=cast("list[Part]", parts),
    )


def encoded_parts(message: Message) -> list[Raw]:
    """Return the parts of a message whose parts are encoded."""
    return cast("list[Raw]", message.parts)


def read_part(body: bytes) -> Part:
    """Return a stored part."""
    return _decode_part(body)


def read_turn(body: bytes) -> Turn:
    """Return a stored turn."""
    return _decode_turn(body)


def read_input(row: Row) -> InputRow:
    """Return the record of a row of INPUT_COLUMNS."""
    message_id, content_hash, subject, delivery, state, turn_id, accepted, parts = row
    return InputRow(
        message_id=message_id,
        content_hash=content_hash,
        subject=subject,
        delivery=delivery,
        state=state,
        turn_id=turn_id,
        accepted=accepted,
        parts=[] if parts is None else _decode_parts(parts),
    )


def input_values(item: InputRow) -> Row:
    """Return the values of INPUT_COLUMNS; the parts only while the input is queued."""
    return (
        item.message_id,
        item.content_hash,
        item.subject,
        item.delivery,
        item.state,
        item.turn_id,
        item.accepted,
        encode(item.parts) if item.state == "queued" else None,
    )


def copied(message: Message) -> Message:
    """Return a copy that shares nothing with the message: an agent may change the maps in it."""
    return _decode_message(encode(message))


def whole_message(stored: StoredMessage) -> Message:
    """Return the message with its parts decoded."""
    return decoded(stored.head)


def decoded(message: Message) -> Message:
    """Return a message whose parts are encoded with its parts decoded."""
    parts = [_decode_part(part) for part in encoded_parts(message)]
    return msgspec.structs.replace(message, parts=parts)
