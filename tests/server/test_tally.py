"""Laws of what is counted: every value has its place, and strangers make no new ones."""

from __future__ import annotations

from midstream.protocol.calls import PARAMS
from midstream.server.tally import Histogram, Tally


def test_calls_have_a_series_for_each_method_and_one_for_all_others() -> None:
    """Strangers choose the name of a method that there is not."""
    tally = Tally()
    assert set(tally.calls) == {*PARAMS, "other"}
    for number in range(100):
        tally.called(f"method-{number}", 0.1)
    assert tally.calls["other"].count == 100
    assert set(tally.calls) == {*PARAMS, "other"}


def test_a_histogram_counts_a_value_at_its_bound_below_it() -> None:
    """As ``le`` says: less or equal."""
    histogram = Histogram((1, 2))
    for value in (0.5, 1, 1.5, 2, 3):
        histogram.add(value)
    assert (histogram.counts, histogram.total, histogram.count) == ([2, 2, 1], 8, 5)


def test_codes_that_strangers_choose_share_one_place() -> None:
    """Close codes of clients, and codes of errors that a host makes up."""
    tally = Tally()
    for code in range(1_000, 5_000):
        tally.closed("client", code)
        tally.refused(f"code-{code}")
    assert len(tally.closes) < 12
    assert sum(tally.closes.values()) == 4_000
    assert tally.refusals["other"] == 4_000
    tally.closed("server", 4_002)
    assert tally.closes["server", "4002"] == 1
