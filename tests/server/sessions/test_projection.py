"""The projection holds what may still change, and nothing else."""

from __future__ import annotations

from hypothesis import given, settings
from msgspec import structs

from midstream.protocol.model import Message
from midstream.protocol.transitions import is_open
from midstream.server.storage import rows
from tests.server.sessions.pure_session import PureSession, streaming_text, with_open_message
from tests.server.sessions.pure_turns import OPEN_PARTS, answer, end, prompt
from tests.server.sessions.scribe import Deed, Scribe, lives


def test_a_delta_grows_its_part() -> None:
    """The message is newer, other parts are not."""
    session, message = with_open_message()
    draft = session.draft()
    draft.add_part(message, streaming_text("other"))
    session.commit(draft)
    opened = session.projection.open[message]
    before = list(opened.part_revisions)
    now = opened.head.created_at + 1_234
    part = session.growing(message, 1)
    before_it = opened.head.updated_at
    assert session.projection.append(part, "é", 2, version=99, now=now) == (before_it, opened.live)
    assert part.size == opened.sizes[0]
    assert (opened.head.revision, opened.head.updated_at) == (99, now)
    assert opened.part_revisions == [99, before[1]]
    assert opened.dirty == {1}
    assert session.message(message).parts[0] == structs.replace(
        streaming_text("é"), sequence=1, part_id=opened.live.part(1).part_id
    )


def test_sizes_are_the_bytes_of_the_parts() -> None:
    """Also of what was streamed, in UTF-8; and those that changed since a version are told apart."""
    session, message = with_open_message()
    opened = session.projection.open[message]
    empty = opened.sizes[0]
    here = session.versions.published
    session.say(message, 1, "é🙂x")
    assert opened.sizes == [empty + 7]
    assert (opened.size_since(here), opened.size_since(here + 1)) == (empty + 7, 0)


def test_what_has_ended_and_is_stored_is_let_go() -> None:
    """A user's message at once, an agent's with the last of its parts; one that is not stored yet stays."""
    session = PureSession()
    prompt(session, "m")
    assert session.projection.open == {}
    message = answer(session, *OPEN_PARTS)
    draft = session.draft()
    draft.close_message(message)
    session.show(draft)
    assert list(session.projection.open) == [message]
    end(session)
    assert session.projection.open == {}
    assert session.projection.streaming() is None


def test_a_load_holds_what_the_store_says_is_open() -> None:
    """With the versions and sizes of its parts, and nothing that would have to be stored."""
    session = PureSession()
    prompt(session, "m")
    message = answer(session, *OPEN_PARTS)
    session.say(message, 1, "lost with the load")
    again = PureSession(session.store)
    opened = again.projection.open[message]
    assert opened.part_revisions == [session.store.messages[message].head.revision] * len(OPEN_PARTS)
    assert opened.sizes == [len(rows.encode(part)) for part in opened.live.parts()]
    assert opened.dirty == set()
    assert again.projection.turn == session.projection.turn
    found = again.projection.find_interaction("i")
    assert found is not None
    assert found[0] is opened
    assert again.projection.find_interaction("other") is None


def test_a_page_shows_the_live_message_or_the_stored_one() -> None:
    """By its sequence."""
    session, message = with_open_message()
    session.say(message, 1, "live")
    stored = session.store.stored_message(message)
    assert session.projection.overlay(stored.head) == session.message(message)
    closed = structs.replace(stored, head=structs.replace(stored.head, sequence=99))
    shown = session.projection.overlay(closed.head)
    assert rows.encode(shown.parts) == rows.encode(stored.parts)
    assert isinstance(shown, Message)


@settings(max_examples=100, deadline=None)
@given(lives)
def test_it_holds_every_open_message_and_at_most_one_that_streams(life: list[Deed]) -> None:
    """After any change; what it does not hold, the store has as it is shown."""
    session = PureSession()
    scribe = Scribe(session)
    for _ in scribe.live(life):
        held = session.projection.open
        assert sum(message.is_streaming for message in held.values()) <= 1
        for message in session.messages():
            still = message.state == "streaming" or any(is_open(part) for part in message.parts)
            assert message.sequence in held or not still
        for opened in held.values():
            assert len(opened.sizes) == len(opened.part_revisions) == opened.live.part_count
            assert max(opened.part_revisions, default=0) <= opened.head.revision
