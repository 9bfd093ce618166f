"""The command as a process of its own, whose output a test can wait for."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

COMMAND = (sys.executable, "-m", "midstream.cli")

WAITING = """
import asyncio

async def agent(turn):
    async with turn.step() as step, step.text() as text:
        await text.append("one two three")
        await asyncio.Event().wait()
"""
"""An agent that stops in the middle of a sentence, for as long as it may."""
DEAF = """
import asyncio

async def agent(turn):
    async with turn.step() as step, step.text() as text:
        await text.append("one two three")
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
"""
"""An agent that cannot be cancelled."""


class Ended(NamedTuple):
    """How a process ended, and all that it wrote."""

    code: int
    out: str
    err: str


class Running:
    """A process that runs."""

    def __init__(self, process: Process) -> None:
        """Begin to read what it writes."""
        self.process = process
        self._changed = asyncio.Event()
        self._written = {"out": bytearray(), "err": bytearray()}
        self._reading = (
            asyncio.create_task(self._read("out", process.stdout)),
            asyncio.create_task(self._read("err", process.stderr)),
        )

    @property
    def out(self) -> str:
        """What it wrote so far."""
        return self._written["out"].decode(errors="replace")

    @property
    def err(self) -> str:
        """What it wrote to standard error so far."""
        return self._written["err"].decode(errors="replace")

    async def until(self, text: str) -> str:
        """Wait until it wrote this, and return all that it wrote."""
        await self._until(lambda: text in self.out, text)
        return self.out

    async def until_note(self, text: str) -> None:
        """Wait until it wrote this to standard error."""
        await self._until(lambda: text in self.err, text)

    async def type(self, *lines: str) -> None:
        """Write lines to its input."""
        assert self.process.stdin
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        await self.process.stdin.drain()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def ended(self) -> Ended:
        """End its input, and wait until it ends."""
        if self.process.stdin:
            self.process.stdin.close()
        await asyncio.gather(*self._reading)
        code = await self.process.wait()
        return Ended(code, self.out, self.err)

    async def _until(self, true: Callable[[], bool], text: str) -> None:
        while not true():
            self._changed.clear()
            if all(task.done() for task in self._reading):
                raise EOFError(f"{text!r} did not come. It wrote: {self.out!r} {self.err!r}")
            await self._changed.wait()

    async def _read(self, name: str, stream: asyncio.StreamReader | None) -> None:
        try:
            while stream and (piece := await stream.read(65_536)):
                self._written[name] += piece
                self._changed.set()
        finally:
            self._changed.set()


@asynccontextmanager
async def started(
    *arguments: str,
    folder: Path,
    typing: bool = False,
    deaf: bool = False,
    environment: Mapping[str, str] | None = None,
) -> AsyncGenerator[Running]:
    """Run the command in a folder, which is also where it finds modules; kill it at the end if it still runs.

    With ``typing`` it has an input; with ``deaf`` nobody reads its output, as in a pipe whose reader left.
    """
    out: int = PIPE
    if deaf:
        reading, out = os.pipe()
        os.close(reading)
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)} | dict(environment or {}),
        stdin=PIPE if typing else DEVNULL,
        stdout=out,
        stderr=PIPE,
    )
    if deaf:
        os.close(out)
    running = Running(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.ended()


@asynccontextmanager
async def serving(folder: Path, *arguments: str) -> AsyncGenerator[tuple[Running, str]]:
    """Run a server without pauses on a free port; give it and its URL when it listens."""
    given = ("--database", "chat.db", "--speed", "0", "--log-level", "warning", *arguments)
    if "--port" not in given:
        given += ("--port", "0")
    async with started("serve", *given, folder=folder) as server:
        line = await server.until("Ctrl-C")
        yield server, line.split()[2]


def free_port() -> int:
    """Return a port on loopback that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
