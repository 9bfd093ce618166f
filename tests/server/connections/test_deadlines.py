"""Laws of a connection's deadlines: silence, stall, owed syncs, marks and paces."""

import pytest

from midstream.protocol.frames import Mark, Ping, Pong
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.effects import Abort, Leave, Resync
from tests.server.connections.client import ByHand
from tests.server.connections.readers import CHANNEL, delta


def test_a_silent_client_is_asked_and_then_cut() -> None:
    """After one heartbeat a ping, after two the end, at the transport."""
    client = ByHand()
    assert client.run_until(14.9) == []
    client.run_until(0.2)
    assert [frame for frame in client.read() if isinstance(frame, Ping)]
    ((at, effect),) = client.run_until(60)
    assert at == pytest.approx(14.9)
    assert isinstance(effect, Abort)
    assert effect.code == CloseCode.HEARTBEAT_LOST


def test_a_client_that_answers_lives_for_ever() -> None:
    """One pong a heartbeat is enough."""
    client = ByHand()
    for _ in range(100):
        assert client.run_until(16) == []
        pings = [frame for frame in client.read() if isinstance(frame, Ping)]
        assert len(pings) == 1
        client.send(Pong(pings[0].nonce, 0))


def test_a_client_that_takes_no_byte_for_a_heartbeat_is_cut() -> None:
    """It may even send: what counts is that bytes wait and none moves."""
    client = ByHand()
    client.fill()
    client.written(moved=1_000, buffered=500, paused=True)
    effects: list[object] = []
    for _ in range(20):
        client.send(Pong(1, 1))
        client.clock.advance(1)
        client.written(moved=1_000, buffered=500, paused=True)
        effects += client.connection.on_time(client.clock.now())
        if effects:
            break
    assert isinstance(effects[0], Abort)
    assert effects[0].code == CloseCode.OVERLOADED
    assert client.clock.now() == pytest.approx(1_015)


def test_a_client_that_owes_a_sync_for_a_minute_is_cut() -> None:
    """It takes a byte now and then, but never enough."""
    client = ByHand()
    subscription = client.subscribed("s1")
    client.fill()
    subscription.publish(delta(11))
    effects: list[object] = []
    moved = 0
    while not effects:
        client.send(Pong(1, 1))
        moved += 10
        client.written(moved=moved, buffered=500, paused=True)
        effects += client.connection.on_time(client.clock.now())
        client.clock.advance(1)
    assert isinstance(effects[0], Abort)
    assert effects[0].code == CloseCode.OVERLOADED
    assert client.clock.now() == pytest.approx(1_061)
    assert effects[1:] == [Leave(subscription)]


def test_at_each_heartbeat_live_streams_that_moved_are_marked() -> None:
    """So the loss of the last frame is noticed; a stream that rests is not marked again."""
    client = ByHand()
    subscription = client.subscribed("s1")
    subscription.publish(delta(11))
    client.read()
    client.send(Pong(1, 1))
    client.run_until(15)
    assert [frame for frame in client.read() if isinstance(frame, Mark)] == [Mark(CHANNEL, 11)]
    client.send(Pong(1, 1))
    client.run_until(15)
    assert [frame for frame in client.read() if isinstance(frame, Mark)] == []


def test_a_paced_subscription_is_synced_at_its_pace() -> None:
    """Twenty times a second at 50 ms while something is missing, without a byte from the client."""
    client = ByHand()
    subscription = client.subscribed("s1", pace_ms=50)
    client.read()
    assert client.run_until(1) == []
    subscription.publish(delta(11))
    effects = client.run_until(1)
    assert [effect for _, effect in effects] == [Resync(subscription)] * 20
