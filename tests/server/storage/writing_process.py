"""A process that owns a database and writes to it, to be killed by a test.

``python writing_process.py DATABASE`` prints ``open``, then each number once its write is acknowledged, for
ever, going on from the highest that it finds; with ``hold`` as second argument it writes nothing and waits
for its input to end.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from midstream.server.storage.database import Database

WRITERS = 16


def make_table(connection: apsw.Connection) -> None:
    """Migrate: numbers, with a body that makes commits as large as real ones."""
    connection.execute("CREATE TABLE IF NOT EXISTS t (x INTEGER, body TEXT)")


def next_number(connection: apsw.Connection) -> int:
    """Give the number after the highest that is stored."""
    highest = connection.execute("SELECT max(x) FROM t").get
    return highest + 1 if isinstance(highest, int) else 0


def say(word: object) -> None:
    """Print at once, in one system call, so that a kill does not lose what was said."""
    os.write(1, f"{word}\n".encode())


async def write_on(database: Database, numbers: Iterator[int]) -> None:
    """Write one number after another, each said only when it was acknowledged."""
    for number in numbers:

        def job(connection: apsw.Connection, number: int = number) -> None:
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 2000))

        await database.write(job)
        say(number)


async def main(path: Path, *, hold: bool) -> None:
    """Own the database, and write or wait."""
    database = await Database.open(path, migrate=make_table)
    say("open")
    if hold:
        await asyncio.to_thread(sys.stdin.read)
    else:
        numbers = itertools.count(await database.read(next_number))
        await asyncio.gather(*(write_on(database, numbers) for _ in range(WRITERS)))
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), hold=sys.argv[2:] == ["hold"]))
