"""The worker of SPEC.md's Appendix E, run as a stranger would run it, against a real server."""

from __future__ import annotations

import ast
import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGKILL

import pytest

from midstream.protocol.calls import StopResult
from midstream.protocol.model import Message, TextPart
from tests import specification
from tests.end_to_end.stage import OpenStage, Stage, last_text, until_ended
from tests.laws.reader import Reader

MOST_LINES = 75
"""Of the program, without blank ones: some thirty lines of protocol, an agent, and reconnecting."""
WORDS = [f"word{number}" for number in range(60)]
SAID = "".join(f"{word} " for word in WORDS)

StartWorker = Callable[..., Awaitable[Process]]


@pytest.fixture
async def start_worker(tmp_path: Path) -> AsyncGenerator[StartWorker]:
    """Give a function that runs the program, with nothing of this project on its path."""
    program = tmp_path / "worker.py"
    program.write_text(specification.block("python stranger-worker"), "utf-8")
    async with AsyncExitStack() as workers:

        async def start(url: str, name: str = "w") -> Process:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", str(program), url, name, stderr=PIPE
            )
            workers.push_async_callback(end, process)
            return process

        yield start


async def end(process: Process) -> None:
    """Kill a program, if it was not killed. It must not have ended by itself, or complained."""
    if process.returncode is None:
        process.kill()
    _, complaints = await process.communicate()
    assert (process.returncode, complaints.decode()) == (-SIGKILL, "")


def test_the_strangers_worker_is_short_and_uses_two_libraries_only() -> None:
    """Nothing more is needed to run an agent."""
    code = specification.block("python stranger-worker")
    assert len([line for line in code.splitlines() if line.strip()]) <= MOST_LINES
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    modules = {alias.name for node in imports for alias in node.names}
    assert modules - sys.stdlib_module_names == {"msgpack", "websockets"}


async def test_a_strangers_worker_answers(open_stage: OpenStage, start_worker: StartWorker) -> None:
    """Turns that wait for it, and those that begin while it is there; several at once."""
    stage = await open_stage(remote=True)
    await stage.create("other")
    waits = await stage.prompt(SAID)
    reader, other = await stage.reader(), await stage.reader("other")
    await start_worker(stage.url)
    begun = await stage.prompt("Two words", session_id="other")
    await until_ended(other, str(begun.turn_id))
    await until_ended(reader, str(waits.turn_id))
    assert (last_text(reader), last_text(other)) == (SAID, "Two words ")
    assert reader.replica.turns[str(waits.turn_id)].state == "completed"


async def half_way(stage: Stage) -> tuple[Reader, str]:
    """Return a reader that has seen half of an answer, and the turn's id."""
    reader = await stage.reader()
    turn_id = str((await stage.prompt(SAID)).turn_id)
    await reader.line.until(lambda: "word30 " in "".join(texts(reader.replica.messages())[1:]))
    return reader, turn_id


async def test_a_strangers_worker_goes_on_when_the_server_is_back(
    open_stage: OpenStage, start_worker: StartWorker
) -> None:
    """The server is stopped in mid-answer, and started again on the same port."""
    stage = await open_stage(remote=True)
    await start_worker(stage.url)
    _, turn_id = await half_way(stage)
    stage.port = stage.running.port
    await stage.restart()
    reader = await stage.reader()
    await until_ended(reader, turn_id)
    assert texts(reader.replica.messages()) == [SAID, SAID]
    assert reader.replica.turns[turn_id].state == "completed"


async def test_a_new_process_of_a_strangers_worker_goes_on(
    open_stage: OpenStage, start_worker: StartWorker
) -> None:
    """The first one is killed between two words; nothing is doubled, nothing is missing."""
    stage = await open_stage(remote=True)
    first = await start_worker(stage.url)
    reader, turn_id = await half_way(stage)
    await end(first)
    await start_worker(stage.url)
    await until_ended(reader, turn_id)
    assert texts(reader.replica.messages()) == [SAID, SAID]


async def test_a_strangers_worker_is_stopped_and_answers_the_next(
    open_stage: OpenStage, start_worker: StartWorker
) -> None:
    """What it had said stays; the rest is never said."""
    stage = await open_stage(remote=True)
    await start_worker(stage.url)
    reader, turn_id = await half_way(stage)
    stopped = await (await stage.user()).ask(StopResult, "stop", session_id="s", turn_id=turn_id)
    assert stopped.stopped
    begun = await stage.prompt("The next")
    await until_ended(reader, str(begun.turn_id))
    _, said, *others = texts(reader.replica.messages())
    assert others == ["The next", "The next "]
    assert SAID.startswith(said)
    assert said != SAID


def texts(messages: list[Message]) -> list[str]:
    """Return the text of each message."""
    return ["".join(part.text for part in one.parts if isinstance(part, TextPart)) for one in messages]
