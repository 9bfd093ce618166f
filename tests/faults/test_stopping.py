"""SIGTERM: who is connected, what runs, and how long it takes, with whoever does not play along."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from midstream.cli.stopping import OVERDUE
from midstream.protocol.calls import Page, PromptResult, SessionResult
from midstream.protocol.frames import GoAway
from midstream.protocol.model import TextPart, TurnFailure
from tests.cli.processes import WAITING, free_port, serving, started
from tests.end_to_end.restart import run
from tests.end_to_end.stage import prompt_params, until_ended
from tests.laws.line import Line
from tests.laws.reader import Reader

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
BLOCKING = """
import time

async def agent(turn):
    async with turn.step() as step, step.text() as text:
        await text.append("one two three")
    time.sleep(1000)
"""
"""An agent that keeps the event loop to itself: nothing of the server runs any more."""


async def begun(url: str, name: str = "s") -> Reader:
    """Start a turn, and read until its first step is there."""
    line = await Line.open(url)
    await line.ask(SessionResult, "sessions.create", session_id=name)
    reader = Reader(line, name)
    await reader.join()
    await line.ask(PromptResult, "prompt", **prompt_params("go", name, f"of {name}"))
    await line.until(lambda: said(reader) == "one two three")
    return reader


def said(reader: Reader) -> str:
    """Return the text of the newest message."""
    parts = reader.replica.messages()[-1].parts if reader.replica.messages() else []
    return "".join(part.text for part in parts if isinstance(part, TextPart))


async def test_readers_are_told_to_go_see_the_turn_end_as_interrupted_and_are_let_go(tmp_path: Path) -> None:
    """In this order: readiness, goaway, the turn's end, code 4000."""
    (tmp_path / "waiting.py").write_text(WAITING)
    arguments = ("--agent", "waiting:agent", "--drain-seconds", "1", "--no-page")
    async with serving(tmp_path, *arguments) as (server, url):
        reader, other = await begun(url), await begun(url, "t")
        turn = reader.replica.running_turn
        assert turn is not None
        server.signal(signal.SIGTERM)
        for one in (reader, other):
            await one.line.until(lambda one=one: one.line.of(GoAway))  # type: ignore[misc]  # bound
        assert await answer_of(url, "/readyz") == 503
        await until_ended(reader, turn.turn_id)
        ended = reader.replica.turns[turn.turn_id]
        assert isinstance(ended.error, TurnFailure)
        assert ended.error.code == "runtime_interrupted"
        await reader.line.until(lambda: not reader.line.is_open)
        assert reader.line.code == 4000
        delays = [one.line.of(GoAway)[0].reconnect_after_ms for one in (reader, other)]
        assert len(set(delays)) == 2
        stopped = await server.ended()
    assert stopped.code == 0, stopped
    for one in (reader, other):
        await one.line.close()


async def answer_of(url: str, path: str) -> int:
    """Return the status with which a server answers a plain request."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    reading, writing = await asyncio.open_connection(host, int(port))
    writing.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    status = await reading.readline()
    writing.close()
    return int(status.split()[1])


@pytest.mark.parametrize("agent", [DEAF, BLOCKING], ids=["deaf", "blocking"])
async def test_a_server_ends_in_time_with_peers_that_never_read_and_an_agent_that_never_ends(
    tmp_path: Path, agent: str
) -> None:
    """Within the time for turns and fifteen seconds; with an agent that blocks everything as by kill -9."""
    (tmp_path / "agent.py").write_text(agent)
    arguments = ("--agent", "agent:agent", "--drain-seconds", "1", "--no-page")
    async with serving(tmp_path, *arguments) as (server, url):
        readers = [await begun(url)]
        for _ in range(3):
            if agent is DEAF:
                readers.append(Reader(await Line.open(url), "s"))
                await readers[-1].join()
                readers[-1].line.stop_reading()
        began = asyncio.get_running_loop().time()
        server.signal(signal.SIGTERM)
        async with asyncio.timeout(25):  # or the test fails: that is the promise
            stopped = await server.ended()
        assert stopped.code == (0 if agent is DEAF else OVERDUE), stopped
        assert asyncio.get_running_loop().time() > began
    async with serving(tmp_path, "--no-page") as (_, url):
        line = await Line.open(url)
        page = await line.ask(Page, "messages", session_id="s")
        parts = [part for item in page.items for part in item.parts]
        assert [part.text for part in parts if isinstance(part, TextPart)] == ["go", "one two three"]
        await line.close()
    for reader in readers:
        await reader.line.close()


async def test_a_remote_turn_goes_on_with_its_worker_after_the_restart(tmp_path: Path) -> None:
    """It is neither ended nor waited for; the worker takes it up again and ends it."""
    (tmp_path / "slow.py").write_text(SLOW)
    port = str(free_port())
    url = f"ws://127.0.0.1:{port}"
    arguments = ("--agent", "remote", "--no-page", "--port", port)
    async with serving(tmp_path, *arguments) as (server, _):
        worker = started("worker", url, "slow:agent", "--log-level", "error", folder=tmp_path)
        async with worker:
            reader = await begun(url)
            server.signal(signal.SIGTERM)
            async with asyncio.timeout(10):  # far less than the time that turns of this process get
                assert (await server.ended()).code == 0
            (tmp_path / "go").touch()
            async with serving(tmp_path, *arguments):
                await reader.rejoin(await Line.open(url))
                turn_id = next(iter(reader.replica.turns))
                await until_ended(reader, turn_id)
                assert reader.replica.turns[turn_id].state == "completed"
                assert said(reader) == "one two three four"
                await reader.line.close()


SLOW = """
import asyncio
from pathlib import Path

async def agent(turn):
    async with turn.step() as step, step.text() as text:
        await text.append("one two three")
        while not Path("go").exists():
            await asyncio.sleep(0.05)
        await text.append(" four")
"""


@pytest.mark.parametrize("kill", [False, True], ids=["SIGTERM", "kill -9"])
async def test_a_crowd_is_back_after_a_restart_and_nobody_lost_a_message(
    tmp_path: Path, *, kill: bool
) -> None:
    """Each by the rules of SPEC 4.7.

    More of it: ``python -m tests.end_to_end.restart``.
    """
    [report] = await run(tmp_path, 100, kill=kill, times=1, seed=1)
    assert report.acknowledged > 0
    assert report.attempts >= 100
