"""Laws of a replica beside those of the vectors: what it tells, what it keeps, what it is before a sync."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET, structs

from midstream.protocol.calls import Cursor
from midstream.protocol.frames import (
    Change,
    ChangeContent,
    Delta,
    Mark,
    SessionFrame,
    ShortDelta,
    Skip,
    Sync,
)
from midstream.protocol.merge import Replica, SavedReplica, Stage
from midstream.protocol.model import TextPart, Turn
from midstream.protocol.outcomes import (
    Appended,
    Applied,
    Gap,
    Ignored,
    MessageChanged,
    MessagesDropped,
    PageOutcome,
    SessionChanged,
    TurnChanged,
    WasReset,
)
from tests.protocol.session_model import CHANNEL, NAME, SessionModel

OPEN = TextPart(part_id="p1", sequence=1, text="", state="streaming")


class Talk:
    """A session with a user's and an agent's message, and a replica that follows it."""

    def __init__(self, *, internal: bool = False) -> None:
        self.internal = internal
        self.server = SessionModel()
        self.user = self.server.add("user", "visible", [TextPart(part_id="u", sequence=1, text="Hi")])
        self.agent = self.server.add("agent", "visible", [OPEN], turn_id="t1")
        self.replica = Replica(NAME, include_internal=internal)
        self.replica.apply(Sync(CHANNEL, self.server.reset(internal=internal, limit=50)))
        self.server.frames[internal].clear()

    def frames(self) -> list[SessionFrame]:
        """What the server made since it was asked last."""
        frames = list(self.server.frames[self.internal])
        self.server.frames[self.internal].clear()
        return frames

    def changes(self) -> list[object]:
        """What the replica says of them, one after the other."""
        outcomes = [self.replica.apply(frame) for frame in self.frames()]
        applied = [outcome for outcome in outcomes if isinstance(outcome, Applied)]
        assert len(applied) == len(outcomes)
        return [change for outcome in applied for change in outcome.changes]

    def apply_sync(self, since: int) -> tuple[object, ...]:
        """What the replica says of a sync from a version."""
        epoch = self.server.states[since].epoch
        cursor = Cursor(epoch=epoch, version=since, durable=0)
        outcome = self.replica.apply_sync(self.server.sync(cursor, internal=self.internal))
        assert isinstance(outcome, Applied)
        return outcome.changes


def test_a_delta_is_told_with_its_text() -> None:
    """A program can append, and need not compare."""
    talk = Talk()
    talk.server.grow(talk.agent, 1, "Hel")
    before = talk.server.now
    talk.server.grow(talk.agent, 1, "lo")
    version = talk.server.version
    assert talk.changes() == [
        Appended("m2", "p1", 2, 1, version - 1, before, "Hel"),
        Appended("m2", "p1", 2, 1, version, talk.server.now, "lo"),
    ]


def test_a_change_is_told_in_order_and_whether_it_was_committed() -> None:
    """Dropped, messages, turns, session."""
    talk = Talk()
    state = talk.server.state
    done = structs.replace(state.messages[2], parts=[structs.replace(OPEN, state="done")])
    turn = Turn(turn_id="t1", revision=0, state="completed", phase="streaming", phase_since=1, started_at=1)
    session = structs.replace(state.session, first_sequence=2)
    talk.server.publish(messages=[done], turns=[turn], session=session)
    version = talk.server.version
    assert talk.changes() == [
        MessagesDropped(("m1",)),
        MessageChanged("m2", 2, version, new=False, parts=(1,), durable=True),
        TurnChanged("t1", version),
        SessionChanged(version),
    ]
    talk.server.publish(messages=[done], durable=False)
    assert talk.changes() == [MessageChanged("m2", 2, version + 1, new=False, parts=(), durable=False)]


def test_a_new_message_is_told_with_all_its_parts() -> None:
    """And the session, whose count it raises."""
    talk = Talk()
    talk.server.add("user", "visible", [TextPart(part_id="u", sequence=1, text="And?")])
    version = talk.server.version
    assert talk.changes() == [
        MessageChanged("m3", 3, version, new=True, parts=(1,), durable=True),
        SessionChanged(version),
    ]


def test_a_replay_of_text_alone_is_told_as_text() -> None:
    """One that was away for a moment sees a delta, and nothing redrawn."""
    talk = Talk()
    since = talk.server.version
    talk.server.grow(talk.agent, 1, "Hel")
    talk.server.grow(talk.agent, 1, "lo")
    assert talk.apply_sync(since) == (
        Appended("m2", "p1", 2, 1, talk.server.version, talk.server.now, "Hello"),
    )


def test_a_replay_of_text_and_more_is_told_as_a_changed_message() -> None:
    """With the parts that grew among those that changed."""
    talk = Talk()
    since = talk.server.version
    talk.server.grow(talk.agent, 1, "Hello")
    message = talk.server.state.messages[2]
    second = TextPart(part_id="p2", sequence=2, text="x", state="streaming")
    talk.server.publish(messages=[structs.replace(message, parts=[*message.parts, second])])
    assert talk.apply_sync(since) == (
        MessageChanged("m2", 2, talk.server.version, new=False, parts=(1, 2), durable=True),
    )


def test_a_replay_of_text_and_its_end_is_told_as_a_changed_message() -> None:
    """Its state changed too."""
    talk = Talk()
    since = talk.server.version
    talk.server.grow(talk.agent, 1, "Hello")
    message = talk.server.state.messages[2]
    done = [structs.replace(part, state="done") for part in message.parts if isinstance(part, TextPart)]
    talk.server.publish(messages=[structs.replace(message, parts=list(done))])
    assert talk.apply_sync(since) == (
        MessageChanged("m2", 2, talk.server.version, new=False, parts=(1,), durable=True),
    )
    assert talk.replica.messages()[1].parts == done


def test_a_reset_is_told_as_one() -> None:
    """Whoever follows changes reads anew."""
    talk = Talk()
    assert talk.replica.apply_sync(talk.server.reset(internal=False, limit=1)) == Applied((WasReset(),))


def test_frames_that_show_nothing_are_applied_without_changes() -> None:
    """The version moves all the same."""
    talk = Talk()
    assert talk.replica.apply(Skip(CHANNEL, talk.replica.version, talk.replica.version + 5)) == Applied()
    below = Delta(CHANNEL, talk.replica.version + 1, 1, 0, 1, "x")
    assert talk.replica.apply(below) == Applied()


def test_the_list_of_messages_and_unchanged_messages_are_the_same_objects() -> None:
    """A user interface redraws what changed, by identity."""
    talk = Talk()
    before = talk.replica.messages()
    assert talk.replica.messages() is before
    talk.server.grow(talk.agent, 1, "x")
    talk.changes()
    after = talk.replica.messages()
    assert after is not before
    assert after[0] is before[0]
    assert after[1] is not before[1]
    assert talk.replica.message("m2") is after[1]
    assert talk.replica.message("m9") is None
    talk.replica.apply(Mark(CHANNEL, talk.replica.version))
    assert talk.replica.messages() is after


def test_before_the_answer_to_subscribe_frames_are_ignored() -> None:
    """And there is no cursor, nothing to store, nothing to show."""
    replica = Replica(NAME)
    for frame in (
        Delta(1, 1, 0, 1, 1, "x"),
        ShortDelta(1, 1, 0, "x"),
        Skip(1, 0, 5),
        Mark(1, 9),
        Change(1, 1, durable=True, content=ChangeContent()),
    ):
        assert replica.apply(frame) == Ignored()
    assert (replica.cursor(), replica.save(), replica.messages()) == (None, None, [])
    assert (replica.session, replica.running_turn, replica.stage) == (None, None, Stage.NEW)


def test_a_sync_onto_nothing_is_refused_unless_it_is_a_reset() -> None:
    """There is nothing that it could be added to."""
    talk = Talk()
    replica = Replica(NAME)
    cursor = Cursor(epoch="e1", version=talk.server.version, durable=0)
    outcome = replica.apply_sync(talk.server.sync(cursor, internal=False))
    assert isinstance(outcome, Gap)
    assert not outcome.keep_cursor


def test_after_a_restart_nothing_but_a_reset_is_applied() -> None:
    """Something is missing, so there is no cursor that could be stored."""
    talk = Talk()
    since = talk.replica.version
    shown = talk.replica.messages()
    assert isinstance(talk.replica.apply(Delta(CHANNEL, since + 1, 0, 9, 1, "x")), Gap)
    assert (talk.replica.cursor(), talk.replica.save(), talk.replica.stage) == (None, None, Stage.LOST)
    assert talk.replica.messages() is shown
    for frame in (
        Delta(CHANNEL, since + 1, 0, 2, 1, "x"),
        ShortDelta(CHANNEL, since + 1, 0, "x"),
        Mark(CHANNEL, since),
        Skip(CHANNEL, since, since + 1),
        Sync(CHANNEL, talk.server.sync(Cursor(epoch="e1", version=since, durable=0), internal=False)),
    ):
        outcome = talk.replica.apply(frame)
        assert isinstance(outcome, Gap)
        assert not outcome.keep_cursor
    assert isinstance(talk.replica.apply_sync(talk.server.reset(internal=False, limit=9)), Applied)
    assert talk.replica.stage is Stage.LIVE


def test_after_a_gap_the_cursor_is_the_one_before_it() -> None:
    """Nothing above it was applied."""
    talk = Talk()
    cursor = talk.replica.cursor()
    assert isinstance(talk.replica.apply(Mark(CHANNEL, talk.replica.version + 1)), Gap)
    assert talk.replica.cursor() == cursor
    assert talk.replica.stage is Stage.LIVE


@pytest.mark.parametrize("mode", ["reset", "catchup", "change"])
def test_frames_of_another_session_never_touch_a_replica(mode: str) -> None:
    """Whatever channel they come on."""
    talk, other = Talk(), SessionModel()
    foreign = structs.replace(other.state.session, session_id="other", revision=10**6)
    shown, version = talk.replica.messages(), talk.replica.version
    if mode == "change":
        frame: SessionFrame = Change(
            CHANNEL, version + 1, durable=True, content=ChangeContent(session=foreign)
        )
    else:
        payload = structs.replace(
            talk.server.reset(internal=False, limit=9), session=foreign, version=version + 1
        )
        catchup = structs.replace(payload, mode="catchup", from_version=version, messages=[])
        frame = Sync(CHANNEL, payload if mode == "reset" else catchup)
    assert isinstance(talk.replica.apply(frame), Gap)
    assert talk.replica.messages() is shown
    page = talk.server.page(None, internal=False, limit=9)
    page = structs.replace(page, items=[structs.replace(page.items[0], session_id="other")])
    bare = Talk()
    bare.replica.apply_sync(bare.server.reset(internal=False, limit=0))
    assert bare.replica.merge_page(page) is PageOutcome.DROPPED


def test_a_stored_replica_comes_back_and_counts_after_a_catchup_only() -> None:
    """One value holds replica, window and cursor; it survives any encoding."""
    talk = Talk()
    saved = talk.replica.save()
    assert saved is not None
    restored = Replica.restore(msgspec.json.decode(msgspec.json.encode(saved), type=SavedReplica))
    assert restored.messages() == talk.replica.messages()
    assert (restored.stage, restored.cursor()) == (Stage.RESTORED, talk.replica.cursor())
    assert (restored.session, restored.from_sequence) == (talk.replica.session, 1)
    talk.server.grow(talk.agent, 1, "x")
    (delta,) = talk.frames()
    assert restored.apply(delta) == Ignored()
    cursor = restored.cursor()
    assert cursor is not None
    talk.server.restart(clean=True)
    assert isinstance(restored.apply_sync(talk.server.sync(cursor, internal=False)), Applied)
    assert restored.stage is Stage.LIVE
    assert restored.messages() == talk.server.state.seen(internal=False)


def test_a_stored_replica_counts_also_where_nothing_was_missed() -> None:
    """The answer is a sync at its own version."""
    talk = Talk()
    saved, cursor = talk.replica.save(), talk.replica.cursor()
    assert saved is not None
    assert cursor is not None
    restored = Replica.restore(saved)
    assert restored.apply_sync(talk.server.sync(cursor, internal=False)) == Ignored()
    assert restored.stage is Stage.LIVE


def test_the_running_turn_is_the_one_that_the_session_names() -> None:
    """And none where it names none."""
    talk = Talk()
    turn = Turn(turn_id="t1", revision=0, state="running", phase="starting", phase_since=1, started_at=1)
    session = structs.replace(talk.server.state.session, running_turn_id="t1")
    talk.server.publish(turns=[turn], session=session)
    talk.changes()
    assert talk.replica.running_turn == structs.replace(turn, revision=talk.server.version)
    talk.server.publish(session=structs.replace(session, running_turn_id=UNSET))
    talk.changes()
    assert talk.replica.running_turn is None


def test_turns_are_bounded() -> None:
    """Those of messages, the running one and the newest 32 stay; the others go."""
    talk = Talk()
    for number in range(100):
        turn = Turn(
            turn_id=f"t{number}", revision=0, state="running", phase="starting", phase_since=1, started_at=1
        )
        session = structs.replace(talk.server.state.session, running_turn_id="t0")
        talk.server.publish(turns=[turn], session=session)
    talk.changes()
    kept = set(talk.replica.turns)
    assert {"t0", "t1", *(f"t{number}" for number in range(68, 100))} <= kept
    assert len(kept) <= 2 + 32 + 2


def test_internal_messages_are_a_replica_of_their_own() -> None:
    """The one without sees a skip and the count; the one with sees the message."""
    for internal in (False, True):
        talk = Talk(internal=internal)
        talk.server.add("user", "internal", [TextPart(part_id="u", sequence=1, text="hint")])
        talk.changes()
        assert len(talk.replica.messages()) == (3 if internal else 2)
        assert talk.replica.session is not None
        assert talk.replica.session.message_count == 3
        page = talk.server.page(None, internal=not internal, limit=9)
        assert talk.replica.merge_page(page) is PageOutcome.REREAD
