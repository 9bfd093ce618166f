"""``kill -9`` of workers during one long turn: the text is what they said, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.worker_kill import torture

TIMES = 6


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_turn_whose_workers_are_killed_again_and_again_has_all_of_its_text_once(
    tmp_path: Path, seed: int
) -> None:
    """No word is doubled or missing, no tool runs twice, and no question is asked twice.

    More of it: ``python -m tests.end_to_end.worker_kill``.
    """
    tortured = await torture(tmp_path, TIMES, seed)
    assert sum(tortured.deaths.values()) == TIMES
