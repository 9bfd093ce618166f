"""Power loss under load: nothing that was acknowledged is lost, and nothing goes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.power_loss import MOMENTS, black_out

CYCLES = 6


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_server_that_loses_its_power_again_and_again_loses_nothing_that_it_acknowledged(
    tmp_path: Path, seed: int
) -> None:
    """Writes that were not synced are there, lost or torn; versions never go back, all replicas end equal.

    More of it: ``python -m tests.faults.power_loss``.
    """
    siege = await black_out(tmp_path, CYCLES, seed)
    assert sum(siege.deaths.values()) == CYCLES
    assert set(siege.deaths) <= set(MOMENTS)
    assert siege.torn > 0
    totals = siege.ledger.totals()
    assert min(totals[kind] for kind in ("prompts", "step", "running", "completed")) > 0
