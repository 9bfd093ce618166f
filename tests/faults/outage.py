"""A real server whose disk fails and works again: what it says and does (docs/operations/faults.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from midstream.protocol.calls import ListResult, Page, PromptResult, SessionResult
from midstream.protocol.errors import Unavailable
from tests.end_to_end.process import ServerProcess
from tests.end_to_end.stage import prompt_params
from tests.laws.line import Line
from tests.laws.reader import Reader

SESSION = "s"
MOST_TRIES = 400
"""Prompts after which a disk that should fail has not: a log may have a little room left."""


class Outage:
    """One server process, its disk, and what was acknowledged before, during and after."""

    def __init__(self, server: ServerProcess, line: Line) -> None:
        """Use :func:`outage`."""
        self.server = server
        self.line = line
        self.accepted: list[str] = []
        self._prompts = 0

    async def prompt(self) -> None:
        """Send an input. Raises Unavailable."""
        self._prompts += 1
        message_id = f"m{self._prompts}"
        params = prompt_params("8 " + "word" * 50, SESSION, message_id, "interrupt")
        await self.line.ask(PromptResult, "prompt", **params)
        self.accepted.append(message_id)

    async def until_refused(self) -> None:
        """Write until that is refused."""
        for _ in range(MOST_TRIES):
            try:
                await self.prompt()
            except Unavailable:
                return
        raise AssertionError("it took everything")

    async def reads(self) -> list[str]:
        """Read, as is to be possible all the time; return the ids of the user's messages."""
        assert len((await self.line.ask(ListResult, "sessions.list")).items) == 1
        reader = Reader(await Line.open(self.server.url), SESSION)
        await reader.join()
        await reader.read_all(200)
        await reader.leave()
        page = await self.line.ask(Page, "messages", session_id=SESSION)
        assert page.items
        return [one.message_id for one in reader.replica.messages() if one.role == "user"]

    async def fails(self, tries: int = 10) -> None:
        """Show what a server does whose disk takes no write."""
        await self.until_refused()
        for _ in range(tries):
            with suppress(Unavailable):
                await self.prompt()
            await self.reads()
        assert set(self.accepted) <= set(await self.reads())
        assert self.events() == Counter(storage_fails=1), self.server.logged

    async def works_again(self) -> None:
        """Show that it goes on by itself, and that nothing acknowledged is lost."""
        for _ in range(MOST_TRIES):
            with suppress(Unavailable):
                await self.prompt()
                break
        await self.prompt()
        found = Counter(await self.reads())
        assert set(self.accepted) <= set(found)
        assert max(found.values()) == 1
        assert self.events() == Counter(storage_fails=1, storage_works_again=1), self.server.logged

    def events(self) -> Counter[str]:
        """Count what was logged, of warnings and errors."""
        return Counter(str(one["event"]) for one in self.server.logged)


@asynccontextmanager
async def outage(path: Path) -> AsyncGenerator[Outage]:
    """Start a server on a database, with one session that has a turn behind it."""
    server = await ServerProcess.start(path, "flood")
    line = await Line.open(server.url)
    try:
        await line.ask(SessionResult, "sessions.create", session_id=SESSION)
        case = Outage(server, line)
        await case.prompt()
        yield case
    finally:
        await line.close()
        await server.kill()
