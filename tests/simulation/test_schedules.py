"""Seeded schedules of the real server, clients and workers, over a bad network, with crashes."""

from collections import Counter

import pytest

from tests.simulation.failures import SimulationFailure
from tests.simulation.schedule import REMOTE_SEEDS
from tests.simulation.volume import play_seed

SCHEDULES = 2_000
REMOTE_SCHEDULES = 500
CHUNK = 50
REMOTE_CHUNK = 25


@pytest.mark.parametrize("first", range(1, SCHEDULES + 1, CHUNK))
def test_whatever_happens_all_replicas_end_equal_and_no_promise_is_broken(first: int) -> None:
    """After quiet every replica equals the store, byte by byte, and what was acknowledged is there."""
    play_all(range(first, first + CHUNK))


@pytest.mark.parametrize("first", range(REMOTE_SEEDS + 1, REMOTE_SEEDS + REMOTE_SCHEDULES + 1, REMOTE_CHUNK))
def test_whatever_becomes_of_workers_their_turns_end_in_time_with_what_they_produced(first: int) -> None:
    """The same with agents in workers: nothing of a turn is doubled or missing, and no tool runs twice."""
    play_all(range(first, first + REMOTE_CHUNK))


def play_all(seeds: range) -> None:
    """Play schedules; the failure of one says how to see it again."""
    for seed in seeds:
        try:
            play_seed(seed)
        except SimulationFailure as failure:
            failure.add_note(f"python -m tests.simulation.run --seed {seed} --trace")
            raise


@pytest.mark.parametrize("first", [1, REMOTE_SEEDS + 1])
def test_a_schedule_is_repeatable(first: int) -> None:
    """The same seed gives the same diary, so that what was found can be looked at again."""
    seeds = range(first, first + 10)
    assert [play_seed(seed) for seed in seeds] == [play_seed(seed) for seed in seeds]


def test_schedules_meet_what_they_are_for() -> None:
    """Each way to be brought up, each end of a server and each fate of a write comes in a hundred."""
    met = Counter[str]()
    for seed in range(1, 101):
        met += play_seed(seed).met
    modes = [mode + where for mode in ("replay", "catchup", "reset") for where in ("", " in a stream")]
    fates = ["crash-before", "crash-after", "fail-before", "fail-after"]
    assert not [what for what in (*modes, *fates, "killed", "stopped") if not met[what]], met


def test_schedules_with_workers_meet_what_they_are_for() -> None:
    """Each way to take a turn, to lose it and to end it comes in a hundred, and each end of a server."""
    met = Counter[str]()
    for seed in range(REMOTE_SEEDS + 1, REMOTE_SEEDS + 101):
        met += play_seed(seed).met
    takes = ["attached", "attached again", "taken over"]
    ends = ["lost", "given up", "ended", "reload", "agent_lost", "no_agent"]
    fates = ["crash-before", "crash-after", "fail-before", "fail-after"]
    assert not [what for what in (*takes, *ends, *fates, "killed", "stopped") if not met[what]], met
