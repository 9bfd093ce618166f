"""midstream itself as a server under test: the real one, with a real database, and agents that obey.

``python -m bench.peers.midstream_server [--sessions N] [--tick-ms N] ...`` creates sessions, begins a turn
in each, prints ``ready URL``, and obeys lines on its input (bench/README.md), each done when ``done`` is
printed:

- ``fan COUNT BYTES BATCH``: the agent of the first session says COUNT tokens, one to each of BATCH open
  texts, then waits until they are published. A token is as long as a frame of BYTES bytes leaves room for.
- ``merge COUNT BYTES BATCH``: the same, with BATCH tokens to one text.
- ``rooms ROOMS COUNT BYTES``: the agents of so many sessions say COUNT tokens each, each when the one before
  it is published.
- ``flood ROOMS COUNT BYTES``: the same, without waiting: one token in a turn of the event loop.
- ``pace ROOMS RATE COUNT``: they say COUNT tokens of 20 bytes each, RATE a second in all, each with its time.
- ``wake ROOMS``: begins a turn in those sessions that have none (``--resting``).
- ``cpu``: says how many seconds of CPU the process used.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple, cast

from bench.caller import Caller, Refused, calling
from bench.contenders import session
from bench.copies import copy_session
from bench.orders import orders
from midstream.server import Config, Limits, Server, Step, TextStream, Turn, interpreter, logs
from midstream.server.sessions.writer import TurnWriter

FRAME_OVERHEAD: Final = 8
"""Bytes of a short delta's frame beside its text, at most: what another server must send to say the same."""
SHORT: Final = "short"
"""A prompt that is answered at once."""
ANSWER: Final = "A line of an answer, as most of them are: not long, and not short either. " * 12
SETTING_UP: Final = Limits(
    connections_per_subject=20_000,  # all clients of a bench come from one machine, without tokens
    calls_per_second=1_000_000,  # the sessions are made by one connection
    calls_in_flight=100_000,
)
HEARTBEAT_MS: Final = 600_000
"""No peer is asked whether it is there while it is measured; the other servers do not ask either."""
ALL_AT_ONCE: Final = 200
"""Sessions that are made at a time."""


class Parts:
    """The texts that an agent has open in its step; another one is opened when it is wanted."""

    def __init__(self, turn: Turn, step: Step, stack: AsyncExitStack) -> None:
        self._turn = turn
        self._step = step
        self._stack = stack
        self._texts: list[TextStream] = []

    async def open(self, count: int) -> list[TextStream]:
        """Return so many open texts."""
        while len(self._texts) < count:
            self._texts.append(await self._stack.enter_async_context(self._step.text()))
        return self._texts[:count]

    async def published(self) -> None:
        """Wait until what was said is published, so that what is said next gets a version of its own.

        An agent has no need to know, and no way to ask: so this asks behind its API.
        """
        writer = cast("TurnWriter", self._turn._writer)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - see above
        await writer._state.published()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - see above


Order = Callable[[Parts], Awaitable[None]]


class _Told(NamedTuple):
    order: Order
    done: asyncio.Future[None]


class Speaker:
    """The agent of one session, and the orders that wait for it."""

    def __init__(self) -> None:
        self.speaks = False
        self._orders: asyncio.Queue[_Told] = asyncio.Queue()

    async def obey(self, order: Order) -> None:
        """Have an order carried out by the agent, and wait until it is."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._orders.put(_Told(order, done))
        await done

    async def run(self, turn: Turn) -> None:
        """Run a turn."""
        self.speaks = True
        async with turn.step() as step, AsyncExitStack() as stack:
            parts = Parts(turn, step, stack)
            while True:
                order, done = await self._orders.get()
                try:
                    await order(parts)
                except Exception as error:  # noqa: BLE001 - it is the one's who gave the order
                    done.set_exception(error)
                else:
                    done.set_result(None)


class Stage:
    """All sessions of the server, and what can be ordered of their agents."""

    def __init__(self, sessions: int) -> None:
        self.names = [session(number) for number in range(sessions)]
        self._speakers = {name: Speaker() for name in self.names}
        self._turns = 0

    async def run(self, turn: Turn) -> None:
        """Run a turn of any session."""
        if turn.prompt_text == SHORT:
            async with turn.step() as step, step.text() as text:
                await text.append(ANSWER)
        else:
            await self._speakers[turn.session_id].run(turn)

    # Setting up

    async def begin(self, caller: Caller, *, history: int) -> None:
        """Make the first session, with so many messages, if it does not exist yet."""
        first = self.names[0]
        with suppress(Refused):
            await caller.create(first)
            for number in range(history // 2):
                await caller.prompt(first, f"before-{number}", SHORT)
                await caller.until_idle(first)

    async def wake(self, caller: Caller, rooms: int) -> None:
        """Begin a turn in each session that has none, and wait until its agent speaks."""
        self._turns += 1
        silent = [name for name in self.names[:rooms] if not self._speakers[name].speaks]

        async def wake(name: str) -> None:
            await caller.prompt(name, f"turn-{self._turns}-of-{time.time_ns()}", "Go on.")
            await self._speakers[name].obey(_open_one)

        await _some_at_once(wake, silent)

    # Speaking

    async def fan(self, count: int, size: int, batch: int) -> None:
        """Say tokens in the first session, one to each of so many texts at a time."""
        await self._speakers[self.names[0]].obey(lambda parts: _say(parts, count // batch, size, batch))

    async def merge(self, count: int, size: int, batch: int) -> None:
        """Say tokens in the first session, so many to one text at a time."""
        await self._speakers[self.names[0]].obey(
            lambda parts: _say_to_one(parts, count // batch, size, batch)
        )

    async def rooms(self, rooms: int, count: int, size: int) -> None:
        """Say tokens in so many sessions."""
        await self._all(rooms, lambda _: lambda parts: _say(parts, count, size, 1))

    async def flood(self, rooms: int, count: int, size: int) -> None:
        """Say tokens in so many sessions, faster than they are published."""
        await self._all(rooms, lambda _: lambda parts: _say_on(parts, count, size))

    async def pace(self, rooms: int, rate: float, count: int) -> None:
        """Say tokens in so many sessions, each at its time: ``rate`` a second in all, evenly spread."""
        start = time.monotonic()

        def order(room: int) -> Order:
            return lambda parts: _keep_pace(parts, start + room / rate, rooms / rate, count)

        await self._all(rooms, order)

    async def _all(self, rooms: int, order: Callable[[int], Order]) -> None:
        names = self.names[:rooms]
        await asyncio.gather(*(self._speakers[name].obey(order(room)) for room, name in enumerate(names)))


async def _some_at_once(work: Callable[[str], Awaitable[None]], names: list[str]) -> None:
    for start in range(0, len(names), ALL_AT_ONCE):
        await asyncio.gather(*(work(name) for name in names[start : start + ALL_AT_ONCE]))


async def _open_one(parts: Parts) -> None:
    await parts.open(1)


async def _say(parts: Parts, turns: int, size: int, batch: int) -> None:
    texts, token = await parts.open(batch), token_of(size)
    for _ in range(turns):
        for text in texts:
            await text.append(token)
        await parts.published()


async def _say_on(parts: Parts, count: int, size: int) -> None:
    (text,), token = await parts.open(1), token_of(size)
    for _ in range(count):
        await text.append(token)
        await asyncio.sleep(0)


async def _say_to_one(parts: Parts, turns: int, size: int, batch: int) -> None:
    (text,), token = await parts.open(1), token_of(size)
    for _ in range(turns):
        for _ in range(batch):
            await text.append(token)
        await parts.published()


async def _keep_pace(parts: Parts, first: float, apart: float, count: int) -> None:
    (text,) = await parts.open(1)
    for number in range(count):
        early = first + number * apart - time.monotonic()
        if early > 0:
            await asyncio.sleep(early)
        await text.append(f"word{time.monotonic_ns():016x}")


def token_of(size: int) -> str:
    """Return the token whose frame has about so many bytes; four characters at least."""
    return "word" * max(1, (size - FRAME_OVERHEAD) // 4)


async def _obey(stage: Stage, caller: Caller, words: list[str]) -> object:
    match words:
        case ["cpu"]:
            return time.process_time()
        case ["fan", count, size, batch]:
            await stage.fan(int(count), int(size), int(batch))
        case ["merge", count, size, batch]:
            await stage.merge(int(count), int(size), int(batch))
        case ["rooms", rooms, count, size]:
            await stage.rooms(int(rooms), int(count), int(size))
        case ["flood", rooms, count, size]:
            await stage.flood(int(rooms), int(count), int(size))
        case ["pace", rooms, rate, count]:
            await stage.pace(int(rooms), float(rate), int(count))
        case ["wake", rooms]:
            await stage.wake(caller, int(rooms))
        case _:
            return f"unknown: {' '.join(words)}"
    return "done"


async def serve(options: argparse.Namespace, database: Path) -> None:
    """Serve until the input ends."""
    stage = Stage(options.sessions)
    logs.configure(level="error")
    settings = {"tick_ms": options.tick_ms, "idle_seconds": options.idle_seconds}
    if options.tick_ms == 0:
        settings["tick_limit_ms"] = 0
    given = {name: value for name, value in settings.items() if value is not None}
    config = Config(heartbeat_ms=HEARTBEAT_MS, limits=SETTING_UP)
    server = Server(agent=stage.run, database=database, config=config, **given)
    async with server.listen("127.0.0.1", 0) as running, calling(running.url) as caller:
        await stage.begin(caller, history=options.history)
    copy_session(database, stage.names[0], stage.names)
    async with server.listen("127.0.0.1", 0) as running, calling(running.url) as caller:
        if not options.resting:
            await stage.wake(caller, options.sessions)
        print(f"ready {running.url}", flush=True)
        async for words in orders():
            print(await _obey(stage, caller, words), flush=True)


def main() -> None:
    """Read the options, and serve."""
    parser = argparse.ArgumentParser(description="midstream as a server under test")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--history", type=int, default=0, help="messages of each session")
    parser.add_argument("--resting", action="store_true", help="begin no turns")
    parser.add_argument("--tick-ms", type=int, help="0: joins nothing, whatever the load")
    parser.add_argument("--idle-seconds", type=int)
    parser.add_argument("--database", type=Path, help="kept, and used again where it exists")
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    interpreter.tune()  # as the command does that serves
    with tempfile.TemporaryDirectory() as directory:
        serving = serve(options, options.database or Path(directory) / "bench.db")
        if options.uvloop:
            import uvloop  # noqa: PLC0415 - only where it is asked for

            uvloop.run(serving)
        else:
            asyncio.run(serving)


if __name__ == "__main__":
    main()
