"""The history: what a reader missed, folded, is the same to it as every change one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given, settings
from msgspec import UNSET, structs

from midstream.protocol.calls import Cursor
from midstream.protocol.frames import Sync, SyncPayload
from midstream.protocol.live import LiveMessage
from midstream.protocol.merge import Replica, SavedReplica
from midstream.protocol.model import Message, TextPart, ToolPart
from midstream.protocol.outcomes import Applied
from midstream.server.sessions.history import History
from midstream.server.sessions.ticks import size_of
from tests.server.sessions.pure_session import PureSession, streaming_text, with_open_message
from tests.server.sessions.pure_turns import answer, end, prompt
from tests.server.sessions.recorder import Recorder, over_the_wire
from tests.server.sessions.scribe import Deed, Scribe, lives

if TYPE_CHECKING:
    from midstream.protocol.frames import MessageEntry


def replay(session: PureSession, since: int, *, include_internal: bool = True) -> SyncPayload:
    """What a reader at a version of this epoch missed."""
    cursor = Cursor(epoch=session.versions.epoch, version=since, durable=0)
    payload = session.stream.replay(cursor, include_internal=include_internal)
    assert payload is not None
    frame = over_the_wire(Sync(1, payload))
    assert isinstance(frame, Sync)
    return frame.payload


def watch(session: PureSession, *, include_internal: bool) -> Recorder:
    """Subscribe to a session without messages."""
    recorder = Recorder(include_internal=include_internal)
    recorder.join(
        SyncPayload(
            mode="reset",
            epoch=session.versions.epoch,
            version=session.versions.published,
            durable=session.versions.durable,
            session=session.projection.session,
            has_more=False,
        )
    )
    session.stream.add(recorder)
    return recorder


def seen(replica: Replica) -> tuple[object, ...]:
    """All that a reader has."""
    return replica.session, replica.messages(), dict(replica.turns), replica.version, replica.epoch


@settings(max_examples=200, deadline=None)
@given(lives)
def test_a_replay_from_any_point_equals_the_changes_one_by_one(life: list[Deed]) -> None:
    """In both views: each reader that stopped somewhere becomes, by one sync, the one that saw it all."""
    session = PureSession()
    scribe = Scribe(session)
    watchers = [watch(session, include_internal=internal) for internal in (False, True)]
    stopped: list[SavedReplica] = []
    stopped += [saved for watcher in watchers if (saved := watcher.replica.save())]
    for _ in scribe.live(life):
        stopped += [saved for watcher in watchers if (saved := watcher.replica.save())]
    for watcher in watchers:
        held = [
            message
            for message in session.messages()
            if watcher.include_internal or message.visibility == "visible"
        ]
        assert watcher.replica.messages() == held
    for saved in stopped:
        replica = Replica.restore(saved)
        payload = replay(session, saved.cursor.version, include_internal=saved.include_internal)
        replica.apply_sync(payload)
        expected = watchers[saved.include_internal].replica
        assert seen(replica) == seen(expected)
        assert replica.durable <= expected.durable
        hold_to_its_form(payload, session)


def hold_to_its_form(payload: SyncPayload, session: PureSession) -> None:
    """Entries ascend, are stamped with their messages' revisions, and never say a part twice."""
    sequences = [entry.sequence for entry in payload.messages]
    assert sequences == sorted(set(sequences))
    for entry in payload.messages:
        revision = payload.version if entry.revision is UNSET else entry.revision
        assert revision == session.message(entry.sequence).revision
        assert payload.from_version is not UNSET
        assert payload.from_version < revision <= payload.version
        whole, appended = {part.sequence for part in entry.parts}, {number for number, _ in entry.appends}
        assert not whole & appended
        assert max(whole | appended, default=0) <= entry.part_count
        assert sorted(whole) == [part.sequence for part in entry.parts]


def test_deltas_that_alternate_are_joined_each_in_its_own_order() -> None:
    """However many came, a part has one text."""
    session, message = with_open_message()
    draft = session.draft()
    draft.add_part(message, streaming_text())
    session.commit(draft)
    since = session.versions.published
    for text in ("a", "b", "c"):
        session.say(message, 1, text)
        session.say(message, 2, text.upper())
    [entry] = replay(session, since).messages
    assert (entry.parts, entry.appends) == ([], [(1, "abc"), (2, "ABC")])


def test_deltas_to_parts_of_the_same_number_go_to_their_own_messages() -> None:
    """A tool's arguments may still stream in a message that a steering input closed."""
    session = PureSession()
    prompt(session, "m")
    behind = answer(session, ToolPart(tool_call_id="c", tool_name="t", state="input-streaming"))
    draft = session.draft()
    draft.close_message(behind)
    session.commit(draft)
    ahead = answer(session, streaming_text())
    since = session.versions.published
    for number in range(4):
        session.say(ahead if number % 2 else behind, 1, str(number))
    entries = replay(session, since).messages
    assert [(entry.sequence, entry.appends) for entry in entries] == [
        (behind, [(1, "02")]),
        (ahead, [(1, "13")]),
    ]


def test_a_replay_costs_what_was_missed_and_not_what_was_said_before() -> None:
    """A long text that grew by a little is not sent again."""
    session, message = with_open_message()
    session.say(message, 1, "x" * 100_000)
    since = session.versions.published
    for _ in range(1_000):
        session.say(message, 1, "y")
    assert len(msgspec.msgpack.encode(replay(session, since))) <= 1_000 + 512


def test_a_reader_that_missed_nothing_is_told_nothing() -> None:
    """An empty replay, at its own version."""
    session, _ = with_open_message()
    payload = replay(session, session.versions.published)
    assert (payload.messages, payload.turns, payload.session) == ([], [], UNSET)
    assert payload.from_version == payload.version == session.versions.published


def test_a_view_without_internal_messages_is_told_only_that_versions_passed() -> None:
    """And of the session, which counts them."""
    session = PureSession()
    watcher = watch(session, include_internal=False)
    since = session.versions.published
    Scribe(session).do(Deed("internal", 0, "hidden", stored=True))
    payload = replay(session, since, include_internal=False)
    assert payload.messages == []
    assert payload.session is not UNSET
    assert payload.session.message_count == 1
    assert watcher.replica.messages() == []
    assert len(replay(session, since, include_internal=True).messages) == 1


def test_only_cursors_that_the_history_can_serve_are_served() -> None:
    """Another epoch, a version that is not reached, a commit that was not made, and too long ago."""
    session, message = with_open_message()
    session.say(message, 1, "x")
    here = Cursor(
        epoch=session.versions.epoch, version=session.versions.published, durable=session.versions.durable
    )
    assert session.stream.replay(here, include_internal=True) is not None
    for cursor in (
        structs.replace(here, epoch="another"),
        structs.replace(here, version=here.version + 1),
        structs.replace(here, durable=here.durable + 1),
    ):
        assert session.stream.replay(cursor, include_internal=True) is None
    again = PureSession(session.store)
    old = structs.replace(here, version=again.versions.published - 1, durable=0)
    assert again.stream.replay(old, include_internal=True) is None


def live() -> LiveMessage:
    """A message with one text."""
    return LiveMessage(
        Message(
            message_id="m",
            session_id="s",
            sequence=1,
            revision=0,
            role="agent",
            visibility="visible",
            created_at=0,
            updated_at=0,
            state="streaming",
            parts=[streaming_text()],
        )
    )


def record(history: History, message: LiveMessage, version: int, text: str) -> None:
    """Add a delta to a message, and to a history."""
    message.append(1, text, revision=version, updated_at=0)
    history.add_delta(message, 1, text, size_of(text))


def test_the_history_is_bounded_and_says_what_it_has_forgotten() -> None:
    """The oldest goes first; the floor rises to it, so a reader below it is not served wrongly."""
    history = History(floor=10, max_bytes=10_000)
    message = live()
    for version in range(11, 111):
        record(history, message, version, "é" * 50)
    assert history.floor > 10
    assert not history.covers(history.floor - 1)
    assert history.covers(history.floor)
    payload = history.replay(history.floor, epoch="e", version=110, durable=0, include_internal=True)
    assert [(number, len(text)) for entry in payload.messages for number, text in entry.appends] == [
        (1, 50 * (110 - history.floor))
    ]
    assert 100 * (110 - history.floor) <= 10_000


def test_a_long_text_is_forgotten_bit_by_bit() -> None:
    """A reader that missed a little of it is served from the history, however long it has become."""
    history = History(floor=0, max_bytes=100_000)
    message = live()
    for version in range(1, 5_001):
        record(history, message, version, "x" * 100)
        held = version - history.floor
        assert held == version or held * 100 >= 40_000


def test_a_change_larger_than_the_history_is_forgotten_at_once() -> None:
    """And everything before it."""
    history = History(floor=0, max_bytes=1_000)
    message = live()
    record(history, message, 1, "x")
    record(history, message, 2, "x" * 2_000)
    assert history.floor == 2
    record(history, message, 3, "x")
    assert history.floor == 2
    assert history.covers(2)


def test_changes_are_bounded_by_what_they_hold() -> None:
    """By the bytes of their parts."""
    session = PureSession(history_bytes=200_000)
    prompt(session, "m")
    start = session.versions.published
    for _ in range(30):
        answer(session, TextPart(text="x" * 20_000, state="done"))
    floor = session.stream.history.floor
    assert start < floor < session.versions.published
    assert session.versions.published - floor <= 10


def test_of_a_session_that_changes_often_only_the_last_state_is_held() -> None:
    """Who missed all of them is told it, and it takes the room of one."""
    session = PureSession(history_bytes=200_000)
    prompt(session, "m")
    start = session.versions.published
    for _ in range(30):
        draft = session.draft()
        draft.session = structs.replace(draft.session, metadata={str(draft.now): "x" * 20_000})
        session.commit(draft)
    assert session.stream.history.covers(start)
    assert replay(session, start).session == session.projection.session
    assert replay(session, session.versions.published).session is UNSET


def test_turns_that_are_forgotten_are_held_no_longer() -> None:
    """Who is told of the others is told each once, in the order in which they changed last."""
    session = PureSession(history_bytes=20_000)
    for number in range(40):
        prompt(session, f"m{number}")
        answer(session, TextPart(text="x" * 200, state="done"))
        end(session)
    floor = session.stream.history.floor
    assert floor > 1
    turns = replay(session, floor).turns
    assert [turn.revision for turn in turns] == sorted({turn.revision for turn in turns})
    assert len({turn.turn_id for turn in turns}) == len(turns) < 40
    assert all(turn.revision > floor for turn in turns)


def entry_of(payload: SyncPayload) -> MessageEntry:
    """The one entry of a payload."""
    [entry] = payload.messages
    return entry


def test_what_was_dropped_and_taken_by_another_part_is_sent_whole() -> None:
    """A reader that has the old text must not keep it under the new part."""
    session, message = with_open_message()
    session.say(message, 1, "old")
    since = session.versions.published
    session.say(message, 1, " text")
    draft = session.draft()
    draft.truncate(message, 0)
    draft.add_part(message, streaming_text("new"))
    session.commit(draft)
    session.say(message, 1, " words")
    entry = entry_of(replay(session, since))
    assert [part.text for part in entry.parts if isinstance(part, TextPart)] == ["new words"]
    assert entry.appends == []


def test_a_new_epoch_begins_the_history_anew() -> None:
    """Its first change is in it; what was before is another epoch's."""
    session, message = with_open_message()
    again = PureSession(session.store, generation=2)
    before = again.versions.published
    draft = again.draft()
    draft.close_message(message)
    again.commit(draft)
    assert entry_of(replay(again, before)).state == "done"
    assert again.stream.history.floor == before
    outcome = Replica("s").apply_sync(replay(again, before))
    assert not isinstance(outcome, Applied)
