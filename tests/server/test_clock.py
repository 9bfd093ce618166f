"""The machine's clocks, as the server asks them."""

from __future__ import annotations

import time

from midstream.server.clock import Clock, SystemClock
from tests.clock import ManualClock


def test_the_wall_is_milliseconds_since_the_epoch() -> None:
    """Between two looks at the machine's own clock."""
    before = time.time_ns() // 1_000_000
    seen = SystemClock().wall_ms()
    assert before <= seen <= time.time_ns() // 1_000_000


def test_the_other_clock_only_goes_forward() -> None:
    """In seconds, between two looks at the machine's own."""
    clock = SystemClock()
    before, first, second, after = time.monotonic(), clock.now(), clock.now(), time.monotonic()
    assert before <= first <= second <= after


def test_a_test_clock_is_a_clock() -> None:
    """What runs on the machine's clock runs on one that a test moves."""
    clocks: list[Clock] = [SystemClock(), ManualClock()]
    assert all(isinstance(clock.wall_ms(), int) for clock in clocks)
