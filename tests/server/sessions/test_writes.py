"""What a commit stores: what it changed, and what was only streamed of the same message until now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given, settings
from msgspec import structs

from midstream.protocol.model import ActionPart, Part, TextPart
from midstream.protocol.transitions import is_open
from midstream.server.sessions.writes import session_write
from midstream.server.storage.records import EpochEnd
from tests.server.sessions.pure_session import PureSession, new_input, streaming_text, with_open_message
from tests.server.sessions.pure_turns import OPEN_PARTS, answer, prompt
from tests.server.sessions.scribe import Deed, Scribe, lives

if TYPE_CHECKING:
    from midstream.server.sessions.draft import Draft
    from midstream.server.storage.records import SessionWrite


def write_of(session: PureSession, draft: Draft) -> SessionWrite:
    """What the next commit would store."""
    ledger, ended = session.versions.next_row()
    finished = draft.finish(ledger.version)
    return session_write(1, session.projection, finished, ledger=ledger, epoch_end=ended)


def places(write: SessionWrite) -> list[tuple[int, int]]:
    """The places of the parts that it stores."""
    return [part[:2] for part in write.parts]


def test_only_changed_parts_are_stored() -> None:
    """A long message is not written again for one part."""
    session, message = with_open_message()
    for _ in range(5):
        answer_part(session, message)
    draft = session.draft()
    draft.add_part(message, TextPart(text="new", state="done"))
    write = write_of(session, draft)
    assert places(write) == [(message, 7)]
    assert write.parts[0][2] == write.ledger.version
    assert [row.part_count for row in write.messages] == [7]


def answer_part(session: PureSession, message: int) -> None:
    """Add a part, and commit it."""
    draft = session.draft()
    draft.add_part(message, TextPart(text="x", state="done"))
    session.commit(draft)


def test_what_was_only_streamed_is_stored_with_the_next_commit_of_its_message() -> None:
    """As it stands, with the version that last changed it; and then not again."""
    session, message = with_open_message()
    session.say(message, 1, "hello")
    said = session.versions.published
    draft = session.draft()
    draft.add_part(message, streaming_text("live"))
    session.show(draft)
    draft = session.draft()
    draft.message(message)
    write = write_of(session, draft)
    assert places(write) == [(message, 1), (message, 2)]
    number, revision, body = write.parts[0][1:]
    assert (number, revision) == (1, said)
    stored = msgspec.msgpack.decode(body, type=TextPart)
    assert (stored.text, stored.state) == ("hello", "streaming")
    session.commit(draft)
    draft = session.draft()
    draft.message(message)
    assert places(write_of(session, draft)) == []


def test_another_messages_text_waits_for_its_own_commit() -> None:
    """A commit stores the messages that it touches."""
    session, message = with_open_message()
    session.say(message, 1, "hello")
    draft = session.draft()
    draft.session = structs.replace(draft.session, title="t")
    write = write_of(session, draft)
    assert (write.messages, write.parts) == ([], [])
    assert write.session is not None


def test_dropped_parts_are_not_stored() -> None:
    """Nor what was streamed into them."""
    session, message = with_open_message()
    session.say(message, 1, "hello")
    draft = session.draft()
    draft.truncate(message, 0)
    write = write_of(session, draft)
    assert places(write) == []
    assert write.messages[0].part_count == 0


def test_a_message_is_open_as_long_as_anything_of_it_is() -> None:
    """It streams, or a part has not ended: one that the commit sets, or one that it leaves."""
    session = PureSession()
    prompt(session, "m")
    action = ActionPart(action_id="a", action_type="t", state="running", title="x")
    message = answer(session, action, streaming_text())
    draft = session.draft()
    draft.put_part(message, structs.replace(draft.message(message).part(2), state="done"))
    draft.close_message(message)
    assert write_of(session, draft).messages[0].is_open
    draft.put_part(message, structs.replace(draft.message(message).part(1), state="completed"))
    assert not write_of(session, draft).messages[0].is_open


def test_a_message_changes_late_where_a_newer_one_was_there_before() -> None:
    """Not where the newer one comes with the same commit: a reader from before it has seen neither."""
    session = PureSession()
    prompt(session, "m")
    message = answer(session, streaming_text())
    draft = session.draft()
    draft.put_part(message, structs.replace(draft.message(message).part(1), text="more"))
    later = draft.start_message("user", turn_id="t")
    draft.add_part(later, TextPart(text="and"))
    assert [(row.head.sequence, row.changed_late) for row in write_of(session, draft).messages] == [
        (message, False),
        (later, False),
    ]
    session.commit(draft)
    draft = session.draft()
    draft.put_part(message, structs.replace(draft.message(message).part(1), text="most"))
    assert [row.changed_late for row in write_of(session, draft).messages] == [True]


def test_the_places_of_interactions_are_noted() -> None:
    """So that a late answer finds the outcome."""
    session = PureSession()
    prompt(session, "m")
    draft = session.draft()
    message = draft.start_message("agent", turn_id="t")
    for part in OPEN_PARTS:
        draft.add_part(message, part)
    assert write_of(session, draft).interactions == [("i", message, 8)]


def test_turns_inputs_and_the_end_of_an_epoch_are_stored_with_the_change() -> None:
    """All in one write."""
    session = PureSession(generation=2)
    draft = session.draft()
    draft.set_input(new_input("waits"))
    write = write_of(session, draft)
    assert write.epoch_end == EpochEnd(epoch="first", version=1, commit=1)
    assert [item.message_id for item in write.inputs] == ["waits"]
    assert (write.session_no, write.deleted) == (1, False)


@settings(max_examples=100, deadline=None)
@given(lives)
def test_the_store_is_always_a_state_that_was_shown(life: list[Deed]) -> None:
    """Each stored message equals what clients saw of it at one version; and what is open is found again."""
    session = PureSession()
    scribe = Scribe(session)
    shown: dict[int, set[bytes]] = {}
    for _ in scribe.live(life):
        for message in session.messages():
            shown.setdefault(message.sequence, set()).add(said(message.parts))
        for sequence, row in session.store.messages.items():
            stored = session.store.stored_message(sequence)
            parts = [msgspec.msgpack.decode(part, type=Part) for part in stored.parts]
            assert said(parts) in shown[sequence]
            still = row.head.state == "streaming" or any(is_open(part) for part in parts)
            assert row.is_open == still


def said(parts: list[Part]) -> bytes:
    """Parts as bytes."""
    return msgspec.msgpack.encode(parts)
