"""The client under test: a program that reads instructions as lines of JSON, and answers in lines of JSON.

The lines are described in docs/conformance.md, "Test your client".
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Sequence
from typing import Self

import msgspec

from midstream.conformance.outcome import Failed
from midstream.protocol.model import Session, Turn
from midstream.protocol.values import Value

START_S = 60.0
"""Seconds until the program must have said what it is: some compile first."""
ANSWER_S = 20.0
"""Seconds that an instruction may take, where its case does not name another time."""
END_S = 1.0
"""Seconds that it may take to end when its input does."""
LINE_BYTES = 64 * 1024 * 1024
"""The longest line that is read."""


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The program's first line."""

    ready: str
    """Its name and version."""
    can: list[str] = []
    """What it can beyond what all must: the names of SPEC that need it are in docs/conformance.md."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What the client shows of a session: the answer to ``state``."""

    state: str
    """``live`` where the replica is the server's, ``closed`` where it never will be, else another word."""
    version: int = 0
    epoch: str | None = None
    has_earlier: bool = True
    session: Session | None = None
    turns: list[Turn] = []
    digests: list[tuple[int, int, str]] = []
    prompts: dict[str, str] = {}
    link: str = ""
    error: str | None = None


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What the client shows of the list of sessions: the answer to ``list``."""

    state: str
    items: list[tuple[str, int]] = []


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    ok: msgspec.Raw = msgspec.Raw(b"{}")
    error: str | None = None


class Refused(Exception):
    """The client said that it could not carry out an instruction; the text is the error's code."""


class Driver:
    """One run of the program; serves one case after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Take over a program that was started; see :meth:`start`."""
        self._process = process
        self._next = 0
        self._waiting: dict[int, asyncio.Future[_Answer]] = {}
        self._said: deque[str] = deque(maxlen=30)
        loop = asyncio.get_running_loop()
        self._begun: asyncio.Future[Ready] = loop.create_future()
        self._tasks = [loop.create_task(self._read()), loop.create_task(self._read_errors())]
        self.ready = Ready(ready="")

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Start the program and wait for its first line.

        Raises:
            Failed: it ended, or said something else, or nothing in time.

        """
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, limit=LINE_BYTES
            )
        except OSError as error:
            raise Failed(f"the command {command[0]!r} cannot be started: {error}") from error
        driver = cls(process)
        try:
            async with asyncio.timeout(START_S):
                driver.ready = await driver._begun
        except TimeoutError:
            await driver.end()
            raise Failed(f"the client did not say that it is ready within {START_S:g} s") from None
        except Failed:
            await driver.end()
            raise
        return driver

    @property
    def runs(self) -> bool:
        """Whether the program still answers."""
        return self._process.returncode is None and not self._tasks[0].done()

    @property
    def errors(self) -> list[str]:
        """The last lines that it wrote to its standard error."""
        return list(self._said)

    async def ask(self, do: str, *, within: float = ANSWER_S, **params: Value) -> msgspec.Raw:
        """Give an instruction and return the answer.

        Raises:
            Refused: the client answered with an error.
            Failed: it ended, or did not answer.

        """
        self._next += 1
        number = self._next
        future: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        stdin = self._process.stdin
        if stdin is None or not self.runs:
            raise self._ended()
        stdin.write(json.dumps({"id": number, "do": do, **params}).encode() + b"\n")
        try:
            async with asyncio.timeout(within):
                answer = await future
        except TimeoutError:
            raise Failed(f"the client did not answer the instruction {do!r} within {within:g} s") from None
        finally:
            self._waiting.pop(number, None)
        if answer.error is not None:
            raise Refused(answer.error)
        return answer.ok

    async def end(self) -> None:
        """End the program: by the end of its input, or, where it does not obey, by force."""
        with contextlib.suppress(TimeoutError, OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
            async with asyncio.timeout(END_S):
                await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self) -> None:
        stdout = self._process.stdout
        while stdout is not None and (line := await stdout.readline()):
            self._take(line)
        ended = self._ended()
        futures: list[asyncio.Future[Ready] | asyncio.Future[_Answer]] = [
            self._begun,
            *self._waiting.values(),
        ]
        for future in futures:
            if not future.done():
                future.set_exception(ended)
                future.exception()  # who waits gets it; nobody may wait

    def _take(self, line: bytes) -> None:
        try:
            if not self._begun.done():
                self._begun.set_result(msgspec.json.decode(line, type=Ready))
                return
            answer = msgspec.json.decode(line, type=_Answer)
        except msgspec.DecodeError as error:
            self._said.append(f"not a line of the kit ({error}): {line[:200]!r}")
            return
        future = self._waiting.get(answer.id)
        if future is not None and not future.done():
            future.set_result(answer)

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (line := await stderr.readline()):
            self._said.append(line.decode(errors="replace").rstrip())

    def _ended(self) -> Failed:
        said = "\n".join(self._said)
        return Failed(f"the client's program ended (status {self._process.returncode})", seen=said)
