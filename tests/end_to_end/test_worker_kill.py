"""``kill -9`` of workers during one long turn: the text is what they said, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.protocol.model import ErrorPart, TextPart
from tests.end_to_end.worker_child import WORDS
from tests.end_to_end.worker_kill import WorkerProcess, torture
from tests.worker.stage import WorkerStage, parts_of, text_of

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


@pytest.mark.parametrize(
    ("kind", "times"), [("begin", 1), ("say", 1), ("say", 7), ("say", WORDS), ("ask", 1)]
)
async def test_a_turn_whose_worker_is_killed_ends_when_its_lease_does(
    tmp_path: Path, kind: str, times: int
) -> None:
    """Before the first word, between two, after the last, or while it waits: what was said stays."""
    stage = WorkerStage(tmp_path / "chat.db", lease_seconds=0.2)
    await stage.start()
    try:
        await stage.create("s")
        session = await stage.session()
        turn = await session.prompt("Count")
        worker = await WorkerProcess.start(stage.url, "w")
        await worker.until(kind, times)
        await worker.kill()
        ended = await turn.finished()
        assert (ended.state, ended.error and ended.error.code) == ("failed", "agent_lost")
        assert [part.code for part in parts_of(session.messages, ErrorPart)] == ["agent_lost"]
        words = text_of(session.messages).split()
        assert words == [str(number) for number in range(len(words))]
        assert len(words) <= worker.count("say")
        assert {part.state for part in parts_of(session.messages[1:], TextPart)} <= {"done"}
        await stage.proves(await stage.reader())
    finally:
        await stage.close()
