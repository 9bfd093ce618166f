"""What the benches run on: the machine, its cores, and the versions of what was measured."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

MODULES: Final = Path(__file__).parent / "peers" / "node_modules"
DISTRIBUTIONS: Final = ("websockets", "msgspec", "apsw", "uvloop", "aiohttp")
PACKAGES: Final = ("ws", "socket.io", "bun")


class Cores(NamedTuple):
    """Which core does what; one core does both where there is only one."""

    server: int
    load: int


def cores() -> Cores:
    """Return the core of the server under test, and that of the load client."""
    mine = sorted(os.sched_getaffinity(0))
    return Cores(mine[0], mine[-1])


@contextmanager
def starting_on(core: int) -> Generator[None]:
    """Have the processes that are started meanwhile run on one core."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def allow_open_files(count: int) -> None:
    """Let this process, and those that it starts, have so many files open, if the system allows as many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@cache
def described() -> dict[str, str | int]:
    """Return what a result needs beside it to be compared with another one."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def in_words() -> str:
    """Return the same as a sentence for a table."""
    it = described()
    those = ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"{it['cores']} cores of {it['cpu']}, {it['system']}, {it['python']}, {those}"


@cache
def versions() -> dict[str, str]:
    """Return the versions of what may be measured, as far as it is installed."""
    found = {"node": _said_by("node", "--version").removeprefix("v")}
    for name in DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    for name in PACKAGES:
        with suppress(OSError):
            package = (MODULES / name / "package.json").read_bytes()
            found[name] = msgspec.json.decode(package, type=_Package).version
    return {name: it for name, it in found.items() if it}


class _Package(msgspec.Struct):
    version: str


def _said_by(*command: str) -> str:
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip()


def _cpu() -> str:
    try:
        lines: Iterable[str] = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = ()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
