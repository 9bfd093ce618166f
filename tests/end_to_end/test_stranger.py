"""The client of SPEC.md's Appendix D, run as a stranger would run it, sees what `messages` returns."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from midstream.protocol.calls import Page
from midstream.protocol.model import TextPart
from midstream.server import Turn
from tests import specification
from tests.end_to_end.stage import OpenStage, Stage

MOST_LINES = 45
"""Of the program, without blank ones: some thirty lines of protocol, and what any program has."""


THIRTY_LINES = Path(__file__).parents[2] / "docs" / "stranger" / "thirty_lines.py"


async def answer(turn: Turn) -> None:
    """Do all that a stranger meets: deltas, a streamed call, a long output, a retry, a hint, an action."""
    async with turn.step() as step:
        async with step.reasoning() as thought:
            for word in ("Let ", "me ", "think. "):
                await thought.append(word)
                await asyncio.sleep(0.002)
        async with step.text() as text:
            for word in ("Hello, ", "wörld ", "\U0001f600"):
                await text.append(word)
                await asyncio.sleep(0.002)
        call = await step.tool("look", title="Look")
        for piece in ('{"for":', ' "it"}'):
            await call.append_input(piece)
            await asyncio.sleep(0.002)
        await call.ready({"for": "it"})
        await call.run()
        await call.progress({"found": 1})
        await call.complete({"found": ["x" * 50_000, "y" * 50_000]})
    await (await turn.action("tidy", "Tidy up")).complete(title="Tidied up")
    await turn.internal(TextPart(text="A hint that only the agent sees."))
    async with turn.step() as step, step.text() as text:
        await text.append("A first try")
        await step.abandon()
    async with turn.step() as step, step.text() as text:
        await text.append("The end.")


async def stranger(program: Path, stage: Stage, text: str) -> list[dict[str, Any]]:
    """Run the program with nothing of this project on its path, and return the messages that it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(program), stage.url, "s", text, stdout=PIPE, stderr=PIPE
    )
    out, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (0, "")
    return [json.loads(line) for line in out.decode().splitlines()]


@pytest.fixture(params=["of SPEC.md", "of thirty lines"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The block of SPEC.md as a file, or the shorter one that follows the happy path alone."""
    if request.param == "of thirty lines":
        return THIRTY_LINES
    path = tmp_path / "stranger.py"
    path.write_text(specification.block("python stranger-client"), "utf-8")
    return path


def test_the_strangers_client_is_short(program: Path) -> None:
    """Nothing more is needed to follow a conversation."""
    lines = [line for line in program.read_text("utf-8").splitlines() if line.strip()]
    assert len(lines) <= (30 if program == THIRTY_LINES else MOST_LINES)


async def test_a_stranger_sees_what_messages_returns(open_stage: OpenStage, program: Path) -> None:
    """In a new session, in one with a past, and in one that has just been loaded again."""
    stage = await open_stage()
    stage.agent = answer
    await stage.restart()
    printed: list[dict[str, Any]] = []
    for text in ("Hello", "Hello again", "And after a restart"):
        printed = await stranger(program, stage, text)
        page = await (await stage.user()).ask(Page, "messages", session_id="s", limit=200)
        assert not page.has_more
        assert printed == cast("list[Any]", msgspec.to_builtins(page.items))
        assert {message["visibility"] for message in printed} == {"visible"}
        if text == "Hello again":
            await stage.restart()
    assert [message["role"] for message in printed] == ["user", "agent", "agent"] * 3
