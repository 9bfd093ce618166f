"""``midstream conform client -- COMMAND``: run the cases against a client's program, and report."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from midstream.conformance.clients import cases as cases  # noqa: PLC0414 - importing it registers the cases
from midstream.conformance.clients.scene import Settings
from midstream.conformance.clients.scenes import Scenes
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import Result
from midstream.conformance.report import Report
from midstream.conformance.runner import run


async def conform_client(
    command: Sequence[str],
    *,
    only: Sequence[str] = (),
    settings: Settings | None = None,
    jobs: int = 1,
    done: Callable[[Result], None] | None = None,
) -> Report:
    """Run the cases that ``only`` names, or all, against the program that ``command`` starts.

    ``jobs`` programs are started at most, each of which serves one case after the other.
    """
    began = time.monotonic()
    chosen = sorted(SUITE.chosen(only), key=lambda case: [int(number) for number in case.section.split(".")])
    settings = settings or Settings()
    results: list[Result] = []
    workers = [Scenes(command, settings) for _ in range(max(1, min(jobs, len(chosen))))]
    shares = [chosen[number :: len(workers)] for number in range(len(workers))]
    try:
        shared = [run(share, worker.scene, done=done) for share, worker in zip(shares, workers, strict=True)]
        results = [result for part in await asyncio.gather(*shared) for result in part]
    finally:
        await asyncio.gather(*(worker.end() for worker in workers))
    order = {case.id: number for number, case in enumerate(chosen)}
    results.sort(key=lambda result: order[result.id])
    return Report(
        kind="client",
        subject=" ".join(command),
        software=next((worker.software for worker in workers if worker.software), ""),
        seed=settings.seed,
        seconds=time.monotonic() - began,
        results=results,
    )
