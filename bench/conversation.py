"""One long conversation on a server process, and a reader that comes and goes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.serving import TOKEN, ServerProcess
from bench.wire import CountingReader, counting
from midstream.protocol.calls import CreateParams, SessionResult
from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.merge import Replica
from midstream.protocol.model import Message, TextPart

SESSION = "5e0ac1b2-7f0e-4f65-9f3f-6f0b7c1a2d3e"


class Conversation:
    """A database, the server that owns it now, and what the reader has of it."""

    def __init__(self, path: Path, server: ServerProcess) -> None:
        """Begin with nothing read."""
        self.path = path
        self.server = server
        self.replica = Replica(SESSION)
        self._prompts = 0

    @asynccontextmanager
    async def connected(self, codec: Codec = MSGPACK) -> AsyncGenerator[CountingReader]:
        """Connect, without subscribing."""
        async with counting(self.server.url, self.replica, codec) as reader:
            yield reader

    @asynccontextmanager
    async def subscribed(self, codec: Codec = MSGPACK) -> AsyncGenerator[CountingReader]:
        """Connect, and subscribe with the cursor."""
        async with self.connected(codec) as reader:
            await reader.subscribe(self.replica.cursor())
            yield reader

    async def begin(self, messages: int) -> None:
        """Create the session, and talk until it has so many messages, all of which the reader has seen."""
        async with self.connected() as reader:
            await reader.call("sessions.create", CreateParams(session_id=SESSION), SessionResult)
            await reader.subscribe()
            while len(self.replica.messages()) < messages:
                await self.prompt(reader, "short")
                await reader.until_idle()

    async def prompt(self, reader: CountingReader, text: str) -> None:
        """Say something that has not been said."""
        self._prompts += 1
        await reader.prompt(f"{self._prompts:08x}-7f0e-4f65-9f3f-{self.replica.version:012x}", text)

    async def stream(self, reader: CountingReader, tokens: int) -> None:
        """Begin a turn, and read so much of its answer."""
        await self.prompt(reader, "long")
        await self.server.tell("say", tokens)
        while last_text(self.replica.messages()) != TOKEN * tokens:
            await reader.receive()

    async def reconnect(self) -> tuple[int, int]:
        """Connect anew, subscribe with the cursor, and prove the replica.

        Returns:
            The bytes that the server sent for the subscription, and those that asked for it.

        """
        async with self.connected() as reader:
            down, up = reader.relay.down, reader.relay.up
            await reader.subscribe(self.replica.cursor())
            cost = reader.relay.down - down, reader.relay.up - up
            await reader.check()
        return cost

    async def restart(self, *, clean: bool) -> None:
        """Have another server go on with the database; the reader is not there."""
        await (self.server.stop() if clean else self.server.kill())
        self.server = await ServerProcess.start(str(self.path))


@asynccontextmanager
async def conversation(path: Path) -> AsyncGenerator[Conversation]:
    """Have a conversation in a new database; at the end its server is killed."""
    talk = Conversation(path, await ServerProcess.start(str(path)))
    try:
        yield talk
    finally:
        await talk.server.kill()


def last_text(messages: list[Message]) -> str:
    """Return the text of the last message, where an agent wrote it."""
    last: Iterable[Message] = messages[-1:]
    return "".join(
        part.text
        for message in last
        if message.role == "agent"
        for part in message.parts
        if isinstance(part, TextPart)
    )
