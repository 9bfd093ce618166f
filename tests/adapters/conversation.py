"""A real server, an agent in it or in a worker, one person who talks to it, and what stands on its disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from midstream.agents import Agent
from midstream.client import Client, Session
from midstream.protocol.calls import Page
from midstream.protocol.model import InteractionPart, Message, Part, ToolPart, Turn
from midstream.server import Config, Server
from midstream.worker import Worker
from tests.laws.line import Line


class Conversation:
    """A session on a server that runs."""

    def __init__(self, session: Session, line: Line) -> None:
        self.session = session
        self._line = line

    async def say(self, text: str) -> Turn:
        """Prompt, wait for the turn's end, and return the turn."""
        return await (await self.session.prompt(text)).finished()

    @property
    def messages(self) -> list[Message]:
        """What stands in the session."""
        return self.session.messages

    def parts(self) -> list[Part]:
        """The parts of the agent's messages, in their order."""
        return [part for message in self.messages if message.role == "agent" for part in message.parts]

    async def asked(self, how_many: int = 1) -> list[InteractionPart]:
        """Wait until so many questions are open, and return them."""
        await self.session.until(lambda: self.session.info.pending_interactions >= how_many)
        return [one.interaction for one in await self.session.interactions()]

    async def stored_tools(self) -> dict[str, str]:
        """The states of tool calls as they are on the server's disk, by tool and in their order."""
        page = await self._line.ask(Page, "messages", session_id="s", stored=True)
        return {
            part.tool_name: part.state
            for message in page.items
            for part in message.parts
            if isinstance(part, ToolPart)
        }


@asynccontextmanager
async def conversation(agent: Agent, folder: Path, *, remote: bool = False) -> AsyncGenerator[Conversation]:
    """Run a server with this agent until the block ends; ``remote`` runs the agent in a worker."""
    kind = Config(agent="remote") if remote else Config()
    server = Server(None if remote else agent, folder / "chat.db", config=kind, tick_ms=1)
    async with server.listen("127.0.0.1", 0) as running, Client(running.url) as client:
        line = await Line.open(running.url)
        worker = Worker(running.url, agent)
        work = asyncio.create_task(worker.run()) if remote else None
        try:
            yield Conversation(await client.session("s", create=True), line)
        finally:
            await asyncio.shield(line.close())
            if work is not None:
                await worker.close()
                await work
