"""A server that is restarted under a crowd: how soon all are back, how spread, and that nothing is lost.

``python -m tests.end_to_end.restart [--clients 2000] [--kill] [--times 1]`` starts ``midstream serve``, lets
clients follow sessions in which people write, ends the process by SIGTERM (or ``kill -9``), starts another
one as soon as it is gone, and reckons.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

from midstream.protocol.calls import PromptResult, SessionResult
from midstream.protocol.errors import AlreadyExists
from tests.cli.processes import free_port
from tests.end_to_end.crowd import Visitor
from tests.end_to_end.process import ROOT
from tests.end_to_end.stage import prompt_params
from tests.laws.line import Line
from tests.laws.reader import Reader

READERS = 100
"""Clients of one session."""
WRITING_S = 2.0
"""Seconds between two prompts of one writer, about."""
SLICE_S = 0.1
"""In which reconnects are counted."""


class Report(NamedTuple):
    """What came of one restart; seconds since the signal."""

    ended: float
    exit_code: int
    listening: float
    first: float
    middle: float
    last: float
    attempts: int
    most_at_once: int
    """Attempts in the busiest tenth of a second."""
    acknowledged: int

    def __str__(self) -> str:
        """Say it in one line."""
        return (
            f"old process gone after {self.ended:.2f} s (exit code {self.exit_code}), new one listens after"
            f" {self.listening:.2f} s; clients back: first {self.first:.2f} s, half {self.middle:.2f} s, last"
            f" {self.last:.2f} s; {self.attempts} attempts, at most {self.most_at_once} in 0.1 s;"
            f" {self.acknowledged} prompts acknowledged so far, none lost, all replicas equal"
        )


class Crowd:
    """A server process, and all who are connected to it."""

    def __init__(self, directory: Path, clients: int, seed: int) -> None:
        """Prepare so many clients, a hundred of them in a session."""
        self.chance = Random(seed)
        self.port = free_port()
        self.names = [f"s{number}" for number in range(max(1, clients // READERS))]
        self.accepted: dict[str, PromptResult] = {}
        self._count = clients
        self._path = directory / "chat.db"
        self._log = directory / "log"
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._visitors: list[Visitor] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Start the server, make the sessions, and wait until all are there."""
        await self.start()
        line = await self._line()
        for name in self.names:
            with suppress(AlreadyExists):
                await line.ask(SessionResult, "sessions.create", session_id=name)
        await line.close()
        for number in range(self._count):
            visitor = Visitor(lambda: self.port, self.names[number % len(self.names)], Random(number))
            self._visitors.append(visitor)
            self._tasks.append(asyncio.create_task(visitor.stay()))
            if number % 50 == 49:
                await self._all_back(0.0)
        await self._all_back(0.0)
        self._tasks += [
            asyncio.create_task(self._write(visitor)) for visitor in self._visitors[: len(self.names)]
        ]

    async def start(self) -> None:
        """Start a server process, and wait until it listens."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "midstream.cli", "serve", "--no-page", "--log-level", "warning"),
                *("--agent", "tests.end_to_end.agents:flood", "--port", str(self.port)),
                *("--database", str(self._path)),
                cwd=ROOT,
                env={**os.environ, "MIDSTREAM_LIMIT_CONNECTIONS_PER_SUBJECT": "100000"},
                stdout=PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert line.startswith(b"Listening on"), self._log.read_text()
        self._reading = asyncio.create_task(_drop(self._process.stdout))

    async def restart(self, number: signal.Signals) -> Report:
        """End the process by a signal, start another as soon as it is gone, and wait until all are back."""
        assert self._process is not None
        loop = asyncio.get_running_loop()
        began = loop.time()
        for visitor in self._visitors:
            visitor.attempts.clear()
        self._process.send_signal(number)
        code = await self._process.wait()
        ended = loop.time()
        expected = 0 if number is signal.SIGTERM else -number
        assert code == expected, f"it ended with {code}: {self._log.read_text('utf-8')}"
        await self.start()
        listening = loop.time()
        await self._all_back(ended)
        back = sorted(visitor.back_at - began for visitor in self._visitors)
        attempts = [at - began for visitor in self._visitors for at in visitor.attempts]
        slices = Counter(int(at / SLICE_S) for at in attempts)
        return Report(
            ended=ended - began,
            exit_code=code,
            listening=listening - began,
            first=back[0],
            middle=median(back),
            last=back[-1],
            attempts=len(attempts),
            most_at_once=max(slices.values()),
            acknowledged=len(self.accepted),
        )

    async def reckon(self) -> None:
        """Let the writers end; then all that was acknowledged is there, and every replica is equal."""
        for task in self._tasks[self._count :]:
            task.cancel()
        await asyncio.gather(*self._tasks[self._count :], return_exceptions=True)
        del self._tasks[self._count :]
        for name in self.names:
            fresh = Reader(await self._line(), name)
            await fresh.join()
            await fresh.line.until(lambda fresh=fresh: fresh.replica.running_turn is None)  # type: ignore[misc]  # bound
            await fresh.read_all(200)
            users = Counter(one.message_id for one in fresh.replica.messages() if one.role == "user")
            assert max(users.values(), default=0) <= 1
            lost = {key for key in self.accepted if key.startswith(f"{name}-")} - set(users)
            assert not lost, f"acknowledged, and lost: {lost}"
            for visitor in self._visitors:
                if visitor.replica.session_id == name:
                    await visitor.until(lambda v=visitor, f=fresh: v.replica.version >= f.replica.version)  # type: ignore[misc]  # bound
                    first = visitor.replica.from_sequence or 1
                    whole = [one for one in fresh.replica.messages() if one.sequence >= first]
                    assert visitor.replica.messages() == whole
            await fresh.line.close()
        for visitor in self._visitors[: len(self.names)]:
            self._tasks.append(asyncio.create_task(self._write(visitor)))

    async def end(self) -> None:
        """End everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading

    async def _line(self) -> Line:
        return await Line.open(f"ws://127.0.0.1:{self.port}")

    async def _all_back(self, since: float) -> None:
        async def wait() -> None:
            for visitor in self._visitors:
                await visitor.until(lambda visitor=visitor: visitor.back_at > since)  # type: ignore[misc]  # bound

        waiting = asyncio.create_task(wait())
        done, _ = await asyncio.wait({waiting, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        if waiting not in done:
            waiting.cancel()
        for task in done:
            await task  # raises what went wrong with a client

    async def _write(self, visitor: Visitor) -> None:
        """Prompt, again and again; each until it is acknowledged."""
        name = visitor.replica.session_id
        while True:
            await asyncio.sleep(self.chance.uniform(0.5, 1.5) * WRITING_S)
            message_id = f"{name}-{self.chance.getrandbits(40):x}"
            params = prompt_params("8 word", name, message_id, "queue")
            self.accepted[message_id] = await visitor.ask(PromptResult, "prompt", **params)


async def _drop(stream: asyncio.StreamReader) -> None:
    while await stream.read(65_536):
        pass


async def run(directory: Path, clients: int, *, kill: bool, times: int, seed: int) -> list[Report]:
    """Restart so often, and print a line for each."""
    crowd = Crowd(directory, clients, seed)
    reports: list[Report] = []
    try:
        await crowd.begin()
        for _ in range(times):
            await asyncio.sleep(2 * WRITING_S)
            report = await crowd.restart(signal.SIGKILL if kill else signal.SIGTERM)
            await crowd.reckon()
            reports.append(report)
            sys.stdout.write(f"{report}\n")
            sys.stdout.flush()
    finally:
        await crowd.end()
    return reports


def main() -> None:
    """Run as asked."""
    parser = argparse.ArgumentParser(description="a restart under a crowd")
    parser.add_argument("--clients", type=int, default=2_000)
    parser.add_argument("--kill", action="store_true", help="kill -9 instead of SIGTERM")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(Path(directory), asked.clients, kill=asked.kill, times=asked.times, seed=asked.seed))


if __name__ == "__main__":
    main()
