"""Which case caught which mutant."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from midstream.conformance.clients.command import conform_client
from midstream.conformance.clients.scene import Settings
from midstream.conformance.outcome import Outcome
from tests.conformance.client_mutants.mutant import Mutant

PATIENCE_S = 2.0
"""A mutant that never does what is due is not waited for longer."""


async def caught(mutant: Mutant, *, everything: bool = False) -> list[str]:
    """Run the case that must catch a mutant, or all cases; return the ids of those that failed."""
    command = [sys.executable, "-m", "tests.conformance.client_mutants", mutant.name]
    report = await conform_client(
        command, only=() if everything else (mutant.caught_by,), settings=Settings(patience=PATIENCE_S)
    )
    errors = [f"{result.id}: {result.what}" for result in report.results if result.outcome is Outcome.ERROR]
    if errors:
        raise RuntimeError(f"the kit could not try {mutant.name}: {errors}")
    return [result.id for result in report.results if result.outcome is Outcome.FAILED]


async def table(mutants: Sequence[Mutant], *, everything: bool = False) -> tuple[str, bool]:
    """Try mutants and return the table as Markdown, and whether all were caught."""
    lines = ["| the client … | SPEC | caught by |", "|---|---|---|"]
    are_caught = True
    for mutant in mutants:
        by = await caught(mutant, everything=everything)
        are_caught = are_caught and mutant.caught_by in by
        shown = ", ".join(f"`{case}`" for case in by[:4]) + (
            f" and {len(by) - 4} more" if len(by) > 4 else ""
        )
        lines.append(f"| {mutant.breaks} (`{mutant.name}`) | {mutant.section} | {shown or '**nothing**'} |")
    return "\n".join(lines) + "\n", are_caught
