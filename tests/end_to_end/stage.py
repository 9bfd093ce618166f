"""A server on a real socket and a real file, an agent whose strings the test holds, and who is connected.

The server runs in the test's own process and event loop; where it must be killed, there is `process.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

from midstream.agents import Agent
from midstream.client import Client, Options, Policy
from midstream.client.clock import Clock
from midstream.protocol.calls import Delivery, PromptResult, SessionResult
from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.values import Value
from midstream.server import Config, RunningServer, Server, Turn
from tests.laws.line import Line
from tests.laws.reader import Chronicle, Reader
from tests.laws.world import Puppet
from tests.proxy import Proxy, proxy_to

QUICK = Policy(backoff_s=0.02, backoff_limit_s=0.1, connect_s=1.0, stable_s=0.1)
"""A client that is in a hurry, because time is real here."""


class Stage:
    """One database file, the servers that own it one after another, and who is connected.

    Attributes:
        path: the database.
        settings: those of each server, by the names of its configuration.
        puppet: the agent of each server, unless ``agent`` is set.
        agent: another agent.
        remote: whether workers run the turns instead.
        port: where each server listens; 0 takes a free one.
        chronicle: what all readers showed; two that stood at one version showed the same.
    """

    def __init__(self, path: Path, *, remote: bool = False, **settings: Any) -> None:  # noqa: ANN401  # of Server
        self.path = path
        self.settings: dict[str, Any] = {"tick_ms": 1, **settings}
        self.puppet = Puppet()
        self.agent: Agent | None = None
        self.remote = remote
        self.port = 0
        self.chronicle = Chronicle()
        self._things = AsyncExitStack()
        self._life = AsyncExitStack()
        self._running: RunningServer | None = None
        self._user: Line | None = None
        self._prompts = 0
        self._clients = 0

    # The server

    @property
    def running(self) -> RunningServer:
        """The server that runs now."""
        assert self._running is not None
        return self._running

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.running.url

    async def start(self) -> None:
        """Start a server."""
        agent = None if self.remote else self.agent or self.puppet
        config = Config(agent="remote") if self.remote else None
        server = Server(agent=agent, database=self.path, config=config, **self.settings)
        self._running = await self._life.enter_async_context(server.listen("127.0.0.1", self.port))

    async def stop(self) -> None:
        """Stop it in good order."""
        await self._life.aclose()

    async def restart(self) -> None:
        """Stop it in good order, and start another one."""
        await self.stop()
        self._user = None
        await self.start()

    async def close(self) -> None:
        """End everything."""
        await self._things.aclose()
        await self.stop()

    # Who is connected

    async def proxy(self) -> Proxy:
        """Return a proxy to the server that runs now."""
        return await self._things.enter_async_context(proxy_to(self.url))

    async def line(self, url: str | None = None, codec: Codec = MSGPACK) -> Line:
        """Connect, directly or by another way, and say hello."""
        line = await Line.open(url or self.url, codec)
        self._things.push_async_callback(line.close)
        return line

    async def reader(
        self,
        session_id: str = "s",
        *,
        line: Line | None = None,
        **wish: Any,  # noqa: ANN401  # of Reader
    ) -> Reader:
        """Return a reader that has joined, on a line of its own if none is given."""
        wish = {"chronicle": self.chronicle, **wish}
        reader = Reader(line or await self.line(), session_id, **wish)
        await reader.join()
        return reader

    async def client(
        self,
        url: str | None = None,
        *,
        clock: Clock | None = None,
        policy: Policy = QUICK,
    ) -> Client:
        """Return a client of the project's own, which is closed at the end."""
        self._clients += 1
        chance = Random(self._clients)
        client = Client(url or self.url, clock=clock, random=chance, options=Options(policy=policy))
        return await self._things.enter_async_context(client)

    async def proves(self, reader: Reader) -> None:
        """Hold a reader against one that reads everything anew, and against the server's digests."""
        fresh = await self.reader(
            reader.session_id, include_internal=reader.replica.include_internal, limit=None
        )
        await fresh.read_all()
        await reader.until_version(fresh.replica.version)
        await reader.read_all()
        assert reader.content() == fresh.content()
        await reader.prove()

    # The user

    async def user(self) -> Line:
        """Return a line that calls."""
        if self._user is None or not self._user.is_open:
            self._user = await self.line()
        return self._user

    async def create(self, *session_ids: str) -> None:
        """Make sessions."""
        for session_id in session_ids or ("s",):
            await (await self.user()).ask(SessionResult, "sessions.create", session_id=session_id)

    async def prompt(
        self,
        text: str = "Go on",
        *,
        session_id: str = "s",
        message_id: str | None = None,
        delivery: Delivery = "auto",
    ) -> PromptResult:
        """Send an input."""
        self._prompts += 1
        return await (await self.user()).ask(
            PromptResult,
            "prompt",
            **prompt_params(text, session_id, message_id or f"m{self._prompts}", delivery),
        )

    async def turn(self, text: str = "Go on", *, session_id: str = "s") -> Turn:
        """Start a turn, and return the agent's side of it, which has done nothing yet."""
        await self.prompt(text, session_id=session_id)
        return await self.puppet.next()

    async def finish(self, turn: Turn, reader: Reader, error: BaseException | None = None) -> None:
        """Let the agent return, or raise, and wait until the reader has seen the turn's end."""
        self.puppet.end(turn, error)
        await until_ended(reader, turn.turn_id)


def prompt_params(
    text: str, session_id: str, message_id: str, delivery: Delivery = "auto"
) -> dict[str, Value]:
    """Return the params of a prompt with one text."""
    return {
        "session_id": session_id,
        "message_id": message_id,
        "parts": [{"type": "text", "text": text}],
        "delivery": delivery,
    }


async def until_ended(reader: Reader, turn_id: str) -> None:
    """Wait until a reader has seen the end of a turn."""
    turns = reader.replica
    await reader.line.until(lambda: turn_id in turns.turns and turns.turns[turn_id].state != "running")


async def until_text(reader: Reader, text: str) -> None:
    """Wait until the last part of the last message that a reader has is this text."""
    await reader.line.until(lambda: last_text(reader) == text)


def last_text(reader: Reader) -> str | None:
    """Return the text of the last part of the last message."""
    return next(
        (
            getattr(part, "text", None)
            for message in reader.replica.messages()[-1:]
            for part in message.parts[-1:]
        ),
        None,
    )


OpenStage = Callable[..., Awaitable[Stage]]
"""``await open_stage(**settings)``: a stage whose server runs, and which is closed after the test."""
