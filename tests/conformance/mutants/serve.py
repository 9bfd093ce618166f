"""``python -m tests.conformance.mutants.serve DATABASE PORT MUTANT``: serves until it is told to stop, or killed."""

from __future__ import annotations

import asyncio
import signal
import sys

from midstream.protocol.limits import Limits
from midstream.server import Server, logs
from midstream.server.config import Config
from tests.conformance.mutants import MUTANTS

CONFIG = Config(
    agent="remote",
    heartbeat_ms=1_000,
    lease_seconds=3,
    offer_seconds=6,
    takeover_seconds=0.5,
    drain_seconds=1,
    limits=Limits(hello_seconds=2, calls_per_second=5_000),
)
"""Short deadlines, so that the cases which wait for one are over soon."""


async def main(database: str, port: int, mutant: str) -> None:
    """Serve, with what the mutant breaks."""
    logs.configure("json", "error")
    if mutant in MUTANTS:
        MUTANTS[mutant].break_server()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with Server(config=CONFIG, database=database).listen("127.0.0.1", port) as running:
        await stopped.wait()
        await running.drain()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
