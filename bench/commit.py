"""How many commits a second do a thousand sessions get, each on disk, and how long does one take?

``python -m bench.commit [DIRECTORY]`` lets the agents of up to 1,000 sessions in one process commit with
synchronous=FULL, into a database in a temporary directory (inside DIRECTORY, whose disk is then what is
measured). A commit is one that real agents make: a message, its part, and the session and its version beside
it; once more whole steps, whose text streams before it is committed. Agents that go on as soon as a commit is
published show how many there can be; agents that commit at given times, however long the last one took, show
how long one takes: from the moment it was due until it was on disk and published. About a minute.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from bench.inside import Inside, inside
from bench.report import Goal, conclude, table
from midstream.agents import Turn
from midstream.protocol.model import TextPart
from midstream.server import interpreter

SESSIONS: Final = 1_000
CALLERS: Final = (1, 8, 32, 128, SESSIONS)
SHARES: Final = (0.5, 0.8)
"""Of what was reached at most: the paces beside the one of the goal."""
COMMITS: Final = 5_000.0
"""Commits in a second that must be reached, and the pace at which the slowest are measured."""
SLOWEST_MS: Final = 30.0
"""Milliseconds under which 99 of 100 commits must stay."""
SECONDS: Final = 4.0
"""For each line."""
TEXT: Final = "A sentence of an answer, as long as most of them are. " * 4
REAL_FSYNC_US: Final = 50.0
"""Microseconds below which an fsync went to no disk."""

Write = Callable[[Turn], Awaitable[object]]


class Line(NamedTuple):
    """What was measured at one load."""

    what: str
    rate: float
    batch: float
    cpu_us: float
    took: list[float]

    def percentile(self, share: float) -> float:
        """Return milliseconds that so many commits stayed under."""
        return self.took[min(len(self.took) - 1, int(len(self.took) * share))] * 1000


async def message(turn: Turn) -> None:
    """Commit a message."""
    await turn.internal(TextPart(text=TEXT))


async def step(turn: Turn) -> None:
    """Commit a step: its text is published before."""
    async with turn.step() as it, it.text() as text:
        await text.append(TEXT)


class Load:
    """The agents of all sessions, which do what the bench says."""

    def __init__(self) -> None:
        """Begin with no turn."""
        self._turns: list[Turn] = []
        self._end = asyncio.Event()
        self._commits = 0

    async def agent(self, turn: Turn) -> None:
        """Put a turn at the bench's disposal, until the end."""
        self._turns.append(turn)
        await self._end.wait()

    async def begin(self, house: Inside) -> None:
        """Let the turns of all sessions begin."""
        slots = asyncio.Semaphore(100)

        async def one(number: int) -> None:
            async with slots:
                await house.begin(f"5e0ac1b2-7f0e-4f65-9f3f-{number:012x}")

        await asyncio.gather(*map(one, range(SESSIONS)))
        await house.database.write(lambda connection: connection.set_commit_hook(self._count))

    def end(self) -> None:
        """Let the turns end."""
        self._end.set()

    async def one_after_another(self, what: str, callers: int, write: Write) -> Line:
        """Let so many sessions commit again and again, each as soon as its last commit was published."""
        took: list[float] = []
        end = time.perf_counter() + SECONDS

        async def go_on(turn: Turn) -> None:
            while (start := time.perf_counter()) < end:
                await write(turn)
                took.append(time.perf_counter() - start)

        return await self._measured(what, [go_on(turn) for turn in self._turns[:callers]], took)

    async def paced(self, rate: float, write: Write) -> Line:
        """Let all sessions commit at given times, so many commits in a second together."""
        took: list[float] = []
        rng = Random(rate)
        begin, period = time.perf_counter(), SESSIONS / rate

        async def go_on(turn: Turn) -> None:
            due = begin + rng.random() * period
            while due < begin + SECONDS:
                await asyncio.sleep(due - time.perf_counter())
                await write(turn)
                took.append(time.perf_counter() - due)
                due += period

        return await self._measured(f"{rate:,.0f}/s", [go_on(turn) for turn in self._turns], took)

    async def _measured(self, what: str, work: list[Awaitable[None]], took: list[float]) -> Line:
        self._commits = 0
        cpu, start = time.process_time(), time.perf_counter()
        await asyncio.gather(*work)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        count = len(took)
        return Line(what, count / seconds, count / max(self._commits, 1), cpu / count * 1e6, sorted(took))

    def _count(self) -> bool:
        self._commits += 1
        return False


def fsync_us(directory: str) -> float:
    """Return what it takes to have 64 KiB on the disk of a directory: the median, in microseconds."""
    took: list[float] = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(50):
            file.write(b"x" * 65_536)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - start)
    return sorted(took)[len(took) // 2] * 1e6


async def measure(directory: str) -> tuple[list[Line], list[Line]]:
    """Measure everything in one database: one after another, then paced."""
    load = Load()
    async with inside(Path(directory) / "bench.db", load.agent) as house:
        await load.begin(house)
        interpreter.tune()  # as the command does that serves
        freely = [await load.one_after_another(f"{count:,}", count, message) for count in CALLERS]
        most = freely[-1].rate
        freely.append(await load.one_after_another(f"{SESSIONS:,}, whole steps", SESSIONS, step))
        paces = sorted({*(round(share * most, -2) for share in SHARES), COMMITS})
        paced = [await load.paced(pace, message) for pace in paces]
        load.end()
    return freely, paced


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as directory:
        fsync = fsync_us(directory)
        freely, paced = asyncio.run(measure(directory))
    lines = [
        [
            *(line.what, f"{line.rate:,.0f}", f"{line.batch:,.1f}", f"{line.cpu_us:,.0f}"),
            *(f"{line.percentile(share):,.1f}" for share in (0.5, 0.99)),
        ]
        for line in (*freely, *paced)
    ]
    head = ("sessions that commit, or pace", "commits/s", "in a batch", "CPU µs", "p50 ms", "p99 ms")
    at_goal = next(line for line in paced if line.what == f"{COMMITS:,.0f}/s")
    most = freely[len(CALLERS) - 1]
    goals = [
        Goal("commits of 1,000 sessions", most.rate, COMMITS, unit="/s"),
        Goal(
            f"p99 at {COMMITS:,.0f} commits/s",
            at_goal.percentile(0.99),
            SLOWEST_MS,
            at_least=False,
            unit="ms",
        ),
    ]
    where = "to a disk" if fsync >= REAL_FSYNC_US else "to memory, no disk: give a DIRECTORY"
    return conclude(
        "commit",
        table(head, lines),
        {
            "fsync_us": fsync,
            "lines": [
                {
                    **line._asdict(),
                    "took": {str(share): line.percentile(share) for share in (0.5, 0.9, 0.99, 0.999)},
                }
                for line in (*freely, *paced)
            ],
        },
        goals,
        [f"64 KiB are synced {where}, in {fsync:,.0f} µs; SQLite {apsw.sqlite_lib_version()}"],
    )


if __name__ == "__main__":
    sys.exit(main())
