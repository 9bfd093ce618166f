"""How fast does one session reach many screens, beside other servers and the kernel's own limit?

``python -m bench.fan_out`` publishes small frames to 100, 1,000 and 5,000 subscribers on connections of
their own, and counts the deliveries in a second: one frame a write; ten frames that are published in one turn
of the event loop, joined where the server joins them; and ten tokens of one text, which midstream merges into
one frame. All servers run side by side, each run in alternation with the others'. About 2 minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from bench.contenders import (
    AIOHTTP,
    BUN,
    EPOLL,
    NODE_WS,
    SOCKET_IO,
    WEBSOCKETS,
    Contender,
    midstream,
)
from bench.race import Course, Report, RunFailed, calibrated, course
from bench.report import Goal, Measured, conclude, table

FRAME_BYTES: Final = 12
"""A token of four characters in a delta; the other servers send messages of this length."""
TOKEN_BYTES: Final = 4
TOGETHER: Final = 10
MIDSTREAM: Final = midstream("--tick-ms", "0")
UVLOOP: Final = midstream("--tick-ms", "0", "--uvloop", name="midstream, uvloop", needs="uvloop")
CONTENDERS: Final = (EPOLL, BUN, NODE_WS, SOCKET_IO, AIOHTTP, WEBSOCKETS, MIDSTREAM, UVLOOP)

ONE: Final = "one frame a write"
JOINED: Final = "ten frames a turn"
MERGED: Final = "ten tokens of one text a turn"
MODES: Final = {ONE: ("fan", 1), JOINED: ("fan", TOGETHER), MERGED: ("merge", TOGETHER)}
GOALS: Final = (
    (ONE, EPOLL, 0.9),
    (ONE, NODE_WS, 1.15),
    (ONE, SOCKET_IO, 2.0),
    (ONE, WEBSOCKETS, 2.0),
    (JOINED, BUN, 1.0),
)
Found = dict[tuple[str, str, int], Measured]
"""Deliveries in a second, by mode, server and subscribers."""
Reads = dict[str, float]
"""How often the load client read for a frame: where it is late, several come at once, and cost less."""


def modes_of(contender: Contender) -> Sequence[str]:
    """Return what is measured of a server: only midstream knows that tokens belong together."""
    return (ONE, JOINED, MERGED) if contender.kind == "midstream" else (ONE, JOINED)


def run(it: Course, mode: str, count: int) -> Report:
    """Publish so many frames, and check that each subscriber got each."""
    verb, batch = MODES[mode]
    report = it.run(f"{verb} {count} {FRAME_BYTES} {batch}", count, TOKEN_BYTES)
    if mode != MERGED and report.frames != report.units:
        raise RunFailed(f"{it.contender.name}: {report.units} tokens came in {report.frames} frames")
    return report


def measure(
    contenders: Sequence[Contender], subscribers: int, runs: int, seconds: float
) -> tuple[Found, Reads]:
    """Measure all servers with so many subscribers each."""
    reads: Reads = {}
    with ExitStack() as stack:
        courses = [stack.enter_context(course(each, subscribers)) for each in contenders]
        plan = [
            (it, mode, calibrated(timed(it, mode), step=MODES[mode][1], seconds=seconds))
            for mode in MODES
            for it in courses
            if mode in modes_of(it.contender)
        ]
        rates: dict[tuple[str, str], list[float]] = {}
        for _ in range(runs):
            for it, mode, count in plan:
                report = run(it, mode, count)
                rates.setdefault((mode, it.contender.name), []).append(report.units / report.seconds)
                reads[labelled(mode, it.contender.name, subscribers)] = report.reads / report.frames
    found = {(mode, name, subscribers): Measured(tuple(values)) for (mode, name), values in rates.items()}
    return found, reads


def labelled(mode: str, name: str, subscribers: int) -> str:
    """Return what stands before a figure in the results."""
    return f"{mode}; {name}; {subscribers}"


def timed(it: Course, mode: str) -> Callable[[int], float]:
    """Return what publishes so many frames, and says how long that took."""
    return lambda count: run(it, mode, count).seconds


def rows(found: Found, mode: str, names: Sequence[str], subscribers: Sequence[int]) -> list[list[str]]:
    """Return the lines of the table of one mode."""
    base = {count: found.get((ONE, EPOLL.name, count)) for count in subscribers}
    lines: list[list[str]] = []
    for name in names:
        cells = [name]
        for count in subscribers:
            it, limit = found.get((mode, name, count)), base[count]
            ratio = f", {it.to(limit):.2f}×" if it and limit else ""  # noqa: RUF001 - the sign of a ratio
            cells.append(f"{it.shown(1_000)}{ratio}" if it else "")
        if any(cells[1:]):
            lines.append(cells)
    return lines


def goals(found: Found, subscribers: Sequence[int]) -> list[Goal]:
    """Return what must be shown at 1,000 subscribers and more, as far as it was measured."""
    return [
        Goal(f"{count:,} subscribers, {mode}: midstream to {other.name}", mine.to(its), bound)
        for count in subscribers
        if count >= 1_000
        for mode, other, bound in GOALS
        if (mine := found.get((mode, MIDSTREAM.name, count)))
        and (its := found.get((mode, other.name, count)))
    ]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, nargs="+", default=[100, 1_000, 5_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one run")
    parser.add_argument("--only", nargs="+", help="names of servers")
    options = parser.parse_args()
    wanted = [each for each in CONTENDERS if not options.only or each.name in options.only]
    here = [each for each in wanted if not each.missing()]
    found: Found = {}
    reads: Reads = {}
    for count in options.subscribers:
        more, often = measure(here, count, options.runs, options.seconds)
        found |= more
        reads |= often
    head = ["thousand deliveries/s", *(f"{count:,} subscribers" for count in options.subscribers)]
    names = [each.name for each in here]
    text = "\n\n".join(
        f"{mode[0].upper()}{mode[1:]}:\n\n{table(head, rows(found, mode, names, options.subscribers))}"
        for mode in MODES
    )
    figures = {
        "deliveries_per_second": {labelled(*key): it.values for key, it in found.items()},
        "reads_per_frame": reads,
    }
    notes = [
        f"medians (least to most) of {options.runs} alternating runs",
        "ratios, in each round, to the C server that sends one frame a write",
        f"messages of {FRAME_BYTES} bytes; in midstream, the frames of tokens of {TOKEN_BYTES}",
        *(f"{each.name} was not measured: {each.missing()}" for each in wanted if each not in here),
    ]
    sys.exit(conclude("fan_out", text, figures, goals(found, options.subscribers), notes))


if __name__ == "__main__":
    main()
