"""Runs the cases for servers against one server, as the command `midstream conform server` does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from midstream.conformance.outcome import Result
from midstream.conformance.report import Report
from midstream.conformance.runner import run
from midstream.conformance.servers import cases
from midstream.conformance.servers.scene import Target, scene_of
from midstream.conformance.servers.suite import SUITE

AgentWish = Literal["auto", "worker", "own"]
"""Who runs turns: `auto` finds out, `worker` is this kit, `own` is the server."""


async def conform_server(
    target: Target,
    *,
    only: Sequence[str] = (),
    agent: AgentWish = "auto",
    jobs: int = 4,
    done: Callable[[Result], None] | None = None,
) -> Report:
    """Run the cases that ``only`` names (by default all) and return the report.

    Raises:
        Failed: the server is there, but says no `welcome`; or ``agent`` is `worker`, and it has no workers.
        OSError: no server is there.

    """
    began = time.monotonic()
    cases.load()
    await target.probe(agent=agent)
    if agent == "worker" and not target.workers:
        raise OSError(target.why_no_workers)
    results = await run(
        SUITE.chosen(only),
        lambda case: scene_of(target, case),
        jobs=jobs,
        heartbeat=target.welcome["heartbeat_ms"] / 1000,
        done=done,
    )
    return Report(
        kind="server",
        subject=target.url,
        software=str(target.welcome.get("server", "")),
        seed=target.seed,
        seconds=time.monotonic() - began,
        results=results,
    )
