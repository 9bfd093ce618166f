"""When text is published: at once, a tick later, or later still under load."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from midstream.server.sessions.pace import Pace
from tests.simulation.failures import ErrorUnhandled
from tests.simulation.run import run
from tests.simulation.simloop import SimLoop

if TYPE_CHECKING:
    from collections.abc import Callable


def pace() -> Pace:
    """Ticks of 10 ms, which may grow to 50."""
    return Pace(tick_seconds=0.01, limit_seconds=0.05)


def test_without_load_publications_are_a_tick_apart() -> None:
    """Those that cost little and come in time."""
    assert pace().seconds(late=0.0, cost=0.0001) == 0.01


def test_what_costs_much_comes_less_often_up_to_the_limit() -> None:
    """So that half of the time is left."""
    assert pace().seconds(late=0.0, cost=0.012) == 0.024
    assert pace().seconds(late=0.0, cost=1.0) == 0.05


def test_where_the_event_loop_is_late_all_come_less_often_and_as_before_when_it_is_not() -> None:
    """The lateness of all sessions together counts."""
    one = pace()
    while one.seconds(late=0.02, cost=0.0) < 0.05:
        pass
    while (seconds := one.seconds(late=0.0, cost=0.0)) > 0.01:
        assert seconds < 0.05
    assert seconds == 0.01


def test_what_a_timer_is_late_by_itself_does_not_count() -> None:
    """Or one wait for a timer would be the reason for the next."""
    one = Pace(tick_seconds=0.0, limit_seconds=0.05)
    assert {one.seconds(late=0.0015, cost=0.0) for _ in range(100)} == {0.0}


def test_without_a_limit_nothing_waits_whatever_the_load() -> None:
    """A server that is told to join nothing does not."""
    assert Pace(tick_seconds=0.0, limit_seconds=0.0).seconds(late=1.0, cost=1.0) == 0.0


class Session:
    """Does something when it is ticked."""

    def __init__(self, does: Callable[[], None], not_before: float = 0.0) -> None:
        self.next_tick_at = not_before
        self.tick = does


def test_what_is_planned_comes_once_in_order_in_the_ms_of_its_time() -> None:
    """Also where something before it fails, and where more is planned meanwhile."""
    came: list[tuple[str, float]] = []

    async def story(loop: SimLoop) -> None:
        one, start = pace(), loop.time()

        def publication(name: str) -> Callable[[], None]:
            return lambda: came.append((name, round(loop.time() - start, 3)))

        def again() -> None:
            one.plan(Session(publication("again")))

        def fails() -> None:
            raise LookupError

        one.plan(Session(publication("now")))
        one.plan(Session(publication("past"), start - 1))
        for number in range(3):
            one.plan(Session(publication(f"later {number}"), start + 0.0102))
        one.plan(Session(fails, start + 0.0102))
        one.plan(Session(again, start + 0.0102))
        one.plan(last := Session(publication("last"), start + 0.0102))
        one.plan(Session(publication("before"), start + 0.005))
        await asyncio.sleep(1)
        assert round(last.next_tick_at - start, 3) == 0.02

    with pytest.raises(ErrorUnhandled, match="LookupError"):
        run(story, 0)
    later = [(name, 0.01) for name in ("later 0", "later 1", "later 2", "last", "again")]
    assert came == [("now", 0.0), ("past", 0.0), ("before", 0.005), *later]
