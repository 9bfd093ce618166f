"""What the workers' tests share."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.worker.stage import OpenWorkerStage, WorkerStage


@pytest.fixture
async def open_stage(tmp_path: Path) -> AsyncGenerator[OpenWorkerStage]:
    """Give a function that opens a stage: its server runs, and has the session ``s``."""
    async with AsyncExitStack() as stages:

        async def open_one(**settings: Any) -> WorkerStage:  # noqa: ANN401  # of Config
            stage = WorkerStage(tmp_path / "chat.db", **settings)
            await stage.start()
            stages.push_async_callback(stage.close)
            await stage.create("s")
            return stage

        yield open_one
