"""What a bench says at its end: a table, its goals, and one line of JSON."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import machine

RESULTS: Final = Path(__file__).parent / "results"


class Measured(NamedTuple):
    """The values of some runs: their median, and how far they spread."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value in the middle."""
        return statistics.median(self.values)

    def shown(self, scale: float = 1.0, digits: int = 0) -> str:
        """Return median, least and most, in units of ``scale``."""
        least, most = min(self.values) / scale, max(self.values) / scale
        return f"{self.median / scale:,.{digits}f} ({least:,.{digits}f}–{most:,.{digits}f})"  # noqa: RUF001 - a range

    def to(self, other: Measured) -> float:
        """Return the median of the ratios to another one's runs, round by round: both drift alike."""
        return statistics.median(mine / its for mine, its in zip(self.values, other.values, strict=True))


class Goal(NamedTuple):
    """Something that a bench must show."""

    what: str
    measured: float
    bound: float
    at_least: bool = True
    unit: str = "×"  # noqa: RUF001 - the sign of a ratio

    @property
    def met(self) -> bool:
        """Whether it is shown."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def __str__(self) -> str:
        """Return it as a line of a table."""
        sign = "≥" if self.at_least else "≤"
        return (
            f"| {self.what} | {sign} {self.bound:g} {self.unit} | {self.measured:,.2f} {self.unit} "
            f"| {'met' if self.met else '**missed**'} |"
        )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; all columns but the first are numbers."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def conclude(
    bench: str, text: str, figures: Mapping[str, object], goals: Sequence[Goal], notes: Sequence[str] = ()
) -> int:
    """Print what was found, and add a line of JSON to the results.

    Args:
        bench: the bench's name.
        text: its tables.
        figures: what was measured, for programs.
        goals: what it must show.
        notes: what a reader has to know beside it.

    Returns:
        What the process is to end with: 1 where a goal is missed.

    """
    print(f"\n## {bench}\n\n{text}\n")
    if goals:
        print("| goal | bound | measured | |\n|---|---:|---:|---|")
        print("\n".join(str(goal) for goal in goals), end="\n\n")
    for note in (*notes, machine.in_words()):
        print(f"- {note}")
    RESULTS.mkdir(exist_ok=True)
    line = {
        "bench": bench,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine.described(),
        "versions": machine.versions(),
        "figures": figures,
        "goals": [{**goal._asdict(), "met": goal.met} for goal in goals],
        "notes": list(notes),
    }
    with (RESULTS / f"{bench}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return int(not all(goal.met for goal in goals))
