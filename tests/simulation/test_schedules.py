"""Two thousand seeded schedules of the real server and clients, over a bad network, with crashes."""

from collections import Counter

import pytest

from tests.simulation.failures import SimulationFailure
from tests.simulation.volume import play_seed

SCHEDULES = 2_000
CHUNK = 50


@pytest.mark.parametrize("first", range(1, SCHEDULES + 1, CHUNK))
def test_whatever_happens_all_replicas_end_equal_and_no_promise_is_broken(first: int) -> None:
    """After quiet every replica equals the store, byte by byte, and what was acknowledged is there."""
    for seed in range(first, first + CHUNK):
        try:
            play_seed(seed)
        except SimulationFailure as failure:
            failure.add_note(f"python -m tests.simulation.run --seed {seed} --trace")
            raise


def test_a_schedule_is_repeatable() -> None:
    """The same seed gives the same diary, so that what was found can be looked at again."""
    assert [play_seed(seed) for seed in range(1, 11)] == [play_seed(seed) for seed in range(1, 11)]


def test_schedules_meet_what_they_are_for() -> None:
    """Each way to be brought up, each end of a server and each fate of a write comes in a hundred."""
    met = Counter[str]()
    for seed in range(1, 101):
        met += play_seed(seed).met
    modes = [mode + where for mode in ("replay", "catchup", "reset") for where in ("", " in a stream")]
    fates = ["crash-before", "crash-after", "fail-before", "fail-after"]
    assert not [what for what in (*modes, *fates, "killed", "stopped") if not met[what]], met
