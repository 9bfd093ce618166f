"""The stream: every version in order to every subscriber, and nothing twice."""

from __future__ import annotations

from midstream.protocol.frames import Change, Delta, ShortDelta, Skip, Sync, SyncPayload
from midstream.server.sessions import turns
from midstream.server.sessions.broadcast import Broadcast
from tests.server.sessions.pure_session import CHANNEL, PureSession, streaming_text, with_open_message
from tests.server.sessions.recorder import Closed, Recorder, Signalled


def watch(session: PureSession, *, include_internal: bool = False) -> Recorder:
    """Subscribe to a session as it is."""
    recorder = Recorder(include_internal=include_internal)
    versions, projection = session.versions, session.projection
    recorder.join(
        SyncPayload(
            mode="reset",
            epoch=versions.epoch,
            version=versions.published,
            durable=versions.durable,
            session=projection.session,
            has_more=projection.session.message_count > 0,
        )
    )
    session.stream.add(recorder)
    return recorder


def test_each_kind_of_publication_takes_one_version_and_one_frame() -> None:
    """A delta, a live change, a stored one; the cursor follows, and its durable only with commits."""
    session, message = with_open_message()
    recorder = watch(session)
    start = session.versions.published
    session.say(message, 1, "x")
    draft = session.draft()
    draft.add_part(message, streaming_text())
    session.show(draft)
    assert recorder.cursor is not None
    assert (recorder.cursor.version, recorder.cursor.durable) == (start + 2, start)
    draft = session.draft()
    turns.close_streaming(draft)
    session.commit(draft)
    assert (recorder.cursor.version, recorder.cursor.durable) == (start + 3, start + 3)
    delta, live, stored = recorder.frames[1:]
    assert isinstance(delta, ShortDelta)
    assert (delta.channel, delta.version, delta.text) == (CHANNEL, start + 1, "x")
    assert isinstance(live, Change)
    assert isinstance(stored, Change)
    assert (live.durable, stored.durable) == (False, True)


def test_only_text_at_the_end_of_the_last_message_is_said_in_the_short_form() -> None:
    """And a long one says where the text goes: the reader cannot know it by itself."""
    session, message = with_open_message()
    recorder = watch(session)
    session.say(message, 1, "a")
    draft = session.draft()
    second = draft.add_part(message, streaming_text())
    session.show(draft)
    session.say(message, 1, "b")
    session.say(message, second, "c")
    draft = session.draft()
    draft.start_message("user", visibility="internal")
    session.commit(draft)
    session.say(message, second, "d")
    forms = [(type(frame), frame.text) for frame in recorder.deltas]
    assert forms == [(ShortDelta, "a"), (Delta, "b"), (ShortDelta, "c"), (Delta, "d")]


def test_a_new_epoch_reaches_those_who_are_there_as_a_sync_that_names_it() -> None:
    """Their cursor is of the new epoch from then on."""
    session, message = with_open_message()
    again = PureSession(session.store, generation=2)
    recorder = watch(again)
    before = again.versions.published
    draft = again.draft()
    draft.close_message(message)
    again.commit(draft)
    frame = recorder.frames[-1]
    assert isinstance(frame, Sync)
    assert (frame.payload.mode, frame.payload.from_version) == ("catchup", before)
    assert recorder.replica.epoch == again.versions.epoch != "first"
    assert recorder.cursor == recorder.replica.cursor()
    draft = again.draft()
    draft.start_message("user")
    again.commit(draft)
    assert isinstance(recorder.frames[-1], Change)


def test_an_epoch_that_begins_with_something_hidden_is_named_to_all() -> None:
    """Each view is told what it may see."""
    session, _ = with_open_message()
    again = PureSession(session.store, generation=2)
    readers = [watch(again, include_internal=internal) for internal in (False, True)]
    draft = again.draft()
    draft.start_message("user", visibility="internal")
    again.commit(draft)
    for reader in readers:
        assert reader.replica.epoch == again.versions.epoch
        frame = reader.frames[-1]
        assert isinstance(frame, Sync)
        assert len(frame.payload.messages) == reader.include_internal


def test_what_a_view_does_not_show_is_a_skip() -> None:
    """Its reader's version goes on all the same."""
    session = PureSession()
    visible, full = (watch(session, include_internal=internal) for internal in (False, True))
    draft = session.draft()
    sequence = draft.start_message("agent", visibility="internal")
    draft.add_part(sequence, streaming_text())
    session.commit(draft)
    session.say(sequence, 1, "hidden")
    version = session.versions.published
    assert visible.frames[-1] == Skip(CHANNEL, version - 1, version)
    assert isinstance(full.frames[-1], ShortDelta)
    assert visible.replica.messages() == []
    assert full.replica.messages() == session.messages()
    assert visible.replica.version == full.replica.version == version


def test_subscribers_are_served_in_the_order_they_came() -> None:
    """So that a simulation gives the same trace each time."""
    session = PureSession()
    order: list[int] = []

    class Numbered(Recorder):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def publish(self, broadcast: Broadcast) -> None:
            assert broadcast.cursor.version == session.versions.published
            order.append(self.number)

    for number in range(20):
        session.stream.add(Numbered(number))
    draft = session.draft()
    draft.start_message("user")
    session.commit(draft)
    assert order == list(range(20))


def test_signals_reach_everybody_and_closing_forgets_them() -> None:
    """A closed subscription gets nothing more."""
    session = PureSession()
    readers = [watch(session) for _ in range(2)]
    session.stream.signal("who", "typing", {"x": 1})
    session.stream.close("deleted", retryable=False)
    session.stream.signal("who", "typing", None)
    draft = session.draft()
    draft.start_message("user")
    session.commit(draft)
    for reader in readers:
        assert reader.signals == [Signalled("who", "typing", {"x": 1})]
        assert reader.closed == [Closed("deleted", retryable=False)]
        assert len(reader.frames) == 1
    assert session.stream.subscribers == {}


def test_a_clear_forgets_what_it_removed() -> None:
    """Open messages, and the changes of them: whoever was not there begins anew."""
    session, message = with_open_message()
    recorder = watch(session)
    cursor = recorder.cursor
    session.say(message, 1, "x")
    draft = session.draft()
    draft.clear()
    session.commit(draft)
    session.stream.forget_cleared()
    assert session.projection.open == {}
    assert cursor is not None
    assert session.stream.replay(cursor, include_internal=False) is None
    assert recorder.cursor is not None
    assert session.stream.replay(recorder.cursor, include_internal=False) is not None
