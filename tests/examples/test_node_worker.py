"""The worker in forty lines of Node runs against a real server, and needs nothing but what its files name."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from midstream.client import Client, Options
from midstream.protocol.model import InteractionPart, ToolPart
from tests.end_to_end.process import ServerProcess
from tests.end_to_end.stage import QUICK
from tests.proxy import proxy_to
from tests.worker.stage import OpenWorkerStage, WorkerStage, parts_of, text_of

FOLDER = Path(__file__).parents[2] / "examples"
FILES = ("remote_worker.mjs", "package.json", "package-lock.json", ".npmrc")
NODE, NPM = shutil.which("node"), shutil.which("npm")
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH")
MOST_LINES = 43

pytestmark = pytest.mark.skipif(not (NODE and NPM), reason="needs node and npm")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install what the example needs, by its own files, in a folder outside of the source tree."""
    folder = tmp_path_factory.mktemp("node")
    for name in FILES:
        shutil.copy(FOLDER / name, folder)
    command = [NPM or "npm", "ci", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and any(code in done.stderr for code in OFFLINE):
        pytest.skip("npm reaches no registry")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
async def open_stage(tmp_path: Path) -> AsyncGenerator[OpenWorkerStage]:
    """Give a function that opens a stage: its server runs, and has the session ``s``."""
    async with AsyncExitStack() as stages:

        async def open_one(**settings: float) -> WorkerStage:
            stage = WorkerStage(tmp_path / "chat.db", **settings)
            await stage.start()
            stages.push_async_callback(stage.close)
            await stage.create("s")
            return stage

        yield open_one


@pytest.fixture
async def processes() -> AsyncGenerator[list[Process]]:
    """Give a list of processes, which are killed at the end."""
    started: list[Process] = []
    yield started
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def start(folder: Path, url: str, processes: list[Process]) -> Process:
    """Start the worker."""
    process = await asyncio.create_subprocess_exec(
        "node", "remote_worker.mjs", url, cwd=folder, stdout=PIPE, stderr=STDOUT
    )
    processes.append(process)
    return process


async def test_it_streams_asks_acts_and_heeds_a_stop(
    installed: Path, open_stage: OpenWorkerStage, processes: list[Process]
) -> None:
    """An approved tool runs, a denied one does not, and a stop ends the words."""
    stage = await open_stage()
    await start(installed, stage.url, processes)
    session = await stage.session()
    for said, approves in (("hello", True), ("no", False)):
        turn = await session.prompt(said)
        await session.until(lambda: session.info.pending_interactions)
        [asked] = await session.interactions()
        assert asked.interaction.request.title == "May I shout?"
        decide = session.approve if approves else session.deny
        await decide(asked.interaction.interaction_id)
        assert (await turn.finished()).state == "completed"
    assert [(part.state, part.output or None) for part in parts_of(session.messages, ToolPart)] == [
        ("completed", "HELLO"),
        ("failed", None),
    ]
    assert text_of(session.messages).startswith("You said: hello Shall I shout it?")
    turn = await session.prompt("word " * 2_000)
    await session.until(lambda: text_of(session.messages).count("word") > 3)
    await session.stop()
    assert (await turn.finished()).state == "stopped"
    assert text_of(session.messages).count("word") < 2_000
    turn = await session.prompt("still here?")
    await session.until(lambda: session.info.pending_interactions)
    await session.stop()
    assert (await turn.finished()).state == "stopped"
    assert len(parts_of(session.messages, InteractionPart)) == 3
    await stage.proves(await stage.reader())


async def test_it_comes_back_to_a_server_that_is_started_again(
    installed: Path, tmp_path: Path, processes: list[Process]
) -> None:
    """Its running turn is lost, as it keeps nothing; the next one runs."""
    database = tmp_path / "chat.db"
    server = await ServerProcess.start(database, "remote", lease_seconds=0.1)
    async with proxy_to(server.url) as proxy, Client(proxy.url, options=Options(policy=QUICK)) as client:
        await start(installed, proxy.url, processes)
        session = await client.session("s", create=True)
        turn = await session.prompt("word " * 2_000)
        await session.until(lambda: text_of(session.messages).count("word") > 3)
        assert await server.stop() == 0
        server = await ServerProcess.start(database, "remote", lease_seconds=0.1)
        proxy.lead_to(server.url)
        assert (await turn.finished()).state == "failed"
        assert text_of(session.messages).count("word") < 2_000
        await session.prompt("hello")
        await session.until(lambda: session.info.pending_interactions)
        await server.kill()


def test_it_is_as_short_as_it_says() -> None:
    """Some forty lines beside the agent."""
    worker = (FOLDER / "remote_worker.mjs").read_text().partition("(function connect()")[2]
    lines = [line for line in worker.splitlines() if line.strip() and not re.match(r"\s*//", line)]
    assert len(lines) <= MOST_LINES


def test_its_lock_file_names_no_registry() -> None:
    """It is the same wherever packages come from."""
    assert "http" not in (FOLDER / "package-lock.json").read_text()
