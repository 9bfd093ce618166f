"""Runs the kit against mutants, and says which case caught which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from midstream.conformance.outcome import Failed, Outcome
from midstream.conformance.servers.command import conform_server
from tests.conformance.mutants.mutant import Mutant
from tests.conformance.server_process import served


async def caught_by(mutant: Mutant, folder: Path, *, only: Sequence[str] | None = None) -> list[str]:
    """Return the cases that fail with a mutant; what no case can even begin with is caught by all."""
    async with served(folder, mutant.name) as target:
        try:
            report = await conform_server(target, only=mutant.chapters if only is None else only, jobs=6)
        except (Failed, OSError) as failed:
            return [f"every case ({failed})"]
    return [result.id for result in report.results if result.outcome is Outcome.FAILED]


def row(mutant: Mutant, cases: Sequence[str]) -> str:
    """Return a line of the table in docs/conformance.md."""
    shown = ", ".join(f"`{case}`" for case in cases[:2]) + (
        f" and {len(cases) - 2} more" if len(cases) > 2 else ""
    )
    return f"| `{mutant.name}` | {mutant.section} | {mutant.rule} | {shown or '**not caught**'} |"
