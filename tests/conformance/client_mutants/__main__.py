"""`python -m tests.conformance.client_mutants [NAME | --all]`: the table, or one mutant itself."""

from __future__ import annotations

import asyncio
import sys

from tests.conformance.client_mutants.connection import CONNECTION
from tests.conformance.client_mutants.law import LAW
from tests.conformance.client_mutants.mutant import infect

MUTANTS = {mutant.name: mutant for mutant in (*LAW, *CONNECTION)}


def main(arguments: list[str]) -> None:
    """Serve as a mutant, or try them all."""
    name = next((argument for argument in arguments if argument in MUTANTS), None)
    if name is not None:
        infect(MUTANTS[name])
        from tests.conformance.drivers.python_client import main as serve  # noqa: PLC0415 - after the infection

        serve()
        return
    from tests.conformance.client_mutants.table import table  # noqa: PLC0415 - it loads what a mutant changes

    text, are_caught = asyncio.run(table(list(MUTANTS.values()), everything="--all" in arguments))
    sys.stdout.write(text)
    sys.exit(0 if are_caught else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
