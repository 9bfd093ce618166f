"""An agent that writes without end is slowed to what is published, and ended at the limits; others go on."""

from __future__ import annotations

from pathlib import Path

from midstream.protocol.calls import Page, PromptResult, SessionResult
from midstream.protocol.limits import Limits
from midstream.protocol.model import TurnFailure
from midstream.server import Turn
from tests.end_to_end.process import ServerProcess
from tests.end_to_end.stage import Stage, prompt_params
from tests.laws.line import Line
from tests.laws.reader import Reader

MEBIBYTE = 1024 * 1024
LIMITS = Limits(part_bytes=64 * 1024, message_bytes=256 * 1024, parts=20)


async def leaks_text(turn: Turn) -> None:
    """Say one thing for ever."""
    async with turn.step() as step, step.text() as text:
        while True:
            await text.append("and so on " * 100)


async def leaks_parts(turn: Turn) -> None:
    """Begin one thing after another for ever."""
    while True:
        async with turn.step() as step, step.text() as text:
            await text.append("and so on")


async def test_an_agent_that_writes_without_end_is_ended_at_the_limit_that_it_meets(tmp_path: Path) -> None:
    """Of a part, and of a message; the turn says which, what was said stays, and the session goes on."""
    for number, agent in enumerate((leaks_text, leaks_parts)):
        stage = Stage(tmp_path / f"{number}.db", limits=LIMITS)
        stage.agent = agent
        await stage.start()
        await stage.create("s")
        reader = await stage.reader()
        prompt = await stage.prompt()
        await reader.line.until(
            lambda reader=reader, prompt=prompt: (  # type: ignore[misc]  # bound
                (turn := reader.replica.turns.get(prompt.turn_id or "")) is not None
                and turn.state == "failed"
            )
        )
        turn = reader.replica.turns[prompt.turn_id or ""]
        assert isinstance(turn.error, TurnFailure)
        assert "limit" in f"{turn.error.code} {turn.error.message}".lower()
        assert len(reader.replica.messages()[-1].parts) <= LIMITS.parts + 1
        assert (await stage.prompt("again")).state == "started"
        await stage.close()


async def test_a_leaking_agent_takes_no_more_memory_than_its_limits_and_delays_nobody(tmp_path: Path) -> None:
    """A process of its own, with the usual limits; another session is answered meanwhile."""
    server = await ServerProcess.start(tmp_path / "chat.db", "flood")
    line = await Line.open(server.url)
    for name in ("leaks", "s"):
        await line.ask(SessionResult, "sessions.create", session_id=name)
    before, _ = server.memory()
    reader = Reader(await Line.open(server.url), "leaks", limit=None)
    await reader.join()
    params = prompt_params(f"100000 {'x' * 1000}", "leaks", "m")  # a hundred megabytes, in four parts
    turn_id = (await line.ask(PromptResult, "prompt", **params)).turn_id or ""
    answered = 0
    while reader.replica.turns[turn_id].state == "running" if turn_id in reader.replica.turns else True:
        await line.ask(Page, "messages", session_id="s")
        answered += 1
    assert reader.replica.turns[turn_id].state == "failed"
    assert answered > 10
    _, most = server.memory()
    assert most - before < 128 * MEBIBYTE
    for one in (line, reader.line):
        await one.close()
    await server.kill()
