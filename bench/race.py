"""Runs servers under test beside each other: starts and pins them, drives the load client, checks all counts.

A server and the load client are processes that obey lines (bench/README.md); each has a core of its own, and
this process sleeps while they work. A run in which one connection lacks a frame, or gets one too many, is an
error, and no number.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from bench.contenders import ROOT, Contender
from bench.machine import allow_open_files, cores, starting_on

HERE: Final = Path(__file__).parent
BUILT: Final = HERE / ".build"
ANSWER_SECONDS: Final = 120.0
"""How long any answer may take before the run is given up."""
OPEN_FILES: Final = 20_000
AT_ONCE: Final = 64
"""Handshakes at a time, where they are not what is measured; a listening socket holds more by default."""


class RunFailed(Exception):
    """A server or the load client did not do what it was told, so there is nothing to report."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the load client saw, from ``begin`` or ``open`` on."""

    seconds: float
    """To the last frame that was waited for, or to the last connection that was ready."""
    first: float
    """To the first frame."""
    ready: int
    retries: int
    """Connections that were refused or cut before they were open, and tried again."""
    refused: int
    """Calls that were refused while a connection followed its script, and made again."""
    equal: bool
    """Whether all connections of a group got the same bytes, each."""
    answer_bytes: tuple[int, int]
    """The least and the most bytes that came after the last message of a connection's script."""
    frames: int
    units: int
    """Messages, or the tokens in them: what was counted on each connection."""
    bytes: int
    reads: int
    samples: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float


class _Failure(msgspec.Struct, frozen=True, kw_only=True):
    error: str = ""
    ready: int = 0
    behind: int = 0
    frames: int = 0


class LineProcess:
    """A process on one core that answers each line with a line."""

    def __init__(self, name: str, command: Sequence[str], *, core: int, cwd: Path | None = None) -> None:
        """Start it."""
        self.name = name
        self._kept = b""
        with starting_on(core):
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, bufsize=0
            )

    def tell(self, line: str) -> None:
        """Send a line."""
        if self._process.stdin is None:
            raise RunFailed(f"{self.name} has no input")
        try:
            self._process.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            raise RunFailed(f"{self.name} ended with {self._process.wait()} before {line!r}") from None

    def answer(self, seconds: float = ANSWER_SECONDS) -> str:
        """Wait for the next line."""
        if self._process.stdout is None:
            raise RunFailed(f"{self.name} has no output")
        end = time.monotonic() + seconds
        while b"\n" not in self._kept:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise RunFailed(f"{self.name} did not answer within {seconds:.0f} s")
            data = os.read(self._process.stdout.fileno(), 65_536)
            if not data:
                raise RunFailed(f"{self.name} ended with {self._process.wait()} instead of answering")
            self._kept += data
        line, _, self._kept = self._kept.partition(b"\n")
        return line.decode().strip()

    def ask(self, line: str) -> str:
        """Send a line, and wait for the answer."""
        self.tell(line)
        return self.answer()

    def __enter__(self) -> Self:
        """Run until the block ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its input, which ends it, and wait; kill it where that does not help."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Load:
    """The load client: its connections to one server."""

    def __init__(self, process: LineProcess) -> None:
        """Drive a process."""
        self._process = process

    def open(self, at_once: int = AT_ONCE) -> Report:
        """Connect all, and wait until all are ready."""
        return self._report(self._process.ask(f"open {at_once}"))

    def begin(self, units: int, unit_bytes: int = 0) -> None:
        """Count from now on: each connection is to get so many messages, or tokens of ``unit_bytes``."""
        self._check(self._process.ask(f"begin {units} {unit_bytes}"))

    def wait(self) -> Report:
        """Wait until all have got what they were to get, and nothing else."""
        return self._report(self._process.ask("wait"))

    def close(self) -> None:
        """Cut all connections."""
        self._check(self._process.ask("close"))

    def _check(self, line: str) -> None:
        failure = msgspec.json.decode(line, type=_Failure)
        if failure.error:
            raise RunFailed(f"{self._process.name}: {failure}")

    def _report(self, line: str) -> Report:
        self._check(line)
        return msgspec.json.decode(line, type=Report)


class Course:
    """One server with connections to it, ready to be run."""

    def __init__(self, contender: Contender, server: LineProcess, load: Load, opened: Report) -> None:
        """Made by :func:`course`."""
        self.contender = contender
        self.server = server
        self.load = load
        self.opened = opened

    def run(self, command: str, units: int, unit_bytes: int = 0) -> Report:
        """Have the server do something, by which each connection gets so many units.

        Raises:
            RunFailed: one got fewer or more, or not the same as its neighbours.

        """
        self.load.begin(units, unit_bytes)
        self.server.tell(command)
        report = self.load.wait()
        self.done(command)
        if not report.equal:
            raise RunFailed(f"{self.contender.name}: two connections of a group got different bytes")
        return report

    def done(self, command: str) -> None:
        """Wait until the server has done what it was told."""
        if (answer := self.server.answer()) != "done":
            raise RunFailed(f"{self.contender.name} did not do {command!r}: it said {answer!r}")

    def cpu(self) -> float:
        """Return the seconds of CPU that the server took so far."""
        return float(self.server.ask("cpu"))


@contextmanager
def served(contender: Contender) -> Generator[tuple[LineProcess, str, int]]:
    """Run a server on its core; gives it with its host and port."""
    allow_open_files(OPEN_FILES)
    command = contender.command(built)
    with LineProcess(contender.name, command, core=cores().server, cwd=ROOT) as server:
        word, _, url = server.answer().partition(" ")
        where = urlsplit(url)
        if word != "ready" or where.hostname is None or where.port is None:
            raise RunFailed(f"{contender.name} did not say where it listens, but {word} {url}")
        yield server, where.hostname, where.port


@contextmanager
def loaded(contender: Contender, script: str, host: str, port: int, connections: int) -> Generator[Load]:
    """Run a load client on its core that knows the script; nothing is connected yet."""
    program = built("load/load.c")
    with tempfile.NamedTemporaryFile("w", suffix=".script") as file:
        file.write(script)
        file.flush()
        command = (program, host, str(port), str(connections), file.name)
        with LineProcess(f"load on {contender.name}", command, core=cores().load) as process:
            yield Load(process)


@contextmanager
def course(contender: Contender, connections: int, groups: int = 1) -> Generator[Course]:
    """Run a server, and connect so many clients to it, spread over so many groups."""
    with (
        served(contender) as (server, host, port),
        loaded(contender, contender.script(groups), host, port, connections) as load,
    ):
        yield Course(contender, server, load, load.open())
        load.close()


def calibrated(run: Callable[[int], float], *, step: int, seconds: float) -> int:
    """Return how many frames take about so many seconds, a multiple of ``step``.

    Args:
        run: publishes so many frames, and returns how many seconds that took.
        step: the least number of frames.
        seconds: how long a run shall take.

    """
    count, limit = step, 0.25 * seconds
    while (took := run(count)) < limit and count < 10_000_000:
        count = step * max(2 * count // step, min(16 * count, int(count * 1.2 * limit / took)) // step)
    return max(step, int(count * seconds / took) // step * step)


def built(source: str) -> str:
    """Return the program that a C file beside this one makes; built when it, or a header, changed."""
    path = HERE / source
    folder = sorted(path.parent.glob("*.[ch]"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in folder)).hexdigest()[:16]
    program = BUILT / f"{path.stem}-{digest}"
    if not program.exists():
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise RunFailed(f"{source} cannot be built: there is no C compiler. Install cc.")
        BUILT.mkdir(exist_ok=True)
        made = program.with_suffix(".new")
        subprocess.run([compiler, "-std=gnu11", "-O2", "-o", made, path], check=True)
        made.rename(program)
    return str(program)
