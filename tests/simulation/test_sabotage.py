"""The simulation has teeth: a guarantee that is broken on purpose does not stay unnoticed."""

import pytest

from tests.simulation.sabotage import LIMIT, SABOTAGES, found_by


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_broken_guarantee_is_found(name: str) -> None:
    """Some early schedule fails while the guarantee is broken."""
    assert found_by(name) is not None, f"{LIMIT} schedules did not notice: {name}"
