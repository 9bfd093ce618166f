"""What is said of a change on the wire, in both views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.frames import Change, MessageEntry, Skip
from midstream.protocol.model import Message, Origin, TextPart
from midstream.server.sessions.entries import change_frame, entry, epoch_sync, has_internal, is_seen
from tests.server.sessions.pure_session import NOW, PureSession, streaming_text, with_open_message
from tests.server.sessions.pure_turns import prompt

if TYPE_CHECKING:
    from midstream.protocol.frames import SessionFrame
    from midstream.server.sessions.projection import FinishedDraft

MESSAGE = Message(
    message_id="m",
    session_id="s",
    turn_id="t",
    sequence=3,
    revision=9,
    role="agent",
    visibility="visible",
    created_at=NOW,
    updated_at=NOW + 5,
    origin=Origin(session_id="o", message_id="om"),
    state="done",
    parts=[],
)
PART = TextPart(part_id="p", sequence=2, text="x", state="done")


def frames(finished: FinishedDraft) -> tuple[SessionFrame, SessionFrame]:
    """The frames of the visible and of the full view."""
    return (
        change_frame(finished, 7, durable=True, include_internal=False),
        change_frame(finished, 7, durable=True, include_internal=True),
    )


def test_a_new_message_is_told_with_all_its_own_fields() -> None:
    """Its parts are those that are given."""
    told = entry(MESSAGE, [PART], part_count=2, is_new=True, version=9)
    own = set(MESSAGE.__struct_fields__) - {"revision", "parts"}
    assert all(getattr(told, name) == getattr(MESSAGE, name) for name in own)
    assert (told.sequence, told.updated_at, told.part_count, told.parts) == (3, NOW + 5, 2, [PART])


def test_a_known_message_is_told_by_its_place_and_what_may_have_changed() -> None:
    """Nothing that its reader has already."""
    told = entry(MESSAGE, [PART], part_count=2, is_new=False, version=9)
    assert told == MessageEntry(sequence=3, updated_at=NOW + 5, state="done", part_count=2, parts=[PART])


def test_a_revision_is_said_only_where_it_is_not_that_of_the_frame() -> None:
    """In a sync that covers more than this message."""
    assert entry(MESSAGE, [], part_count=0, is_new=False, version=9).revision is UNSET
    assert entry(MESSAGE, [], part_count=0, is_new=False, version=12).revision == 9


def test_a_change_carries_what_it_changed_and_nothing_else() -> None:
    """Messages with the parts that it set, turns, and the session where it changed."""
    session, message = with_open_message()
    draft = session.draft()
    draft.add_part(message, TextPart(text="more", state="done"))
    finished = session.commit(draft)
    visible, full = frames(finished)
    assert visible == full
    assert isinstance(full, Change)
    assert (full.channel, full.version, full.durable) == (7, finished.version, True)
    assert (full.content.session, full.content.turns) == (UNSET, [])
    [told] = full.content.messages
    assert (told.role, told.part_count, [part.sequence for part in told.parts]) == (UNSET, 2, [2])
    assert not has_internal(finished)


def test_an_internal_message_is_not_in_the_visible_view() -> None:
    """What else the change did is: the session counts the message."""
    session = PureSession()
    draft = session.draft()
    draft.start_message("user", visibility="internal")
    finished = session.commit(draft)
    visible, full = frames(finished)
    assert has_internal(finished)
    assert isinstance(visible, Change)
    assert isinstance(full, Change)
    assert (visible.content.messages, len(full.content.messages)) == ([], 1)
    assert visible.content.session == full.content.session == session.projection.session
    hidden, seen = finished.messages[0].head, structs.replace(finished.messages[0].head, visibility="visible")
    assert not is_seen(hidden, include_internal=False)
    assert is_seen(hidden, include_internal=True)
    assert is_seen(seen, include_internal=False)


def test_a_change_that_shows_nothing_is_a_skip() -> None:
    """Of exactly its version."""
    session = PureSession()
    draft = session.draft()
    draft.start_message("user", visibility="internal")
    finished = structs.replace(session.commit(draft), session=None)
    visible, full = frames(finished)
    assert visible == Skip(7, finished.version - 1, finished.version)
    assert isinstance(full, Change)


def test_a_new_epoch_begins_with_a_sync_of_the_change() -> None:
    """From the version before, all of it committed; in each view what that view shows."""
    session = PureSession()
    before = session.versions.published
    prompt(session, "m")
    draft = session.draft()
    draft.start_message("agent")
    draft.start_message("user", visibility="internal")
    finished = session.commit(draft)
    for include_internal, count in ((False, 1), (True, 2)):
        payload = epoch_sync(finished, "next", before=before, include_internal=include_internal)
        assert (payload.mode, payload.from_version, payload.epoch) == ("catchup", before, "next")
        assert (payload.version, payload.committed()) == (finished.version, finished.version)
        assert len(payload.messages) == count
        assert payload.session == finished.session


def test_a_streaming_message_says_so() -> None:
    """Its state is in every entry."""
    session, message = with_open_message()
    draft = session.draft()
    draft.add_part(message, streaming_text())
    _, full = frames(session.commit(draft))
    assert isinstance(full, Change)
    assert full.content.messages[0].state == "streaming"
