"""``kill -9`` under load: nothing that was acknowledged is lost, and nothing goes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.kill import MOMENTS, besiege

CYCLES = 6


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_server_that_is_killed_again_and_again_loses_nothing_that_it_acknowledged(
    tmp_path: Path, seed: int
) -> None:
    """Prompts, answers, stops and agents' commits; versions never go back, and all replicas end equal.

    More of it: ``python -m tests.end_to_end.kill``.
    """
    siege = await besiege(tmp_path, CYCLES, seed)
    assert sum(siege.deaths.values()) == CYCLES
    assert set(siege.deaths) <= set(MOMENTS)
    assert siege.cut_off > 0
    totals = siege.ledger.totals()
    assert min(totals[kind] for kind in ("prompts", "step", "running", "completed")) > 0
