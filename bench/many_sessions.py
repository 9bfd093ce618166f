"""How much do a thousand sessions say at once, with two readers each?

``python -m bench.many_sessions`` lets 1,000 sessions (rooms of Socket.IO, maps of sockets elsewhere) publish
small frames as fast as their server lets them, each to 2 subscribers on connections of their own, and counts
mutations and deliveries in a second. In midstream each session has an agent of its own, which says a token in
each turn of the event loop, and each frame is a version: once with nothing joined, and once as servers are
set up, which joins tokens under load. About a minute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from bench.contenders import EPOLL, NODE_WS, SOCKET_IO, Contender, midstream
from bench.fan_out import FRAME_BYTES, TOKEN_BYTES
from bench.race import Course, Report, RunFailed, calibrated, course
from bench.report import Goal, Measured, conclude, table

READERS: Final = 2
MUTATIONS: Final = 25_000.0
"""Mutations in a second that midstream must reach."""


class Row:
    """What was counted of one server."""

    def __init__(self) -> None:
        """Begin with no run."""
        self.mutations: list[float] = []
        self.tokens: list[float] = []

    def note(self, report: Report) -> None:
        """Note a run."""
        self.mutations.append(report.frames / READERS / report.seconds)
        self.tokens.append(report.units / READERS / report.seconds)


def entrants(sessions: int) -> tuple[Contender, Contender, list[Contender]]:
    """Return midstream without a tick and with its default one, and the others."""
    options = ("--sessions", str(sessions))
    bare = midstream(*options, "--tick-ms", "0", name="midstream, each token a version")
    return bare, midstream(*options, name="midstream, default tick"), [EPOLL, NODE_WS, SOCKET_IO]


def run(it: Course, verb: str, sessions: int, count: int) -> Report:
    """Publish so many frames in each session, and check that each subscriber got each."""
    report = it.run(f"{verb} {sessions} {count} {FRAME_BYTES}", count, TOKEN_BYTES)
    if verb == "rooms" and report.frames != report.units:
        raise RunFailed(f"{it.contender.name}: {report.units} tokens came in {report.frames} frames")
    return report


def timed(it: Course, verb: str, sessions: int) -> Callable[[int], float]:
    """Return what publishes so many frames in each session, and says how long that took."""
    return lambda count: run(it, verb, sessions, count).seconds


def measure(entries: Sequence[tuple[Contender, str]], sessions: int, runs: int, seconds: float) -> list[Row]:
    """Measure all servers, each run in alternation with the others'."""
    rows = [Row() for _ in entries]
    with ExitStack() as stack:
        plan: list[tuple[Course, str, int]] = []
        for each, verb in entries:
            it = stack.enter_context(course(each, READERS * sessions, sessions))
            count = calibrated(timed(it, verb, sessions), step=1, seconds=seconds)
            plan.append((it, verb, count))
        for _ in range(runs):
            for row, (it, verb, count) in zip(rows, plan, strict=True):
                row.note(run(it, verb, sessions, count))
    return rows


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one run")
    options = parser.parse_args()
    bare, usual, others = entrants(options.sessions)
    entries = [(each, "rooms") for each in others if not each.missing()] + [(bare, "flood"), (usual, "flood")]
    rows = measure(entries, options.sessions, options.runs, options.seconds)
    found = {each.name: row for (each, _), row in zip(entries, rows, strict=True)}
    mutations = {name: Measured(tuple(row.mutations)) for name, row in found.items()}
    tokens = {name: Measured(tuple(row.tokens)) for name, row in found.items()}
    limit, mine = mutations[EPOLL.name], mutations[bare.name]
    lines = [
        [
            name,
            it.shown(1_000, 1),
            f"{READERS * it.median / 1_000:,.1f}",
            tokens[name].shown(1_000, 1),
            f"{it.to(limit):.2f}×",  # noqa: RUF001 - the sign of a ratio
        ]
        for name, it in mutations.items()
    ]
    head = ["thousands a second", "mutations", "deliveries", "tokens", "mutations, to C epoll"]
    goals = [Goal("mutations in a second", mine.median, MUTATIONS, unit="/s")]
    if SOCKET_IO.name in mutations:
        goals.append(Goal("mutations: midstream to Socket.IO", mine.to(mutations[SOCKET_IO.name]), 2.0))
    notes = [
        f"{options.sessions:,} sessions with {READERS} subscribers each",
        f"medians (least to most) of {options.runs} alternating runs",
        *(f"{each.name} was not measured: {each.missing()}" for each in others if each.missing()),
    ]
    figures = {name: {"mutations": row.mutations, "tokens": row.tokens} for name, row in found.items()}
    sys.exit(conclude("many_sessions", table(head, lines), figures, goals, notes))


if __name__ == "__main__":
    main()
