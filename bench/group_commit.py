"""What does group commit bring? Rows a second that are on disk, by the number of callers that wait together.

``python -m bench.group_commit [DIRECTORY]`` writes rows of 2 KB with synchronous=FULL, each awaited, into a
database in a temporary directory (inside DIRECTORY, whose disk is then what is measured). It takes about
15 seconds. Read the ratios to one caller, not the numbers: they depend on the disk's fsync.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from midstream.server.storage.database import BATCH_JOBS, Database

CALLERS = (1, 2, 8, 32, BATCH_JOBS, 4 * BATCH_JOBS)
SECONDS = 2.5
"""For each number of callers; all of them together stay under 20 seconds."""
BODY = "x" * 2048


def make_table(connection: apsw.Connection) -> None:
    """Migrate: rows with a body of 2 KB."""
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")


def insert(connection: apsw.Connection) -> None:
    """Write one row."""
    connection.execute("INSERT INTO rows (body) VALUES (?)", (BODY,))


async def measure(path: Path, callers: int) -> tuple[float, float]:
    """Let the callers write for a while; give the rows a second and the rows a commit."""
    database = await Database.open(path, migrate=make_table)
    commits = 0

    def count() -> bool:
        nonlocal commits
        commits += 1
        return False

    await database.write(lambda connection: connection.set_commit_hook(count))
    start = time.perf_counter()
    end = start + SECONDS

    async def write_on() -> int:
        written = 0
        while time.perf_counter() < end:
            await database.write(insert)
            written += 1
        return written

    rows = sum(await asyncio.gather(*(write_on() for _ in range(callers))))
    elapsed = time.perf_counter() - start
    await database.close()
    return rows / elapsed, rows / max(commits, 1)


async def main(directory: str | None) -> None:
    """Measure each number of callers on a fresh database, and print a line for it."""
    print(f"{'callers':>8} {'rows/s':>9} {'rows/commit':>12} {'to one caller':>14}")
    alone = 0.0
    with tempfile.TemporaryDirectory(dir=directory) as place:
        for callers in CALLERS:
            rows, per_commit = await measure(Path(place) / f"{callers}.db", callers)
            alone = alone or rows
            print(f"{callers:>8} {rows:>9.0f} {per_commit:>12.1f} {rows / alone:>13.1f}x")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
