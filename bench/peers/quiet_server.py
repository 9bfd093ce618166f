"""midstream as a server that has little to do, and says how much memory that takes.

``python -m bench.peers.quiet_server --database FILE [--sessions N] [--histories COUNT,...]`` makes a session
with one turn, N copies of it, and one more for each COUNT, with so many messages. It prints ``ready URL``,
and obeys lines on its input (bench/README.md):

- ``memory``: says how many bytes the process has of its own (bench/resident.py).
- ``load SESSIONS``: has so many sessions loaded, each by a call.
- ``turn FIRST SESSIONS BYTES``: runs a turn in each of so many, whose answer has so many bytes.
- ``loaded``: says how many sessions are loaded.
- ``weigh COUNT``: says how many bytes the interpreter holds more when the session with COUNT messages is
  loaded, and read by a subscriber.
- ``cpu``: says how many seconds of CPU the process used.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from bench.caller import Caller, calling
from bench.contenders import session
from bench.copies import copy_session, lengthen_session
from bench.orders import orders
from bench.resident import resident
from midstream.protocol.calls import SessionParams, SessionResult, SubscribeParams, SubscribeResult
from midstream.server import Config, Limits, Server, Turn, logs

QUIET: Final = Limits(
    connections_per_subject=20_000,  # all clients of a bench come from one machine, without tokens
    calls_per_second=1_000_000,  # the sessions are loaded by one connection
    calls_in_flight=100_000,
)
HEARTBEAT_MS: Final = 600_000
"""A client is asked whether it is there less often than it is measured."""
ALL_AT_ONCE: Final = 200
"""Calls at a time."""
SEED: Final = "seed"
"""The session that the others are copies of."""
WORD: Final = "two words, and more "


async def answer(turn: Turn) -> None:
    """Answer with as many bytes as the prompt says, token by token."""
    async with turn.step() as step, step.text() as text:
        for _ in range(int(turn.prompt_text) // len(WORD)):
            await text.append(WORD)


class Stage:
    """The sessions of the server, and what can be ordered of them."""

    def __init__(self, caller: Caller) -> None:
        """Order by way of a client."""
        self._caller = caller
        self._turns = 0

    async def load(self, sessions: int) -> None:
        """Have so many sessions loaded."""

        async def load(name: str) -> None:
            await self._caller.call("sessions.get", SessionParams(session_id=name), SessionResult)

        await _some_at_once(load, range(sessions))

    async def turn(self, first: int, sessions: int, size: int) -> None:
        """Run a turn in so many sessions, from the ``first`` on."""
        self._turns += 1

        async def turn(name: str) -> None:
            await self._caller.prompt(name, f"turn-{self._turns}", str(size))
            await self._caller.until_idle(name)

        await _some_at_once(turn, range(first, first + sessions))

    async def weigh(self, count: int) -> int:
        """Return how many bytes the interpreter holds more when a session is loaded and read."""
        params = SubscribeParams(session_id=f"h{count}", limit=50)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        await self._caller.call("subscribe", params, SubscribeResult)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before


def loaded() -> int:
    """Return how many sessions are loaded: each is a task."""
    return sum(task.get_name().startswith("session ") for task in asyncio.all_tasks())


async def _some_at_once(work: Callable[[str], Awaitable[None]], numbers: range) -> None:
    names = [session(number) for number in numbers]
    for start in range(0, len(names), ALL_AT_ONCE):
        await asyncio.gather(*map(work, names[start : start + ALL_AT_ONCE]))


async def _obey(stage: Stage, words: list[str]) -> object:
    match words:
        case ["cpu"]:
            return time.process_time()
        case ["memory"]:
            return resident()
        case ["loaded"]:
            return loaded()
        case ["load", sessions]:
            await stage.load(int(sessions))
        case ["turn", first, sessions, size]:
            await stage.turn(int(first), int(sessions), int(size))
        case ["weigh", count]:
            return await stage.weigh(int(count))
        case _:
            return f"unknown: {' '.join(words)}"
    return "done"


async def _make(caller: Caller) -> None:
    await caller.create(SEED)
    await caller.prompt(SEED, "first", "1000")
    await caller.until_idle(SEED)


async def serve(options: argparse.Namespace) -> None:
    """Serve until the input ends."""
    logs.configure(level="error")
    config = Config(heartbeat_ms=HEARTBEAT_MS, limits=QUIET, idle_seconds=options.idle_seconds)
    server = Server(agent=answer, database=options.database, config=config)
    async with server.listen("127.0.0.1", 0) as running, calling(running.url) as caller:
        await _make(caller)
    copy_session(options.database, SEED, map(session, range(options.sessions)))
    histories = [int(count) for count in options.histories.split(",") if count]
    if histories:
        copy_session(options.database, SEED, [f"h{count}" for count in histories])
        for count in histories:
            lengthen_session(options.database, f"h{count}", count)
        tracemalloc.start()
    async with server.listen("127.0.0.1", 0) as running, calling(running.url) as caller:
        print(f"ready {running.url}", flush=True)
        stage = Stage(caller)
        async for words in orders():
            print(await _obey(stage, words), flush=True)


def main() -> None:
    """Read the options, and serve."""
    parser = argparse.ArgumentParser(description="midstream, measured at rest")
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--histories", default="", help="messages of sessions, a comma between")
    parser.add_argument("--idle-seconds", type=int, default=600)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
