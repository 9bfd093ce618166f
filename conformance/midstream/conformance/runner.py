"""Runs cases, some at a time, each in a scene of its own and with an end in sight."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from midstream.conformance.case import Case
from midstream.conformance.outcome import Failed, Outcome, Result, Skipped

LOGGED = 60
"""Lines of a scene's log that a result keeps."""


class Scene(Protocol):
    """What cases are tried in: it can say what went over the wire."""

    @property
    def log(self) -> list[str]:
        """What was sent and received, a line each."""
        ...


S = TypeVar("S", bound=Scene)


async def run(
    cases: Sequence[Case[S]],
    scene: Callable[[Case[S]], AbstractAsyncContextManager[S]],
    *,
    jobs: int = 1,
    heartbeat: float = 0.0,
    done: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Run the cases, ``jobs`` at a time, and return their results in the order of the cases.

    ``scene`` makes what a case is tried in, and takes it down again; it may raise `Skipped`. Those that may
    take longest begin first; those that want to be alone come last. ``heartbeat`` is in seconds. ``done`` is
    told each result as it is there.
    """
    results: dict[str, Result] = {}
    waiting = sorted(
        (case for case in cases if not case.alone),
        key=lambda case: -(case.seconds + case.heartbeats * heartbeat),
    )

    async def one(case: Case[S]) -> None:
        results[case.id] = result = await run_one(case, scene, heartbeat=heartbeat)
        if done is not None:
            done(result)

    async def work() -> None:
        while waiting:
            await one(waiting.pop(0))

    async with asyncio.TaskGroup() as group:
        for _ in range(max(1, jobs)):
            group.create_task(work())
    for case in cases:
        if case.alone:
            await one(case)
    return [results[case.id] for case in cases]


async def run_one(
    case: Case[S], scene: Callable[[Case[S]], AbstractAsyncContextManager[S]], *, heartbeat: float = 0.0
) -> Result:
    """Run one case."""
    began = time.monotonic()
    allowed = case.seconds + case.heartbeats * heartbeat
    here: S | None = None
    outcome, what, expected, seen = Outcome.PASSED, "", "", ""
    try:
        async with asyncio.timeout(allowed + 10):  # the scene's own ends, too
            async with scene(case) as here, asyncio.timeout(allowed):
                await case.run(here)
    except Failed as failed:
        outcome, what, expected, seen = Outcome.FAILED, failed.what, failed.expected, failed.seen
    except Skipped as skipped:
        outcome, what = Outcome.SKIPPED, str(skipped)
    except TimeoutError:
        outcome, what = Outcome.FAILED, f"what was waited for did not come within {allowed:g} s"
    except Exception as error:  # noqa: BLE001 - a fault of the kit must not end the run
        outcome, what = Outcome.ERROR, f"{type(error).__name__}: {error}"
        seen = "".join(traceback.format_exception(error)[-4:])
    is_good = outcome in {Outcome.PASSED, Outcome.SKIPPED}
    return Result(
        id=case.id,
        title=case.title,
        section=case.section,
        guarantees=case.guarantees,
        outcome=outcome,
        seconds=time.monotonic() - began,
        what=what,
        expected=expected,
        seen=seen,
        log=[] if is_good or here is None else here.log[-LOGGED:],
    )


Opened = AsyncGenerator[S]
"""What a function that makes scenes with `asynccontextmanager` returns."""
