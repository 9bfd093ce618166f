"""The clocks of tests keep what the code under test expects of a clock."""

import asyncio

import pytest

from midstream.client.clock import Clock as ClientClock
from midstream.server.clock import Clock as ServerClock
from tests.clock import WALL_START_MS, ManualClock, SimClock
from tests.simulation.simloop import SimLoop


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    """Both times change by what the test says, and by nothing else."""
    clock = ManualClock(now=5.0, wall_ms=1000)
    assert (clock.now(), clock.wall_ms()) == (5.0, 1000)
    clock.advance(1.25)
    assert (clock.now(), clock.wall_ms()) == (6.25, 2250)


def test_the_wall_of_a_manual_clock_can_be_set_without_moving_monotonic_time() -> None:
    """A skew moves the wall alone, in both directions, and later time adds to it."""
    clock = ManualClock(now=0.0, wall_ms=0)
    clock.skew_wall(-600_000)
    clock.advance(0.5)
    assert (clock.now(), clock.wall_ms()) == (0.5, -599_500)


def test_monotonic_time_never_goes_back() -> None:
    """A negative advance is refused and changes nothing."""
    clock = ManualClock(now=1.0)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-0.1)
    assert clock.now() == 1.0


def test_many_small_steps_lose_no_millisecond() -> None:
    """A thousand steps of a millisecond are a second on the wall."""
    clock = ManualClock(now=1000.0, wall_ms=0)
    for _ in range(1000):
        clock.advance(0.001)
    assert clock.wall_ms() == 1000


def test_the_clocks_fit_where_server_and_client_want_one() -> None:
    """What the type checkers hold: both clocks have the shape of the server's and of the client's."""
    loop = SimLoop(0)
    on_the_server: list[ServerClock] = [ManualClock(), SimClock(loop)]
    in_the_client: list[ClientClock] = [ManualClock(), SimClock(loop)]
    assert {clock.wall_ms() for clock in on_the_server + in_the_client} == {WALL_START_MS}
    loop.close()


async def test_a_sim_clock_follows_its_loop() -> None:
    """The clock reads the loop's time, and starts its wall where it is told."""
    loop = asyncio.get_running_loop()
    clock = SimClock(loop)
    before = loop.time()
    assert before <= clock.now() <= loop.time()
    assert clock.wall_ms() >= WALL_START_MS
