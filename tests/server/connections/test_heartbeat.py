"""Laws of silence and stall."""

from midstream.server.connections.heartbeat import Heartbeat


def test_a_silent_peer_is_asked_after_one_heartbeat_and_lost_after_two() -> None:
    """It is asked once; not one byte in two heartbeats is the end."""
    heartbeat = Heartbeat(10, 100)
    assert not heartbeat.ask(109.9)
    assert heartbeat.ask(110)
    assert not heartbeat.ask(110)
    assert not heartbeat.ask(115)
    assert not heartbeat.lost(119.9)
    assert heartbeat.lost(120)


def test_any_byte_ends_the_silence() -> None:
    """After a byte the peer has two heartbeats again, and may be asked again."""
    heartbeat = Heartbeat(10, 100)
    assert heartbeat.ask(110)
    heartbeat.heard(115)
    assert not heartbeat.lost(134.9)
    assert not heartbeat.ask(124.9)
    assert heartbeat.ask(125)
    assert heartbeat.lost(135)


def test_bytes_that_wait_and_do_not_move_for_a_heartbeat_are_a_stall() -> None:
    """The time counts from when bytes began to wait, or last moved."""
    heartbeat = Heartbeat(10, 100)
    heartbeat.sampled(150, moved=1_000, waiting=False)
    heartbeat.sampled(160, moved=1_000, waiting=True)
    assert not heartbeat.stalled(169.9)
    assert heartbeat.stalled(170)
    heartbeat.sampled(170, moved=1_001, waiting=True)
    assert not heartbeat.stalled(179.9)
    assert heartbeat.stalled(180)


def test_nothing_waiting_is_no_stall() -> None:
    """An idle connection may be idle for ever."""
    heartbeat = Heartbeat(10, 100)
    heartbeat.sampled(110, moved=5, waiting=False)
    assert not heartbeat.stalled(10**6)


def test_a_count_that_went_back_is_no_movement() -> None:
    """Bytes that websockets adds to the buffer by itself lower the count; that is not progress."""
    heartbeat = Heartbeat(10, 100)
    heartbeat.sampled(100, moved=1_000, waiting=True)
    heartbeat.sampled(104, moved=900, waiting=True)
    heartbeat.sampled(108, moved=1_000, waiting=True)
    assert heartbeat.stalled(110)


def test_it_beats_once_a_heartbeat() -> None:
    """However late somebody looks, it is one beat."""
    heartbeat = Heartbeat(10, 100)
    assert not heartbeat.beat(109.9)
    assert heartbeat.beat(110)
    assert not heartbeat.beat(110)
    assert heartbeat.beat(135)
    assert not heartbeat.beat(144)
    assert heartbeat.beat(145)


def test_whoever_looks_at_each_deadline_misses_nothing() -> None:
    """Going from deadline to deadline, the question, the loss and the stall are seen when they are due."""
    heartbeat = Heartbeat(10, 100)
    heartbeat.heard(103)
    now, seen = 103.0, dict[str, float]()
    while not heartbeat.lost(now):
        now = heartbeat.next_deadline()
        heartbeat.beat(now)
        if heartbeat.ask(now):
            seen["asked"] = now
        heartbeat.sampled(now, moved=7, waiting=True)
        if heartbeat.stalled(now):
            seen.setdefault("stalled", now)
            heartbeat.sampled(now, moved=7, waiting=False)
    assert seen == {"asked": 113, "stalled": 120}
    assert now == 123
