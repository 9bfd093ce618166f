"""Sessions on a database with threads, a disk that is waited for, and the machine's time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from midstream.agents import Turn
from midstream.protocol.model import ApprovalResponse
from midstream.server.clock import SystemClock
from midstream.server.ids import RandomIds
from midstream.server.sessions.agents import InProcessAgents
from midstream.server.sessions.services import Services, Settings
from midstream.server.storage.database import Database
from midstream.server.storage.schema import migrate
from tests.server.sessions.house import House, Puppet, parts_of

SESSIONS = [f"s{number}" for number in range(8)]


async def agent(turn: Turn) -> None:
    """Say something, ask, and run a tool as far as it may."""
    async with turn.step() as step, step.text() as text:
        for word in ("You ", "said: ", turn.prompt_text):
            await text.append(word)
            await asyncio.sleep(0)
    async with turn.step() as step:
        call = await step.tool("delete", input={"path": "a"})
    answer = await turn.ask_approval(call, title="Delete?")
    if answer.approved:
        await call.run()
        await call.complete("deleted")
    else:
        await call.fail("denied")


@asynccontextmanager
async def house(path: Path) -> AsyncGenerator[House]:
    """A house as a server has it."""
    database = await Database.open(path, migrate=migrate)
    agents = InProcessAgents(agent)
    services = Services(
        database=database, clock=SystemClock(), ids=RandomIds(), agents=agents, settings=Settings()
    )
    opened = House(database, services, agents, Puppet())
    await opened.registry.start()
    try:
        yield opened
    finally:
        await opened.close()


async def test_many_sessions_share_one_database_and_each_keeps_its_own_order(tmp_path: Path) -> None:
    """Live, after a reload, and after a restart they say the same."""
    said: dict[str, list[dict[str, object]]] = {}
    async with house(tmp_path / "a.db") as opened:

        async def play(name: str) -> None:
            await opened.create(name)
            recorder = await opened.subscribe(session_id=name)
            await opened.prompt(f"from {name}", session_id=name)
            await recorder.until(
                lambda: recorder.replica.session and recorder.replica.session.pending_interactions
            )
            [asked] = await opened.asked(name)
            decision = ApprovalResponse(decision="approved" if name in SESSIONS[::2] else "denied")
            await opened.respond(asked.interaction.interaction_id, decision, session_id=name)
            await recorder.until(lambda: recorder.replica.running_turn is None)
            _, answer = await opened.equal(recorder, session_id=name)
            said[name] = parts_of(answer)

        await asyncio.gather(*(play(name) for name in SESSIONS))
    for name, parts in said.items():
        assert parts[0]["text"] == f"You said: text of from {name}"
        assert parts[1]["state"] == ("completed" if name in SESSIONS[::2] else "failed")
    async with house(tmp_path / "a.db") as opened:
        for name in SESSIONS:
            assert parts_of((await opened.messages(name))[1]) == said[name]
