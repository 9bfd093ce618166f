"""A server process under the kit: started, killed and started anew, sound or broken on purpose."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from midstream.conformance.servers.scene import Target

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 30.0


def spawn(pid_file: Path, database: Path, port: int, mutant: str) -> None:
    """Start a server, and write its process id down."""
    command = [sys.executable, "-m", "tests.conformance.mutants.serve", str(database), str(port), mutant]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdin=subprocess.DEVNULL)
    process.returncode = 0  # by its id it is killed, maybe by another process: it is not Popen's to mind
    pid_file.write_text(str(process.pid), "ascii")


def kill(pid_file: Path) -> None:
    """Kill the server that was started last, as hard as can be, and wait until it has gone."""
    pid = int(pid_file.read_text("ascii"))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # after a restart it is no child of ours
        os.waitpid(pid, 0)


async def until_served(port: int) -> None:
    """Wait until something listens."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)  # another process cannot tell us
                continue
            writer.close()
            return


@asynccontextmanager
async def served(folder: Path, mutant: str = "none") -> AsyncGenerator[Target]:
    """Have a server whose turns are left to workers, with short deadlines, as a target of the kit."""
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - once, and nothing else runs yet
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    pid_file, database = folder / "pid", folder / "chat.db"
    restart = [
        sys.executable,
        "-m",
        "tests.conformance.restarting",
        str(pid_file),
        str(database),
        str(port),
        mutant,
    ]
    spawn(pid_file, database, port, mutant)
    try:
        await until_served(port)
        yield Target(
            url=f"ws://127.0.0.1:{port}", restart=shlex.join(restart), drain=shlex.join(restart[:4]), seed=1
        )
    finally:
        kill(pid_file)
