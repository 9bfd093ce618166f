"""Laws of what waits for all readers together."""

from hypothesis import given
from hypothesis import strategies as st

from midstream.server.connections.backlog import LOW_MARK_BYTES, STALLED_SECONDS, Backlog

MARK = 1_000_000


class Reader:
    """A reader that took its last byte some seconds ago."""

    def __init__(self, still: float) -> None:
        """Have taken nothing for so long."""
        self.still = still

    def still_for(self, now: float) -> float:  # noqa: ARG002 - it stands still
        """Return it."""
        return self.still


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10_000))))
def test_the_sum_is_that_of_what_waits_for_each(notes: list[tuple[int, int]]) -> None:
    """However often it changes, and whoever goes."""
    backlog, readers, held = Backlog(MARK, 20_000), [Reader(0) for _ in range(6)], dict.fromkeys(range(6), 0)
    for number, size in notes:
        backlog.note(readers[number], size)
        held[number] = size
        assert backlog.held == sum(held.values())
        assert backlog.mark_bytes == (MARK if backlog.held <= 20_000 else LOW_MARK_BYTES)


def test_above_the_bound_those_go_who_take_nothing_and_hold_the_most() -> None:
    """As many as it takes, and nobody who is still reading, however much waits."""
    backlog = Backlog(MARK, 100)
    small, large, reading = Reader(STALLED_SECONDS), Reader(9), Reader(STALLED_SECONDS / 2)
    for reader, held in ((small, 40), (large, 50), (reading, 60)):
        backlog.note(reader, held)
    assert backlog.to_cut(1.0) == [large]
    assert backlog.to_cut(1.1) == []  # it was just looked
    backlog.note(reading, 200)
    assert backlog.to_cut(2.0) == [large, small]


def test_within_the_bound_nobody_goes() -> None:
    """Even one who has taken nothing for long: that is the heartbeat's to see."""
    backlog = Backlog(MARK, 100)
    backlog.note(Reader(1_000), 100)
    assert backlog.to_cut(50.0) == []
    assert backlog.mark_bytes == MARK


def test_a_mark_below_the_low_one_stays() -> None:
    """The bound never lets an outbox hold more."""
    backlog = Backlog(5_000, 100)
    backlog.note(Reader(0), 101)
    assert backlog.mark_bytes == 5_000
