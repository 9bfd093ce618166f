"""A server process as a test holds it: started, watched, stopped, killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Died(Exception):
    """The process ended before it did what was waited for."""


class ServerProcess:
    """A child that serves; `start` makes it.

    Attributes:
        url: where it listens.
        pid: its process id.
        logged: the warnings and errors that it has logged.
    """

    def __init__(self, process: Process) -> None:
        self.url = ""
        self.pid = process.pid
        self.logged: list[dict[str, Any]] = []
        self._process = process
        self._news = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        database: Path,
        agent: str,
        *,
        die_at: str = "",
        journal: Path | None = None,
        **settings: Any,  # noqa: ANN401  # of Config
    ) -> ServerProcess:
        """Start a server on a database.

        Raises:
            Died: it ended before it listened.
        """
        given = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.end_to_end.child",
            str(database),
            agent,
            *given,
            stdin=PIPE,
            stdout=PIPE,
            cwd=ROOT,
            env={**os.environ, "DIE_AT": die_at, "JOURNAL": str(journal or "")},
        )
        server = cls(process)
        server._reading = asyncio.create_task(server._read(), name="child's output")
        await server.until(lambda: bool(server.url))
        return server

    @property
    def returncode(self) -> int | None:
        """How it ended: 0 in good order, -9 if it was killed; None while it runs."""
        return self._process.returncode

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something that it printed has made a fact true.

        Raises:
            Died: it ended first.
        """
        while not fact():
            if self._reading is not None and self._reading.done():
                raise Died(f"The server ended with {await self._process.wait()}; it had logged {self.logged}")
            self._news.clear()
            await self._news.wait()

    async def ended(self) -> int:
        """Wait for its end, and return how it ended."""
        return await self._process.wait()

    async def stop(self) -> int:
        """Stop it in good order."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        return await self._end()

    async def kill(self) -> int:
        """Kill it by ``kill -9``, if it still runs."""
        if self._process.returncode is None:
            self._process.kill()
        return await self._end()

    def memory(self) -> tuple[int, int]:
        """Return its memory in bytes, now and at most so far (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        kib = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", status, re.MULTILINE))
        return int(kib["VmRSS"]) * 1024, int(kib["VmHWM"]) * 1024

    def memory_anew(self) -> int:
        """Return its memory in bytes, and count the most from now on (Linux)."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", "ascii")
        return self.memory()[0]

    async def _end(self) -> int:
        code = await self._process.wait()
        if self._reading is not None:
            await self._reading
        return code

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                if line.startswith(b"{"):
                    self.logged.append(json.loads(line))
                else:  # it may log something before it listens
                    self.url = line.decode().strip()
                self._news.set()
        finally:
            self._news.set()
