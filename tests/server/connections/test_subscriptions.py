"""Laws of a connection's subscriptions: one a session, who is synced when, and what is overdue."""

import math

import pytest

from midstream.protocol.calls import SubscribeParams, SubscribeResult
from midstream.protocol.errors import LimitExceeded
from midstream.protocol.frames import Closed, Mark
from midstream.server.connections.outbox import Outbox
from midstream.server.connections.subscription import State, Subscription
from midstream.server.connections.subscriptions import ASKED_AT_ONCE, Subscriptions
from tests.server.connections.readers import CHANNEL, delta, outbox_of, read, sync


def of(outbox: Outbox, *, limit: int = 1_000) -> Subscriptions:
    """Return an empty collection."""
    return Subscriptions(outbox, limit=limit, sync_seconds=60)


def started(subscriptions: Subscriptions, session_id: str, *, now: float = 0, **params: int) -> Subscription:
    """Begin and start a subscription."""
    begun, _ = subscriptions.begin(SubscribeParams(session_id=session_id, **params))  # type: ignore[arg-type] # only integers
    assert subscriptions.start(begun, SubscribeResult(channel=CHANNEL, sync=sync(10)), now)
    return begun


def fall_behind(outbox: Outbox, *subscriptions: Subscription) -> None:
    """Fill the outbox, and publish to each."""
    while not outbox.above_mark:
        outbox.put("other", outbox.codec.encode(["x", "x" * 100]))
    for subscription in subscriptions:
        subscription.publish(delta(11))


def test_a_second_subscribe_replaces_the_first() -> None:
    """There is one subscription a session; the replaced one is over, whether it had started or not."""
    subscriptions = of(outbox_of())
    first, nothing = subscriptions.begin(SubscribeParams(session_id="s1"))
    second, replaced = subscriptions.begin(SubscribeParams(session_id="s1", limit=7, include_internal=True))
    assert nothing is None
    assert replaced is first
    assert first.state is State.CLOSED
    assert subscriptions.get("s1") is second
    assert len(subscriptions) == 1
    assert (second.limit, second.include_internal, second.pace_ms) == (7, True, 0)


def test_the_answer_to_a_replaced_subscribe_starts_nothing() -> None:
    """The session's answer to the first comes after the second was asked for."""
    subscriptions = of(outbox_of())
    first, _ = subscriptions.begin(SubscribeParams(session_id="s1"))
    second, _ = subscriptions.begin(SubscribeParams(session_id="s1"))
    assert not subscriptions.start(first, SubscribeResult(channel=CHANNEL, sync=sync(10)), 0)
    assert subscriptions.start(second, SubscribeResult(channel=CHANNEL, sync=sync(11)), 0)
    assert second.state is State.LIVE


def test_there_are_at_most_as_many_as_the_limit() -> None:
    """One more is refused by name; replacing one is not one more."""
    subscriptions = of(outbox_of(), limit=2)
    subscriptions.begin(SubscribeParams(session_id="s1"))
    subscriptions.begin(SubscribeParams(session_id="s2"))
    with pytest.raises(LimitExceeded) as caught:
        subscriptions.begin(SubscribeParams(session_id="s3"))
    assert caught.value.details == {"limit": "subscriptions", "maximum": 2, "actual": 3}
    assert len(subscriptions) == 2
    subscriptions.begin(SubscribeParams(session_id="s2"))


def test_nobody_is_asked_for_a_sync_before_the_outbox_is_empty() -> None:
    """A channel that fell behind waits for the outbox, and is then asked for once."""
    outbox = outbox_of()
    subscriptions = of(outbox)
    behind, fine = started(subscriptions, "s1"), started(subscriptions, "s2")
    fall_behind(outbox, behind)
    assert subscriptions.to_sync(1, empty=False) == []
    assert subscriptions.to_sync(2, empty=True) == [behind]
    assert subscriptions.to_sync(3, empty=True) == []
    assert fine.state is State.LIVE


def test_those_behind_are_asked_for_in_the_order_in_which_they_fell_a_few_at_a_time() -> None:
    """Of many channels only some are asked for, the next when one of those is up."""
    outbox = outbox_of()
    subscriptions = of(outbox)
    everyone = [started(subscriptions, f"s{number}") for number in range(ASKED_AT_ONCE + 5)]
    fall_behind(outbox, *everyone)
    assert subscriptions.to_sync(1, empty=True) == everyone[:ASKED_AT_ONCE]
    outbox.take(10**9)
    everyone[3].bring_up(sync(12))
    assert subscriptions.to_sync(2, empty=True) == [everyone[ASKED_AT_ONCE]]
    everyone[0].close("deleted", retryable=False)
    subscriptions.end("s1")
    assert subscriptions.to_sync(3, empty=True) == everyone[ASKED_AT_ONCE + 1 : ASKED_AT_ONCE + 3]


def test_a_sync_that_found_no_room_is_asked_for_again() -> None:
    """It was built when another one had filled the outbox."""
    outbox = outbox_of()
    subscriptions = of(outbox)
    behind = started(subscriptions, "s1")
    fall_behind(outbox, behind)
    assert subscriptions.to_sync(1, empty=True) == [behind]
    behind.bring_up(sync(12))
    assert behind.behind
    outbox.take(10**9)
    assert subscriptions.to_sync(2, empty=True) == [behind]


def test_a_sync_is_overdue_a_minute_after_the_channel_fell_behind() -> None:
    """The oldest debt counts; once paid it does not."""
    outbox = outbox_of()
    subscriptions = of(outbox)
    first, second = started(subscriptions, "s1"), started(subscriptions, "s2")
    assert subscriptions.overdue_at(0) == math.inf
    fall_behind(outbox, first)
    assert subscriptions.overdue_at(5) == 65
    fall_behind(outbox, second)
    assert subscriptions.overdue_at(7) == 65
    outbox.take(10**9)
    first.bring_up(sync(12))
    assert subscriptions.overdue_at(8) == 67
    second.bring_up(sync(12))
    assert subscriptions.overdue_at(9) == math.inf


def test_a_paced_one_is_asked_for_at_its_beat() -> None:
    """Each beat asks once, however late it is noticed."""
    subscriptions = of(outbox_of())
    paced = started(subscriptions, "s1", now=100, pace_ms=50)
    paced.publish(delta(11))
    assert subscriptions.next_pace() == pytest.approx(100.05)
    assert subscriptions.to_sync(100.04, empty=True) == []
    assert subscriptions.to_sync(100.05, empty=True) == [paced]
    assert subscriptions.to_sync(100.05, empty=True) == []
    assert subscriptions.next_pace() == pytest.approx(100.10)
    assert subscriptions.to_sync(103, empty=True) == [paced]
    assert subscriptions.next_pace() == pytest.approx(103.05)


def test_a_paced_one_whose_beat_finds_the_outbox_full_waits_for_it() -> None:
    """It is owed a sync from that beat on, and asked for once when there is room."""
    subscriptions = of(outbox_of())
    paced = started(subscriptions, "s1", now=100, pace_ms=50)
    paced.publish(delta(11))
    assert subscriptions.to_sync(100.05, empty=False) == []
    assert subscriptions.overdue_at(100.05) == pytest.approx(160.05)
    assert subscriptions.to_sync(100.06, empty=True) == [paced]
    assert subscriptions.to_sync(100.07, empty=True) == []
    assert subscriptions.overdue_at(100.07) == math.inf


def test_a_paced_one_that_lacks_nothing_is_owed_nothing() -> None:
    """However long its first answer takes on a slow link, it is not cut for a sync that nobody needs."""
    subscriptions = of(outbox_of())
    paced = started(subscriptions, "s1", now=100, pace_ms=50)
    assert subscriptions.to_sync(100.05, empty=False) == []
    assert subscriptions.overdue_at(100.05) == math.inf
    assert subscriptions.to_sync(100.10, empty=True) == []
    paced.publish(delta(11))
    assert subscriptions.to_sync(100.15, empty=True) == [paced]
    paced.bring_up(sync(11))
    assert subscriptions.to_sync(100.20, empty=True) == []


def test_who_is_gone_is_not_asked_for() -> None:
    """An ended or closed subscription leaves nothing behind: no debt, no pace."""
    outbox = outbox_of()
    subscriptions = of(outbox)
    for number, end in enumerate(("end", "close")):
        behind = started(subscriptions, f"s{number}")
        paced = started(subscriptions, f"p{number}", pace_ms=20)
        fall_behind(outbox, behind)
        for subscription in (behind, paced):
            if end == "end":
                assert subscriptions.end(subscription.session_id) is subscription
            else:
                subscription.close("deleted", retryable=False)
    assert subscriptions.to_sync(1, empty=True) == []
    assert subscriptions.overdue_at(1) == math.inf
    assert subscriptions.next_pace() == math.inf
    assert subscriptions.all() == []


def test_closing_a_replaced_subscription_does_not_end_its_successor() -> None:
    """The session closes all it knows; one that was replaced meanwhile is silent already."""
    outbox = outbox_of()
    subscriptions = of(outbox)
    old = started(subscriptions, "s1")
    new, _ = subscriptions.begin(SubscribeParams(session_id="s1"))
    old.close("reload", retryable=True)
    assert subscriptions.get("s1") is new
    assert not [frame for frame in read(outbox) if isinstance(frame, Closed)]


def test_marks_are_put_for_all_that_moved() -> None:
    """Each live subscription says where it stands."""
    outbox = outbox_of()
    subscriptions = of(outbox)
    started(subscriptions, "s1").publish(delta(11))
    started(subscriptions, "s2")
    subscriptions.marks()
    assert [frame for frame in read(outbox) if isinstance(frame, Mark)] == [
        Mark(CHANNEL, 11),
        Mark(CHANNEL, 10),
    ]
