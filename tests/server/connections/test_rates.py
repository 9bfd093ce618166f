"""Laws of the limits on rates and connections."""

from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.limits import Limits
from midstream.server.connections.rates import Bucket, Subjects


def test_as_many_as_a_second_allows_may_come_at_once_and_no_more() -> None:
    """A full bucket gives its tokens at one instant, and one each fraction of a second after."""
    bucket = Bucket(5, 100)
    assert [bucket.take(100) for _ in range(6)] == [True] * 5 + [False]
    assert not bucket.take(100.19)
    assert bucket.take(100.21)
    assert not bucket.take(100.21)


def test_an_idle_bucket_does_not_overflow() -> None:
    """An hour of silence is worth one second's tokens."""
    bucket = Bucket(5, 0)
    assert sum(bucket.take(3_600) for _ in range(20)) == 5


@given(gaps=st.lists(st.floats(0, 0.3), max_size=200))
def test_in_no_time_do_more_pass_than_it_allows(gaps: list[float]) -> None:
    """Over any span from the start, at most the burst and the rate pass."""
    bucket, now, passed = Bucket(5, 0), 0.0, 0
    for gap in gaps:
        now += gap
        passed += bucket.take(now)
        assert passed <= 5 + 5 * now + 1e-6


def test_a_subject_has_at_most_its_connections_and_gets_them_back() -> None:
    """One subject's connections do not count for another."""
    subjects = Subjects(Limits(connections_per_subject=2))
    assert [subjects.enter("a", 0) for _ in range(3)] == [True, True, False]
    assert subjects.enter("b", 0)
    subjects.leave("a")
    assert subjects.enter("a", 0)
    assert not subjects.enter("a", 0)


def test_all_connections_of_a_subject_share_its_calls() -> None:
    """However many it opens; another subject has its own."""
    subjects = Subjects(Limits(calls_per_subject=3))
    for name in ("a", "a", "b"):
        subjects.enter(name, 0)
    assert [subjects.take("a", 0) for _ in range(4)] == [True, True, True, False]
    subjects.leave("a")
    assert not subjects.take("a", 0.1)
    assert subjects.take("b", 0)
    assert subjects.take("a", 1)
