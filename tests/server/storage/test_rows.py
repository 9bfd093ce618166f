"""Rows: what is read back is what was written, whatever it is."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from midstream.protocol.model import Message, Part, Session, Turn
from midstream.server.storage import rows
from midstream.server.storage.records import InputRow, LedgerRow
from tests import strategies

ledgers = st.builds(
    LedgerRow,
    version=strategies.counts,
    ceiling=strategies.counts,
    epoch=strategies.names,
    generation=strategies.counts,
    dirty=st.booleans(),
    cleared_version=strategies.counts,
    last_time=strategies.times,
    time_ceiling=strategies.times,
)
inputs = st.builds(
    InputRow,
    message_id=strategies.names,
    content_hash=strategies.names,
    subject=strategies.names,
    delivery=st.sampled_from(["auto", "queue", "reject", "interrupt"]),
    state=st.sampled_from(["started", "queued", "absorbed", "cancelled"]),
    turn_id=st.none() | strategies.names,
    accepted=strategies.counts,
    parts=st.lists(strategies.user_parts, max_size=2),
)


@settings(max_examples=50, deadline=None)
@given(strategies.sessions(), st.lists(strategies.names, max_size=2))
def test_a_session_is_its_row_and_its_queue(session: Session, queue: list[str]) -> None:
    """The queue has rows of its own."""
    values = rows.session_values(structs.replace(session, queue=["ignored"]))
    assert len(values) == len(rows.SESSION_COLUMNS.split(", "))
    assert rows.read_session(values, queue) == structs.replace(session, queue=queue)


@given(ledgers)
def test_a_ledger_is_its_row(ledger: LedgerRow) -> None:
    """Each of its columns."""
    values = rows.ledger_values(ledger)
    assert len(values) == len(rows.LEDGER_COLUMNS.split(", "))
    assert rows.read_ledger(values) == ledger


@settings(max_examples=50, deadline=None)
@given(inputs)
def test_an_input_is_its_row_and_keeps_its_parts_while_it_waits(item: InputRow) -> None:
    """Afterwards they are in a message, or wanted by nobody."""
    values = rows.input_values(item)
    assert len(values) == len(rows.INPUT_COLUMNS.split(", "))
    kept = item.parts if item.state == "queued" else []
    assert rows.read_input(values) == structs.replace(item, parts=kept)


@settings(max_examples=100, deadline=None)
@given(strategies.user_parts | strategies.agent_parts)
def test_a_part_is_its_bytes(part: Part) -> None:
    """Of every type, in every state, with every value in it."""
    assert rows.read_part(rows.encode(part)) == part


@settings(max_examples=30, deadline=None)
@given(strategies.turns())
def test_a_turn_is_its_bytes(turn: Turn) -> None:
    """Ended or not."""
    assert rows.read_turn(rows.encode(turn)) == turn


@settings(max_examples=50, deadline=None)
@given(strategies.messages(sequence=7))
def test_a_message_goes_out_as_it_came_in(message: Message) -> None:
    """Decoded for those who look at it; as its stored bytes for those who pass it on."""
    row = (
        message.sequence,
        message.message_id,
        rows.nullable(message.turn_id),
        message.revision,
        3,
        message.role,
        message.visibility,
        rows.nullable(message.state),
        message.created_at,
        message.updated_at,
        rows.encode(message.origin) if message.origin else None,
    )
    assert len(row) == len(rows.MESSAGE_COLUMNS.split(", "))
    stored = rows.read_message("s", row, [(3, 5, rows.encode(part)) for part in message.parts])
    assert rows.whole_message(stored) == message
    assert stored.created_version == 3
    assert stored.part_revisions == [5] * len(message.parts)
    passed_on = rows.encode(stored.head)
    assert msgspec.msgpack.decode(passed_on, type=Message) == message


def test_absent_is_null_and_null_is_absent() -> None:
    """But false, zero and empty are values."""
    assert rows.nullable(UNSET) is None
    assert rows.optional(None) is UNSET
    for value in (False, 0, "", b""):
        assert rows.nullable(value) == value
        assert rows.optional(value) == value
