"""Every example of the documents runs, and does what the text beside it says."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from midstream.cli.exporting import export
from midstream.cli.importing import import_file
from midstream.client import Client, Session
from midstream.protocol.model import ActionPart, ErrorPart, Message, TextPart, ToolPart
from midstream.server import Agent, Server
from midstream.server.config import Config
from midstream.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

P = TypeVar("P")
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def agent_of(name: str) -> Agent:
    """Return the function ``agent`` of an example."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    agent: Agent = module.agent
    return agent


def parts_of(messages: list[Message], kind: type[P]) -> list[P]:
    """Return all parts of one type, in order."""
    return [part for message in messages for part in message.parts if isinstance(part, kind)]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def port() -> int:
    """Give a port that nobody listens on."""
    return free_port()


@pytest.fixture
async def readme_process(tmp_path: Path, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the README's example as it is written, but for the port; give its process, which listens."""
    source = (EXAMPLES / "approve.py").read_text().replace("8787", str(port))
    (tmp_path / "approve.py").write_text(source)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "approve.py", cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    while b"listening" not in await process.stderr.readline():
        assert process.returncode is None
    yield process
    if process.returncode is None:
        process.terminate()
    await process.communicate()


@pytest.fixture
def readme_server(readme_process: asyncio.subprocess.Process, port: int) -> str:
    """Give the URL of the README's example, which runs."""
    assert readme_process.returncode is None
    return f"ws://127.0.0.1:{port}"


@pytest.fixture
async def session(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Session]:
    """Give a session of a server that runs the example named by the test's parameter."""
    server = Server(agent=agent_of(request.param), database=tmp_path / "chat.db", log_level="error")
    async with server.listen("127.0.0.1", 0) as running, Client(running.url) as client:
        yield await client.session("demo", create=True)


def test_the_readme_shows_the_example_that_is_tested() -> None:
    """The code in the README is the file, to the letter."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks == [(EXAMPLES / "approve.py").read_text()]


async def test_the_readmes_example_answers_asks_and_obeys(readme_server: str) -> None:
    """The first example streams its text, asks for approval, and deletes only when it was given."""
    async with Client(readme_server) as client:
        session = await client.session("demo", create=True)
        turn = await session.prompt("Hi")
        await session.until(lambda: session.info.pending_interactions)
        (asked,) = await session.interactions()
        await session.deny(asked.interaction.interaction_id)
        assert (await turn.finished()).state == "completed"
        assert [part.text for part in parts_of(session.messages, TextPart)] == ["Hi", "Hello! You said: Hi"]
        assert [part.error for part in parts_of(session.messages, ToolPart)] == ["denied"]


async def test_the_readmes_example_ends_quietly_at_ctrl_c(readme_process: asyncio.subprocess.Process) -> None:
    """Whoever stops it sees what the server says, and no traceback."""
    readme_process.send_signal(signal.SIGINT)
    _, said = await readme_process.communicate()
    assert b"stopped" in said
    assert b"Traceback" not in said
    assert readme_process.returncode == 0


async def test_the_client_example_prints_the_answer_and_approves(readme_server: str) -> None:
    """What follow.py prints is the answer as it streamed, and how the turn ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLES / "follow.py", readme_server, "demo", "Hi", stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    assert printed.decode() == "Hello! You said: Hi\ncompleted\n"


@pytest.mark.parametrize("session", ["steering"], indirect=True)
async def test_the_steering_example_hears_what_is_typed_while_it_works(session: Session) -> None:
    """An answered question is used, and input that comes meanwhile is absorbed and answered below."""
    turn = await session.prompt("Paint it")
    await session.until(lambda: session.info.pending_interactions)
    (asked,) = await session.interactions()
    added = await session.prompt("And hurry")
    await added.accepted()
    await session.answer(asked.interaction.interaction_id, {"colour": "blue"})
    assert (await turn.finished()).state == "completed"
    assert [message.role for message in session.messages] == ["user", "agent", "user", "agent"]
    texts = [part.text for part in parts_of(session.messages, TextPart)]
    assert texts[:3] == ["Paint it", "Coat 1. ", "And hurry"]
    (painting,) = parts_of(session.messages, ActionPart)
    assert (painting.title, painting.state) == ("Painted", "completed")


@pytest.mark.parametrize("session", ["retry"], indirect=True)
async def test_the_retry_example_leaves_nothing_of_the_failed_attempt(session: Session) -> None:
    """A step that was abandoned is gone; the one that succeeded is whole."""
    turn = await session.prompt("What is the answer?")
    assert (await turn.finished()).state == "completed"
    assert [part.text for part in parts_of(session.messages[1:], TextPart)] == ["The answer is 42."]
    assert parts_of(session.messages, ErrorPart) == []


@pytest.mark.parametrize("session", ["compact"], indirect=True)
async def test_the_compact_example_knows_the_summary_and_what_was_said_since(session: Session) -> None:
    """What it summarized stays for people to read, segment by segment."""
    for number in range(6):
        await (await session.prompt(f"prompt {number}")).finished()
    answers = [part.text for part in parts_of(session.messages[1::2], TextPart)]
    assert answers[2] == "I know nothing, and 5 message(s)."
    assert answers[3] == f"I know 6 texts, the last: {answers[2]}, and 1 message(s)."
    assert answers[5].endswith("and 5 message(s).")
    assert session.info.summarized_through == 6
    pages = [await session.segment()]
    while pages[-1].has_more:
        pages.append(await session.segment(pages[-1].next_before_sequence))
    assert [(page.source, len(page.items)) for page in pages] == [("active", 6), ("segment", 6)]
    assert [message for page in reversed(pages) for message in page.items] == session.messages


async def test_the_resuming_example_goes_on_where_its_process_ended(tmp_path: Path) -> None:
    """In mid-text, and while it waits for a person: each word is there once, and it asks once."""
    agent = agent_of("resuming")
    server = Server(database=tmp_path / "chat.db", config=Config(agent="remote"))
    async with server.listen("127.0.0.1", 0) as running, Client(running.url) as client:
        session = await client.session("s", create=True)
        turn = await session.prompt("Go on")
        for until in (
            lambda: len(session.messages) > 1 and len(session.messages[1].parts[0].text) > 5,  # type: ignore[union-attr]  # a text
            lambda: session.info.pending_interactions,
            None,
        ):
            worker = Worker(running.url, agent, name="w", resumes=True)
            working = asyncio.create_task(worker.run())
            if until is not None:
                await session.until(until)
            else:
                (asked,) = await session.interactions()
                await session.approve(asked.interaction.interaction_id)
                assert (await turn.finished()).state == "completed"
            await worker.close()
            await working
        assert [part.text for part in parts_of(session.messages[1:], TextPart)] == [
            "One turn, whoever writes it, and each word once. "
        ]
        (call,) = parts_of(session.messages, ToolPart)
        assert call.output == "Published: One turn, whoever writes it, and each word once."


def test_the_example_of_the_older_form_becomes_what_the_table_says(tmp_path: Path) -> None:
    """The reference shows the file to the letter; a summary is no message, and a failure is the turn's."""
    example = EXAMPLES / "four-type.jsonl"
    assert example.read_text() in (ROOT / "docs" / "reference.md").read_text()
    session = import_file(tmp_path / "chat.db", str(example), "lamp", is_four_type=True)
    assert (session.message_count, session.summarized_through) == (6, 3)
    lines = [json.loads(line) for line in export(tmp_path / "chat.db", "lamp")]
    turns = {line["turn"]["turn_id"]: line["turn"] for line in lines if "turn" in line}
    assert {turn_id: turn["state"] for turn_id, turn in turns.items()} == {"t1": "completed", "t2": "failed"}
    assert turns["t2"]["error"] == {"code": "provider_down", "message": "The model did not answer."}
    messages = [line["message"] for line in lines if "message" in line]
    assert [message["message_id"] for message in messages] == ["u1", "a1", "x1", "u2", "a2", "e1"]
    assert [part["type"] for message in messages for part in message["parts"]] == [
        "text",
        "text",
        "action",
        "text",
        "text",
        "error",
    ]
