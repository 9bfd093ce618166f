"""A scripted server for a worker: it gives one turn away, and takes what it is told to take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import msgspec

from midstream.agents import Agent
from midstream.protocol.agent_calls import AttachParams, AttachResult, RegisterParams, RegisterResult
from midstream.protocol.frames import Ack, Append, ClientFrame, Offer, PartHandle, Ping, Pong, WriteFrame
from midstream.worker import Worker, WorkerOptions
from tests.client.peer import PeerLink
from tests.client.stage import Stage
from tests.end_to_end.stage import QUICK
from tests.worker.oracle import PROMPT, TURN

Write = Append | WriteFrame
ATTACHED = AttachResult(
    channel=1,
    generation=1,
    next_n=1,
    durable_n=0,
    lease_ms=30_000,
    window_bytes=20_000,
    turn=TURN,
    prompt=PROMPT,
)
"""The answer to a first attach."""


@asynccontextmanager
async def working(stage: Stage, agent: Agent, *, resumes: bool = False) -> AsyncGenerator[Worker]:
    """Have a worker of the scripted server."""
    worker = Worker(
        stage.peer.url,
        agent,
        name="w",
        resumes=resumes,
        clock=stage.clock,
        random=stage.random,
        options=WorkerOptions(policy=QUICK),
    )
    running = asyncio.ensure_future(worker.run())
    try:
        yield worker
    finally:
        await worker.close()
        with suppress(Exception):
            await running


async def registered(stage: Stage) -> tuple[PeerLink, RegisterParams]:
    """Return the next connection, on which a worker has registered, and as whom."""
    link = await stage.peer.accept()
    asked = await link.asked("agent.register")
    await asked.result(RegisterResult(lease_ms=30_000))
    return link, asked.as_(RegisterParams)


async def attached(link: PeerLink, result: AttachResult = ATTACHED, *, offer: bool = True) -> AttachParams:
    """Offer the turn, unless the worker knows it, and give it away; return what the worker said."""
    if offer:
        await link.send(Offer("s", "t", result.next_n > 1))
    asked = await link.asked("agent.attach")
    await asked.result(result)
    return asked.as_(AttachParams)


class Taker:
    """Takes the writes of one attachment in order.

    Attributes:
        writes: what came, by its number.
        sizes: how long each was, encoded.
    """

    def __init__(self, link: PeerLink, result: AttachResult = ATTACHED) -> None:
        self.link = link
        self.writes: dict[int, Write] = {}
        self.sizes: dict[int, int] = {}
        self.parts: dict[int, str] = {}
        self._channel = result.channel

    async def take(self, count: int = 1) -> list[Write]:
        """Return the next writes."""
        taken: list[Write] = []
        while len(taken) < count:
            frame = await self.link.frame()
            self._note(frame)
            if isinstance(frame, (Append, WriteFrame)):
                taken.append(frame)
        return taken

    def _note(self, frame: ClientFrame) -> None:
        if isinstance(frame, PartHandle):
            self.parts[frame.handle] = frame.part_id
        elif isinstance(frame, (Append, WriteFrame)):
            assert frame.channel == self._channel
            self.writes[frame.n] = frame
            self.sizes[frame.n] = len(self.link.codec.encode(frame))

    async def take_all(self) -> None:
        """Take all that the worker sends, until nothing more comes while the peer asks it twice."""
        quiet = 0
        while quiet < 2:
            before = len(self.writes)
            await self.link.send(Ping(77))
            while not isinstance(frame := await self.link.frame(), Pong):
                self._note(frame)
            quiet = quiet + 1 if len(self.writes) == before else 0

    async def acknowledge(self, n: int, durable: int | None = None) -> None:
        """Acknowledge writes; all are on disk, where nothing else is said."""
        await self.link.send(Ack(self._channel, n, n if durable is None else durable))


def again(result: AttachResult, **changed: int) -> AttachResult:
    """Return the answer to the next attach."""
    return msgspec.structs.replace(result, generation=result.generation + 1, **changed)
