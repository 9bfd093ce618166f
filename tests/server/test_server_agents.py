"""What a server does with an agent that is not as it should be, seen by a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from midstream.client import Client
from midstream.protocol.model import ErrorPart
from midstream.server import Agent, Server, Turn

if TYPE_CHECKING:
    from pathlib import Path


async def errors_of(agent: Agent, database: Path) -> list[tuple[str, str, str]]:
    """Run one turn with the agent, and return scope, code and text of each error that is kept."""
    server = Server(agent=agent, database=database, log_level="error")
    async with server.listen("127.0.0.1", 0) as running, Client(running.url) as client:
        session = await client.session("s", create=True)
        await (await session.prompt("Hi")).finished()
        parts = [part for message in session.messages for part in message.parts]
        return [(part.scope, part.code, part.message) for part in parts if isinstance(part, ErrorPart)]


async def test_an_agent_that_is_not_async_fails_its_turn_and_is_told_how_it_should_be(tmp_path: Path) -> None:
    """The type checker would have said so; the error says it too."""

    def agent(turn: Turn) -> None:
        del turn

    found = await errors_of(cast("Agent", agent), tmp_path / "chat.db")
    assert found == [("turn", "agent_failed", "The agent is not async: `async def agent(turn)`.")]


async def test_an_agent_can_say_that_an_error_is_of_the_session(tmp_path: Path) -> None:
    """The scope is kept with the error, and the turn goes on."""

    async def agent(turn: Turn) -> None:
        await turn.error("quota", "This conversation has used its quota.", scope="session")

    found = await errors_of(agent, tmp_path / "chat.db")
    assert found == [("session", "quota", "This conversation has used its quota.")]


async def test_an_agent_that_raises_what_closes_a_coroutine_fails_its_turn(tmp_path: Path) -> None:
    """A generator that it throws about may raise it; the turn must not run for ever."""

    async def agent(turn: Turn) -> None:
        del turn
        raise GeneratorExit

    found = await errors_of(agent, tmp_path / "chat.db")
    assert [code for _, code, _ in found] == ["agent_failed"]
