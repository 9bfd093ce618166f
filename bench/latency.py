"""How long does a token take from the agent to the screen, at a quarter and at three quarters of the load?

``python -m bench.latency`` first measures how many frames a second midstream publishes at most, each in a
write of its own. Then each server gets a quarter, and three quarters, of that rate, evenly spread: in one
session with 100 subscribers, and in 100 sessions with 2 each. Each payload carries the time at which it was
handed in; the load client, on another core, takes the difference. midstream runs with its default tick. About
80 seconds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, NamedTuple

from bench.contenders import EPOLL, NODE_WS, midstream
from bench.fan_out import FRAME_BYTES, TOKEN_BYTES
from bench.race import Course, Report, RunFailed, calibrated, course
from bench.report import Goal, Measured, conclude, table

STAMPED_BYTES: Final = 20
"""A payload, and a token, that ends in a time."""
LOADS: Final = (0.25, 0.75)
SATURATED_SECONDS: Final = 0.5
SATURATED_RUNS: Final = 3
P50_MS: Final = 1.0
P99_MS: Final = 8.0
TO_THE_LIMIT: Final = 1.5


class Shape(NamedTuple):
    """So many sessions, with so many subscribers each."""

    sessions: int
    subscribers: int

    @property
    def connections(self) -> int:
        """All subscribers, each on a connection of its own."""
        return self.sessions * self.subscribers

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.sessions} {'session' if self.sessions == 1 else 'sessions'} of {self.subscribers}"


SHAPES: Final = (Shape(1, 100), Shape(100, 2))


class Row(NamedTuple):
    """The runs of one server at one load."""

    name: str
    shape: Shape
    load: float
    rate: float
    reports: list[Report]

    def of(self, take: Callable[[Report], float]) -> Measured:
        """Return one figure of each run."""
        return Measured(tuple(map(take, self.reports)))

    def line(self) -> list[str]:
        """Return it as a line of a table."""
        figures = (p50, p99, p999)
        place = [self.name, str(self.shape), f"{self.load:.0%}", f"{self.rate:,.0f}"]
        return place + [self.of(take).shown(1_000, 2) for take in figures]


def p50(report: Report) -> float:
    """Return the time that half of the deliveries took at most."""
    return report.p50_us


def p99(report: Report) -> float:
    """Return the time that 99 of 100 deliveries took at most."""
    return report.p99_us


def p999(report: Report) -> float:
    """Return the time that 999 of 1,000 deliveries took at most."""
    return report.p999_us


def saturation(shape: Shape) -> float:
    """Return how many frames midstream publishes in a second at most, each in a write of its own."""
    bare = midstream("--sessions", str(shape.sessions), "--tick-ms", "0")
    with course(bare, shape.connections, shape.sessions) as it:

        def timed(count: int) -> float:
            command = f"rooms {shape.sessions} {count} {FRAME_BYTES}"
            return it.run(command, count, TOKEN_BYTES).seconds

        count = calibrated(timed, step=1, seconds=SATURATED_SECONDS)
        rates = [shape.sessions * count / timed(count) for _ in range(SATURATED_RUNS)]
    return Measured(tuple(rates)).median


def run(it: Course, shape: Shape, rate: float, seconds: float) -> Report:
    """Publish at a rate for so long, and check that the age of every delivery is known."""
    count = max(1, round(rate * seconds / shape.sessions))
    report = it.run(f"pace {shape.sessions} {rate:.3f} {count}", count, STAMPED_BYTES)
    if report.samples != report.units:
        raise RunFailed(f"{it.contender.name}: {report.samples} of {report.units} deliveries carried a time")
    return report


def measure(shape: Shape, runs: int, seconds: float) -> list[Row]:
    """Measure all servers at all loads, each run in alternation with the others'."""
    most = saturation(shape)
    contenders = [EPOLL, NODE_WS, midstream("--sessions", str(shape.sessions))]
    with ExitStack() as stack:
        courses = [
            stack.enter_context(course(each, shape.connections, shape.sessions))
            for each in contenders
            if not each.missing()
        ]
        plan = [
            (it, Row(it.contender.name, shape, load, load * most, [])) for load in LOADS for it in courses
        ]
        for it, row in plan:
            run(it, shape, row.rate, seconds / 4)  # warms up
        for _ in range(runs):
            for it, row in plan:
                row.reports.append(run(it, shape, row.rate, seconds))
    return [row for _, row in plan]


def goals(rows: list[Row]) -> list[Goal]:
    """Return what must be shown at the lower load."""
    found = {(row.shape, row.name): row for row in rows if row.load == LOADS[0]}
    listed: list[Goal] = []
    for shape in SHAPES:
        mine, limit = found[shape, "midstream"], found[shape, EPOLL.name]
        where = f"{shape}, at {LOADS[0]:.0%}"
        listed += [
            Goal(f"{where}: p50", mine.of(p50).median / 1_000, P50_MS, at_least=False, unit="ms"),
            Goal(f"{where}: p99", mine.of(p99).median / 1_000, P99_MS, at_least=False, unit="ms"),
            Goal(
                f"{where}: p99, midstream to C epoll",
                mine.of(p99).to(limit.of(p99)),
                TO_THE_LIMIT,
                at_least=False,
            ),
        ]
    return listed


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one run")
    options = parser.parse_args()
    rows = [row for shape in SHAPES for row in measure(shape, options.runs, options.seconds)]
    head = ["ms", "sessions of subscribers", "load", "frames/s", "p50", "p99", "p99.9"]
    figures = {
        f"{row.name}; {row.shape}; {row.load}": {
            "rate": row.rate,
            "p50_us": row.of(p50).values,
            "p99_us": row.of(p99).values,
            "p999_us": row.of(p999).values,
        }
        for row in rows
    }
    notes = [
        f"medians (least to most) of {options.runs} alternating runs of {options.seconds:g} s",
        "the load is a part of what midstream publishes at most, one frame a write; all get the same rate",
        *([f"{NODE_WS.name} was not measured: {NODE_WS.missing()}"] if NODE_WS.missing() else []),
    ]
    text = table(head, [row.line() for row in rows])
    sys.exit(conclude("latency", text, figures, goals(rows), notes))


if __name__ == "__main__":
    main()
