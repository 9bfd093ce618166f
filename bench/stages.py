"""What does one version cost, stage by stage?

``python -m bench.stages [SESSIONS]`` runs sessions in this process, on a real database, whose agents say a
token in each turn of the event loop, as ``many_sessions`` does. Each line adds one stage to those above it:
first the tasks of the agents do nothing; then they write to sessions that nobody reads; then two readers each
are written to a descriptor that takes everything for nothing; at last to sockets that another process reads.
CPU time of the event loop's thread; once with one session, all of whose memory is in the processor's caches,
and once with many. About half a minute.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import selectors
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, cast

from bench.inside import inside
from bench.report import table
from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import SyncPayload
from midstream.server import TextStream, Turn, interpreter
from midstream.server.connections.backlog import Backlog
from midstream.server.connections.outbox import Outbox
from midstream.server.connections.subscription import Subscription
from midstream.server.connections.websocket import sealer
from midstream.server.sessions.services import Settings
from midstream.server.sessions.state import LoadedState
from midstream.server.sessions.writer import TurnWriter

READERS: Final = 2
TOKENS: Final = 40_000
"""Tokens of one measurement, of all sessions together."""
RUNS: Final = 3
MARK_BYTES: Final = 1024 * 1024
"""What may wait for a reader, and for all; here nothing does."""
NOTHING_JOINED: Final = Settings(tick_limit_seconds=0.0)


class Crowd:
    """Agents that wait for what they are to do, and their sessions."""

    def __init__(self) -> None:
        """Begin with none."""
        self.states: list[LoadedState] = []
        self._texts: list[TextStream] = []
        self._waiting: list[asyncio.Future[Callable[[TextStream], Awaitable[None]]]] = []

    async def agent(self, turn: Turn) -> None:
        """Run a turn."""
        writer = cast("TurnWriter", turn._writer)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - the readers are put in below the API
        self.states.append(writer._state)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - see above
        async with turn.step() as step, step.text() as text:
            self._texts.append(text)
            await asyncio.get_running_loop().create_future()

    async def gathered(self, sessions: int) -> None:
        """Wait until all have an open text."""
        while len(self._texts) < sessions:  # noqa: ASYNC110 - a turn of the loop is what it takes
            await asyncio.sleep(0)

    async def cost(self, does: Callable[[TextStream, int], Awaitable[None]]) -> float:
        """Return the CPU µs that a token takes, at the least of several runs."""
        each = TOKENS // len(self._texts)
        found: list[float] = []
        for _ in range(RUNS):
            begun = time.thread_time()
            await asyncio.gather(*(does(text, each) for text in self._texts))
            await asyncio.sleep(0)
            found.append((time.thread_time() - begun) / (each * len(self._texts)) * 1e6)
        return min(found)

    def read_by(self, descriptors: list[int]) -> list[Subscription]:
        """Have two descriptors written to for each session."""
        made: list[Subscription] = []
        for number, state in enumerate(self.states):
            for descriptor in descriptors[READERS * number : READERS * number + READERS]:
                subscription = Subscription("s", _outbox(), _Nobody())
                versions = state.versions
                state.stream.add(subscription)
                payload = SyncPayload(mode="reset", epoch=versions.epoch, version=versions.published)
                subscription.start(state.stream.channel, payload)
                subscription.expedite(descriptor)
                made.append(subscription)
        return made


class _Nobody:
    """Is told what becomes of a subscription."""

    def fell_behind(self, subscription: Subscription) -> None:
        """Refuse: what is written here is all taken."""
        raise RuntimeError(subscription.session_id)

    caught_up = missed = closed = fell_behind


def _outbox() -> Outbox:
    backlog = Backlog(MARK_BYTES, MARK_BYTES)
    return Outbox(
        MSGPACK,
        seal=sealer(MSGPACK),
        wake=_nothing,
        spill=lambda _: _nothing(),
        chunk_bytes=64 * 1024,
        backlog=backlog,
    )


def _nothing() -> None:
    """Do nothing."""


async def rests(text: TextStream, count: int) -> None:
    """Do nothing in so many turns of the event loop."""
    del text
    for _ in range(count):
        await asyncio.sleep(0)


async def speaks(text: TextStream, count: int) -> None:
    """Say a token in each of so many turns of the event loop."""
    for _ in range(count):
        await text.append("word")
        await asyncio.sleep(0)


def _drain(port: int, count: int) -> None:
    """Read from so many connections until they close."""
    selector = selectors.DefaultSelector()
    for _ in range(count):
        selector.register(socket.create_connection(("127.0.0.1", port)), selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if not cast("socket.socket", key.fileobj).recv(65_536):
                return


def _sockets(stack: ExitStack, count: int) -> list[int]:
    """Return the descriptors of so many connections that another process reads."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=count))
    reader = multiprocessing.get_context("fork").Process(
        target=_drain, args=(listener.getsockname()[1], count), daemon=True
    )
    reader.start()
    stack.callback(reader.kill)
    descriptors: list[int] = []
    for _ in range(count):
        accepted = stack.enter_context(listener.accept()[0])
        accepted.setblocking(False)  # noqa: FBT003 - the name of the method says what it is
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        descriptors.append(accepted.fileno())
    return descriptors


async def measure(sessions: int) -> list[float]:
    """Return the µs of a token after each stage."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        sockets = _sockets(stack, READERS * sessions)
        sink = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, sink)
        sinks = [sink, *(os.dup(sink) for _ in range(READERS * sessions - 1))]
        crowd = Crowd()
        async with inside(Path(folder) / "stages.db", crowd.agent, NOTHING_JOINED) as it:
            for number in range(sessions):
                await it.begin(f"s{number}")
            await crowd.gathered(sessions)
            found = [await crowd.cost(rests), await crowd.cost(speaks)]
            for descriptors in (sinks, sockets):
                readers = crowd.read_by(descriptors)
                found.append(await crowd.cost(speaks))
                for state in crowd.states:
                    for reader in tuple(state.stream.subscribers):
                        state.stream.remove(reader)
                del readers
        return found


STAGES: Final = (
    "the task of an agent, and the event loop's turn",
    "append, pace, tick, version, projection, history",
    "frame, encoding, header, two writes that cost nothing",
    "the kernel's two sends",
)


def main() -> None:
    """Measure, and print."""
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    interpreter.tune()
    columns = [asyncio.run(measure(sessions)) for sessions in (1, many)]
    lines = [
        [name, *(f"{column[at] - (column[at - 1] if at else 0):.1f}" for column in columns)]
        for at, name in enumerate(STAGES)
    ]
    lines.append(["in all", *(f"{column[-1]:.1f}" for column in columns)])
    print(table(["CPU µs of a version", "1 session", f"{many:,} sessions"], lines))


if __name__ == "__main__":
    main()
