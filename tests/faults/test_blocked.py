"""An agent in the server's process that keeps the event loop to itself is named in the log."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import pytest

from midstream.server import Turn, watchdog
from tests.end_to_end.stage import Stage


class Ear:
    """Hears what the watchdog logs, in its thread."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.blocked = threading.Event()
        self.again = threading.Event()

    def warning(self, event: str, **fields: object) -> None:
        """Note a line."""
        if event == "loop_blocked":
            self.stack = [str(line) for line in cast("list[object]", fields["stack"])]
            self.blocked.set()
        elif event == "loop_runs_again":
            self.again.set()


async def test_an_agent_that_blocks_the_loop_is_named_with_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread sees it while it lasts; when it is over the turn goes on, and that is said too."""
    ear = Ear()
    monkeypatch.setattr(watchdog, "BLOCKED_SECONDS", 0.05)
    monkeypatch.setattr(watchdog, "log", ear)

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            ear.blocked.wait(60)  # as a call without await would: it ends only because the watchdog saw it
            await text.append("done")

    stage = Stage(tmp_path / "chat.db")
    stage.agent = agent
    await stage.start()
    await stage.create("s")
    reader = await stage.reader()
    prompt = await stage.prompt()
    await reader.line.until(lambda: reader.replica.turns[prompt.turn_id or ""].state == "completed")
    assert ear.again.wait(30)
    await stage.close()
    assert any("test_blocked.py" in line and line.endswith(" agent") for line in ear.stack)
