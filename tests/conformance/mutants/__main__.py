"""``python -m tests.conformance.mutants [--all-cases] [NAME...]``: which case catches which broken server."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from midstream.conformance.servers import cases
from midstream.conformance.servers.suite import SUITE
from tests.conformance.mutants import MUTANTS
from tests.conformance.mutants.table import caught_by, row


async def main(arguments: list[str]) -> int:
    """Print the table; return 1 where a mutant is not caught."""
    every = "--all-cases" in arguments
    names = [name for name in arguments if not name.startswith("--")] or list(MUTANTS)
    cases.load()
    idle = {case.id for case in SUITE}
    missed = 0
    sys.stdout.write("| broken server | SPEC | rule | caught by |\n|---|---|---|---|\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found = await caught_by(MUTANTS[name], Path(folder, name), only=() if every else None)
            idle -= set(found)
            missed += not found
            sys.stdout.write(f"{row(MUTANTS[name], found)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{len(names) - missed} of {len(names)} caught. Cases that caught none: {len(idle)}\n")
    sys.stdout.write("".join(f"- {case}\n" for case in sorted(idle)))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
