"""The sessions of a server in this process, called as a connection calls them, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from midstream.agents import Agent
from midstream.protocol.calls import CreateParams, PromptParams, PromptResult, SessionResult
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import MidstreamError
from midstream.protocol.model import TextPart
from midstream.server.clock import SystemClock
from midstream.server.ids import RandomIds
from midstream.server.sessions.agents import InProcessAgents
from midstream.server.sessions.commands import Answer, Caller, Command
from midstream.server.sessions.registry import Registry
from midstream.server.sessions.services import Services, Settings
from midstream.server.storage.database import Database
from midstream.server.storage.schema import migrate

R = TypeVar("R", bound=msgspec.Struct)
CALLER = Caller(subject="bench", connection_id="bench", scopes=frozenset({"read", "write", "internal"}))


class Inside:
    """A registry on a real database, and who calls it."""

    def __init__(self, services: Services, registry: Registry) -> None:
        """Call the registry's sessions."""
        self.services = services
        self.database = services.database
        self.registry = registry

    async def call(self, method: str, params: msgspec.Struct, kind: type[R]) -> R:
        """Make a call, and return its answer; raise what it was refused with."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        command = Command(
            method=method,
            params=params,
            as_sent=msgspec.to_builtins(params),
            caller=CALLER,
            reply=future.set_result,
        )
        if method == "sessions.create":
            self.registry.post_global(command)
        else:
            self.registry.post(str(getattr(params, "session_id", "")), command)
        answer = await future
        if isinstance(answer, MidstreamError):
            raise answer
        return msgspec.msgpack.decode(MSGPACK.encode(answer), type=kind)

    async def begin(self, session_id: str) -> None:
        """Create a session, and let its agent begin a turn."""
        await self.call("sessions.create", CreateParams(session_id=session_id), SessionResult)
        params = PromptParams(
            session_id=session_id, message_id=f"prompt of {session_id}", parts=[TextPart(text="Go on.")]
        )
        await self.call("prompt", params, PromptResult)


@asynccontextmanager
async def inside(
    path: Path, agent: Agent | None = None, settings: Settings | None = None
) -> AsyncGenerator[Inside]:
    """Open a database as a server does, and serve its sessions until the context ends."""
    database = await Database.open(path, migrate=migrate)
    agents = InProcessAgents(agent)
    services = Services(
        database=database,
        clock=SystemClock(),
        ids=RandomIds(),
        agents=agents,
        settings=settings or Settings(),
    )
    registry = Registry(services, on_ownership_lost=lambda: None)
    await registry.start()
    try:
        yield Inside(services, registry)
    finally:
        await registry.stop()
        await agents.close()
        await services.close()
        await database.close()
