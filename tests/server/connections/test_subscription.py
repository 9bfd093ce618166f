"""Laws of one subscription: what enters the outbox, and where its cursor stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.calls import Cursor
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import Closed, Delta, Mark, Signal, Skip, Sync
from midstream.server.connections.outbox import Outbox
from midstream.server.connections.subscription import State, Subscription
from tests.server.connections.readers import CHANNEL, EPOCH, commit, delta, outbox_of, read, sync


class Owner:
    """Notes what a subscription tells of itself."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def fell_behind(self, subscription: Subscription) -> None:
        """Note it."""
        self.told.append(f"{subscription.session_id} behind")

    def caught_up(self, subscription: Subscription) -> None:
        """Note it."""
        self.told.append(f"{subscription.session_id} caught up")

    def missed(self, subscription: Subscription) -> None:
        """Note it."""
        self.told.append(f"{subscription.session_id} missed")

    def closed(self, subscription: Subscription) -> None:
        """Note it."""
        self.told.append(f"{subscription.session_id} closed")


def live(
    outbox: Outbox, owner: Owner | None = None, *, pace_ms: int = 0, internal: bool = False
) -> Subscription:
    """Return a subscription that was started at version 10."""
    subscription = Subscription(
        "s1", outbox, owner or Owner(), include_internal=internal, limit=5, pace_ms=pace_ms
    )
    subscription.start(CHANNEL, sync(10))
    return subscription


def fill(outbox: Outbox) -> None:
    """Bring the outbox above its mark with another session's frames."""
    while not outbox.above_mark:
        outbox.put("other", outbox.codec.encode(["x", "x" * 100]))


def test_nothing_enters_before_the_subscribe_is_answered() -> None:
    """A broadcast, a signal or a mark that comes too early is dropped, and the cursor is unknown."""
    outbox = outbox_of()
    subscription = Subscription("s1", outbox, Owner())
    subscription.publish(delta(11))
    subscription.signal("them", "typing", None)
    subscription.mark()
    assert outbox.size == 0
    assert subscription.cursor is None


@pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])
def test_a_live_subscription_passes_every_broadcast_on_and_its_cursor_follows(codec: Codec) -> None:
    """The cursor is the version, the epoch and the durable version of what entered last."""
    outbox = outbox_of(codec)
    subscription = live(outbox)
    for broadcast in (delta(11, "a"), delta(12, "é𝄞"), commit(13), delta(14)):
        subscription.publish(broadcast)
        assert subscription.cursor == broadcast.cursor
    assert [frame.version for frame in read(outbox) if isinstance(frame, Delta)] == [11, 12, 14]


def test_a_broadcast_is_one_object_in_all_outboxes_of_a_codec() -> None:
    """The frame for a thousand readers is encoded and framed once."""
    outboxes = [outbox_of(), outbox_of(), outbox_of(JSON)]
    broadcast = delta(11)
    for outbox in outboxes:
        live(outbox).publish(broadcast)
    first, second, other = (outbox.take(10**9)[0] for outbox in outboxes)
    assert first is second
    assert other != first


def test_each_view_gets_its_own_frame() -> None:
    """A subscription without internal messages sees the visible frame, one with them the full one."""
    broadcast = delta(11, visible=Skip(CHANNEL, 10, 11))
    plain, full = outbox_of(), outbox_of()
    live(plain).publish(broadcast)
    live(full, internal=True).publish(broadcast)
    assert read(plain) == [Skip(CHANNEL, 10, 11)]
    assert read(full) == list(broadcast.frames(include_internal=True))


@pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])
def test_a_long_broadcast_goes_in_chunks(codec: Codec) -> None:
    """A frame above the chunk limit reaches the client whole, in pieces numbered by its connection."""
    outbox = outbox_of(codec)
    text = 'a"é𝄞' * 1_000
    broadcast = delta(11, text)
    live(outbox).publish(broadcast)
    live(outbox_of(codec)).publish(broadcast)
    assert read(outbox) == [Delta(CHANNEL, 11, 10, 1, 1, text)]


def test_above_the_mark_nothing_of_the_channel_enters() -> None:
    """Behind, it drops broadcasts, signals and marks, and its cursor stays at what entered last."""
    outbox, owner = outbox_of(), Owner()
    subscription = live(outbox, owner)
    fill(outbox)
    size = outbox.size
    subscription.publish(delta(11))
    outbox.take(10**9)  # there is room again, but a sync is owed first
    subscription.publish(delta(12))
    subscription.signal("them", "typing", None)
    subscription.mark()
    assert size > 0
    assert outbox.size == 0
    assert subscription.behind
    assert owner.told == ["s1 behind"]
    assert subscription.cursor == Cursor(epoch=EPOCH, version=10, durable=0)


def test_the_sync_that_is_owed_makes_it_live_again() -> None:
    """After `bring_up` the next broadcast continues at the sync's version."""
    outbox, owner = outbox_of(), Owner()
    subscription = live(outbox, owner)
    fill(outbox)
    subscription.publish(delta(11))
    outbox.take(10**9)
    subscription.bring_up(sync(20, since=10, epoch="00000000000000e2"))
    assert subscription.cursor == Cursor(epoch="00000000000000e2", version=20, durable=10)
    subscription.publish(delta(21))
    assert read(outbox) == [
        Sync(CHANNEL, sync(20, since=10, epoch="00000000000000e2")),
        Delta(CHANNEL, 21, 10, 1, 1, "text"),
    ]
    assert owner.told == ["s1 behind", "s1 caught up"]


def test_a_sync_that_finds_no_room_is_still_owed() -> None:
    """Another channel's sync filled the outbox: this one stays behind, from where it was."""
    outbox, owner = outbox_of(), Owner()
    subscription = live(outbox, owner)
    fill(outbox)
    subscription.publish(delta(11))
    size = outbox.size
    subscription.bring_up(sync(20, since=10))
    assert outbox.size == size
    assert subscription.state is State.BEHIND
    assert subscription.cursor == Cursor(epoch=EPOCH, version=10, durable=0)
    assert owner.told == ["s1 behind", "s1 missed"]


def test_a_sync_before_the_answer_to_a_change_enters_however_full_the_outbox_is() -> None:
    """The answer to a call that changed something is sent in any case, so what comes before it is too."""
    outbox = outbox_of()
    subscription = live(outbox)
    fill(outbox)
    subscription.publish(delta(11))
    subscription.answers_due = 1
    subscription.bring_up(sync(20, since=10))
    assert subscription.state is State.LIVE
    assert read(outbox)[-1] == Sync(CHANNEL, sync(20, since=10))


def test_a_sync_that_nobody_owes_is_dropped() -> None:
    """An answer to an older request for a sync comes when the subscription is live: it would only repeat."""
    outbox = outbox_of()
    subscription = live(outbox)
    subscription.bring_up(sync(10, since=9))
    assert outbox.size == 0


def test_a_paced_subscription_gets_syncs_and_marks_alone() -> None:
    """It is behind by choice, before and after each sync; a mark says that the last one was the last."""
    outbox = outbox_of()
    subscription = live(outbox, pace_ms=50)
    subscription.publish(delta(11))
    assert outbox.size == 0
    for version in (11, 15):
        assert subscription.behind
        subscription.bring_up(sync(version, since=10))
        subscription.publish(delta(version + 1))
    subscription.mark()
    frames = read(outbox)
    assert [frame.payload.version for frame in frames if isinstance(frame, Sync)] == [11, 15]
    assert frames[-1] == Mark(CHANNEL, 15)
    assert len(frames) == 3
    assert subscription.state is State.PACED


def test_marks_come_only_after_something_moved() -> None:
    """One mark after the answer to `subscribe` or a broadcast, none while nothing happens."""
    outbox = outbox_of()
    subscription = live(outbox)
    subscription.mark()
    subscription.mark()
    assert read(outbox) == [Mark(CHANNEL, 10)]
    subscription.publish(delta(11))
    subscription.mark()
    subscription.mark()
    assert read(outbox)[1:] == [Mark(CHANNEL, 11)]


def test_a_mark_that_finds_no_room_comes_later() -> None:
    """It is not forgotten that the stream moved."""
    outbox = outbox_of()
    subscription = live(outbox)
    fill(outbox)
    subscription.mark()
    outbox.take(10**9)
    subscription.mark()
    assert read(outbox) == [Mark(CHANNEL, 10)]


def test_a_signal_is_passed_on_or_dropped() -> None:
    """With room it enters; without it is dropped, and nothing is owed for it."""
    outbox = outbox_of()
    subscription = live(outbox)
    subscription.signal("them", "typing", {"on": True})
    assert read(outbox) == [Signal(CHANNEL, "them", "typing", {"on": True})]
    fill(outbox)
    size = outbox.size
    subscription.signal("them", "typing", {"on": True})
    assert outbox.size == size
    assert not subscription.behind


def test_closed_passes_even_when_behind() -> None:
    """However full the outbox is, the client learns that the subscription ended, and nothing follows."""
    outbox, owner = outbox_of(), Owner()
    subscription = live(outbox, owner)
    fill(outbox)
    subscription.publish(delta(11))
    subscription.close("reload", retryable=True)
    subscription.close("deleted", retryable=False)
    subscription.publish(delta(12))
    subscription.bring_up(sync(20))
    closed = [frame for frame in read(outbox) if isinstance(frame, Closed)]
    assert closed == [Closed(CHANNEL, "reload", True)]  # noqa: FBT003 - the frame's order
    assert owner.told == ["s1 behind", "s1 closed"]


def test_one_that_was_left_is_silent() -> None:
    """Whatever the session still sends to it is dropped, `closed` included."""
    outbox, owner = outbox_of(), Owner()
    subscription = live(outbox, owner)
    subscription.leave()
    subscription.publish(delta(11))
    subscription.signal("them", "typing", None)
    subscription.mark()
    subscription.bring_up(sync(20))
    subscription.close("deleted", retryable=False)
    assert outbox.size == 0
    assert owner.told == []


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("delta"), st.integers(0, 3_000)),
            st.tuples(st.just("read"), st.integers(1, 3_000)),
            st.tuples(st.just("sync"), st.just(0)),
        ),
        max_size=60,
    )
)
def test_what_enters_is_one_chain_of_versions(steps: list[tuple[str, int]]) -> None:
    """However a client reads, each frame it gets continues where the one before ended."""
    outbox = outbox_of()
    subscription = live(outbox)
    version, messages = 10, list[bytes]()
    for kind, number in [*steps, ("read", 10**9), ("sync", 0), ("read", 10**9)]:
        if kind == "delta":
            version += 1
            subscription.publish(delta(version, "x" * number))
        elif kind == "read":
            messages += outbox.take(number)
        elif outbox.size == 0 and subscription.behind:
            cursor = subscription.cursor
            assert cursor is not None
            subscription.bring_up(sync(version, since=cursor.version))

    reached = 10
    whole = outbox_of()
    for message in messages:
        whole.put_sealed("s1", message)
    for frame in read(whole):
        if isinstance(frame, Sync):
            assert frame.payload.from_version == reached
            reached = frame.payload.version
        else:
            assert isinstance(frame, Delta)
            assert frame.version == reached + 1
            reached = frame.version
    assert reached == version
