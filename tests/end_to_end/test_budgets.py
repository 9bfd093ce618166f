"""What was promised in bytes holds on real connections (SPEC 5.1)."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


async def test_tokens_and_reconnects_cost_no_more_bytes_than_promised() -> None:
    """The bench counts what TCP carries, and fails where a budget is missed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.delta_bytes", cwd=ROOT, stdout=PIPE
    )
    out, _ = await process.communicate()
    table = out.decode()
    assert process.returncode == 0, table
    assert table.count(" PASS ") == 18
