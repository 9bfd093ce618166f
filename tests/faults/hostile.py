"""What ten thousand hostile connections cost the server, and its honest clients.

``python -m tests.faults.hostile [--connections N] [--seconds S] [KIND...]``: a server process, honest readers
of a session that streams the time of day, and attackers of every kind. Prints how late the text was before,
during and after the attack, and how far the server's memory grew. Ends with 1 where
that was more than 100 MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from midstream.client import Client, TextAppended
from tests.end_to_end.process import ROOT, ServerProcess
from tests.faults.attackers import ATTACKS

READERS = 20
MIB = 1024 * 1024
MOST_BYTES = 100 * MIB
QUIET_SECONDS = 8.0


class Lateness(NamedTuple):
    """How late text was, in ms."""

    p50: float
    p99: float
    tokens: int

    @classmethod
    def of(cls, late: list[float]) -> Lateness:
        """Sum up what was measured."""
        cuts = statistics.quantiles(late, n=100)
        return cls(round(cuts[49], 2), round(cuts[98], 2), len(late))


class Found(NamedTuple):
    """What was measured."""

    before: Lateness
    during: Lateness
    after: Lateness
    grown_bytes: int
    attackers: dict[str, int]


async def read(url: str, late: list[float]) -> None:
    """Follow the session, and note how late each of its times came."""
    async with Client(url) as client:
        session = await client.session("busy")
        async for mutation in session.mutations():
            if isinstance(mutation.payload, TextAppended):
                now = time.monotonic_ns()
                late.extend((now - int(stamp)) / 1e6 for stamp in mutation.payload.text.split())


async def measure(connections: int, seconds: float, kinds: list[str]) -> Found:
    """Run a server, its readers and the attackers."""
    with tempfile.TemporaryDirectory() as directory:
        server = await ServerProcess.start(Path(directory) / "hostile.db", "tell_time")
        late: list[float] = []
        async with Client(server.url) as client:
            session = await client.session("busy", create=True)
            await session.prompt(str(seconds + 4 * QUIET_SECONDS))
            readers = [asyncio.create_task(read(server.url, late)) for _ in range(READERS)]
            await asyncio.sleep(2)
            before = await _listen(late, QUIET_SECONDS)
            rss = server.memory_anew()
            where = urlsplit(server.url)
            attackers = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.faults.attackers",
                str(where.hostname), str(where.port), str(connections), str(seconds), *kinds,
                stdout=asyncio.subprocess.PIPE, cwd=ROOT,
            )  # fmt: skip
            late.clear()
            output, _ = await attackers.communicate()
            during = Lateness.of(late)
            _, most = server.memory()
            after = await _listen(late, QUIET_SECONDS)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
        await server.stop()
        return Found(before, during, after, most - rss, json.loads(output))


async def _listen(late: list[float], seconds: float) -> Lateness:
    late.clear()
    await asyncio.sleep(seconds)
    return Lateness.of(late)


def main() -> int:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("kinds", nargs="*", help=f"of attackers ({', '.join(ATTACKS)}); none: all")
    given = parser.parse_args()
    found = asyncio.run(measure(given.connections, given.seconds, given.kinds))
    for name in ("before", "during", "after"):
        lateness: Lateness = getattr(found, name)
        p50, p99 = f"p50 {lateness.p50:8.2f} ms", f"p99 {lateness.p99:8.2f} ms"
        sys.stdout.write(f"{name:8} {p50}   {p99}   of {lateness.tokens:,} tokens\n")
    sys.stdout.write(f"memory grew by {found.grown_bytes / MIB:.1f} MiB (at most 100)\n")
    sys.stdout.write(f"{json.dumps(found.attackers)}\n")
    return int(found.grown_bytes > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
