"""The power is lost under load, again and again, on one database.

``python -m tests.faults.power_loss [--cycles 200] [--seed 1]`` starts a server process whose disk keeps to
itself what was not synced, lets people and agents work on it, and takes the power away at a moment of chance:
the process dies, and of what was not synced each piece is there, or not, or torn between its sectors. Then a
server starts on what is left; all that anybody was told must be there. It prints what was lost when, and the
totals.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from tests.end_to_end.dying import left_by
from tests.end_to_end.kill import Siege

MOMENTS = ("write", "write", "sync", "committed")
"""What is counted until the power is lost."""


class Blackout(Siege):
    """One database, and the servers that lose their power on it."""

    moments = MOMENTS
    torn = 0
    """How often what was left was not what the process had seen."""

    def planned(self, moment: str, count: int) -> str:
        """Say when the power is lost, and how chance decides what of it is there."""
        return f"{moment}:{count}:{self.chance.randint(1, 10**6)}"

    def found(self) -> None:
        """Put what the power loss left in the place of the files, before the next server sees them."""
        left = left_by(self.path)
        if not left.exists():
            return
        for name in (self.path.name, f"{self.path.name}-wal", f"{self.path.name}-shm"):
            seen, there = self.path.with_name(name), left / name
            was = seen.read_bytes() if seen.exists() else b""
            self.torn += not name.endswith("-shm") and was != (there.read_bytes() if there.exists() else b"")
            seen.unlink(missing_ok=True)
            if there.exists():
                there.rename(seen)
        shutil.rmtree(left)


def sound(path: Path) -> bool:
    """Say whether SQLite finds nothing wrong with a database."""
    connection = apsw.Connection(str(path))
    try:
        return list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
    finally:
        connection.close()


async def black_out(directory: Path, cycles: int, seed: int) -> Blackout:
    """Run the cycles, and print a line for each."""
    siege = Blackout(directory, seed)
    await siege.begin()
    for number in range(1, cycles + 1):
        sys.stdout.write(f"{await siege.cycle(number)}\n")
        sys.stdout.flush()
    await siege.end()
    assert sound(siege.path)
    return siege


def main() -> None:
    """Run as many cycles as asked for."""
    parser = argparse.ArgumentParser(description="power loss under load, again and again")
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        siege = asyncio.run(black_out(Path(directory), asked.cycles, asked.seed))
        sys.stdout.write(f"power lost at: {dict(siege.deaths)}, {siege.cut_off} turns cut off\n")
        sys.stdout.write(f"files that were not as the process had seen them: {siege.torn}\n")
        sys.stdout.write(f"acknowledged: {dict(siege.ledger.totals())}\n")
        sys.stdout.write("nothing lost, no version back, all replicas equal\n")


if __name__ == "__main__":
    main()
