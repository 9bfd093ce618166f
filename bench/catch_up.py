"""What does a reader cost that comes back, by how much it missed?

``python -m bench.catch_up [DIRECTORY]`` lets a conversation go on while a reader is away, for 1, 10 and 100
turns of a question and an answer of 1,000 bytes, and asks for the ``subscribe`` that brings it up to now:
from the history in memory (replay), from the store once the server was started anew (catch-up), and, for
comparison, without a cursor (reset). It counts the bytes of the answer, and the CPU of the whole process from
the call frame to the WebSocket messages: for the first who asks, and for those who ask for the same after it
while the session stands still. About 10 seconds.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET

from bench.asker import Asker
from bench.inside import Inside, inside
from bench.report import Goal, conclude, table
from midstream.agents import Turn
from midstream.protocol.calls import (
    CreateParams,
    Cursor,
    PromptParams,
    PromptResult,
    SessionResult,
    SubscribeParams,
    SubscribeResult,
    TurnParams,
    TurnResult,
)
from midstream.protocol.chunks import ChunkAssembler
from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Chunk, Result
from midstream.protocol.model import TextPart
from midstream.server import interpreter
from midstream.server.sessions.services import Settings

SESSION: Final = "5e0ac1b2-7f0e-4f65-9f3f-6f0b7c1a2d3e"
BEFORE: Final = 100
"""Turns that the reader has seen."""
MISSED: Final = (100, 10, 1, 0)
"""Turns that it has not."""
LIMIT: Final = 50
QUESTION: Final = "What happened then? "
PIECES: Final = ("Once upon a time there was a server that nobody knew. ", *["It went on and on. "] * 50)
ASKS: Final = 20
"""Times that each is asked for, alone and shared."""
SPARE: Final = 2.0
"""What a catch-up may have, for each byte of the text that was missed: ids, times and turns come with it."""


class Cost(NamedTuple):
    """What one way back cost, in ms of CPU: for the first who asked, and for each that asked the same."""

    missed: str
    mode: str
    bytes: int
    first_ms: float
    shared_ms: float


async def agent(turn: Turn) -> None:
    """Tell a story of a thousand bytes."""
    async with turn.step() as step, step.text() as text:
        for piece in PIECES:
            await text.append(piece)
            await asyncio.sleep(0)


class Reader:
    """Comes back again and again."""

    def __init__(self, house: Inside) -> None:
        """Connect."""
        self._house = house
        self._asker = Asker(house, MSGPACK)
        self._calls = 0

    async def come(self, cursor: Cursor | None) -> tuple[list[bytes], float]:
        """Subscribe; give the answer's WebSocket messages, and the seconds of CPU that it took."""
        self._calls += 1
        params = SubscribeParams(session_id=SESSION, cursor=UNSET if cursor is None else cursor, limit=LIMIT)
        call = self._asker.call(self._calls, "subscribe", params)
        before = time.process_time()
        answer = await self._asker.ask(self._calls, call)
        return answer, time.process_time() - before

    async def cost(self, missed: str, cursor: Cursor | None) -> Cost:
        """Come back as the first one, and as one of many, a few times each."""
        first: list[float] = []
        shared: list[float] = []
        answer, _ = await self.come(cursor)
        result = self.read(answer)
        for _ in range(ASKS):
            self._house.services.shelf.find(result.channel, None, None)  # forgets what was read before
            first.append((await self.come(cursor))[1])
            shared.append((await self.come(cursor))[1])
        size = sum(map(len, answer))
        medians = statistics.median(first) * 1000, statistics.median(shared) * 1000
        return Cost(missed, result.sync.mode, size, *medians)

    async def cursor(self) -> Cursor:
        """Return what a reader holds that has everything."""
        sync = self.read((await self.come(None))[0]).sync
        return Cursor(epoch=sync.epoch, version=sync.version, durable=sync.committed())

    def read(self, answer: list[bytes]) -> SubscribeResult:
        """Return an answer as a client reads it."""
        assembler = ChunkAssembler(2**28, MSGPACK)
        for message in answer:
            frame = MSGPACK.decode_server_frame(_payload(message))
            if isinstance(frame, Chunk):
                whole = assembler.feed(frame)
                frame = None if whole is None else MSGPACK.decode_server_frame(whole)
            if isinstance(frame, Result):
                return msgspec.convert(MSGPACK.decode_result("subscribe", frame.result), SubscribeResult)
        raise RuntimeError("no answer came")


def _payload(message: bytes) -> bytes:
    """Return what an unmasked WebSocket message carries (RFC 6455, 5.2)."""
    return message[{126: 4, 127: 10}.get(message[1], 2) :]


async def talk(house: Inside, turns: int, name: str) -> None:
    """Ask, and wait for the answer, so many times."""
    for number in range(turns):
        params = PromptParams(
            session_id=SESSION, message_id=f"{name} {number}", parts=[TextPart(text=QUESTION)]
        )
        await house.call("prompt", params, PromptResult)
        current = TurnParams(session_id=SESSION, turn_id="current")
        while (await house.call("turn", current, TurnResult)).turn:  # noqa: ASYNC110 - a bench may look
            await asyncio.sleep(0)


async def measure(directory: str) -> list[Cost]:
    """Measure every way back."""
    path, settings = Path(directory) / "bench.db", Settings(tick_seconds=0)
    costs: list[Cost] = []
    cursors: dict[int, Cursor] = {}
    async with inside(path, agent, settings) as house:
        await house.call("sessions.create", CreateParams(session_id=SESSION), SessionResult)
        await talk(house, BEFORE, "before")
        interpreter.tune()
        reader = Reader(house)
        for missed, following in zip(MISSED, (*MISSED[1:], 0), strict=True):
            cursors[missed] = await reader.cursor()
            await talk(house, missed - following, f"missed {missed}")
        costs += [await reader.cost(f"{missed:,} turns", cursors[missed]) for missed in MISSED]
    async with inside(path, agent, settings) as house:
        reader = Reader(house)
        costs += [await reader.cost(f"{missed:,} turns, and a restart", cursors[missed]) for missed in MISSED]
        costs.append(await reader.cost(f"no cursor, {LIMIT} messages", None))
    return costs


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as directory:
        costs = asyncio.run(measure(directory))
    lines = [
        [one.missed, one.mode, f"{one.bytes:,}", f"{one.first_ms:.2f}", f"{one.shared_ms:.3f}"]
        for one in costs
    ]
    text = len(QUESTION) + sum(map(len, PIECES))
    goals = [
        Goal(
            f"{one.mode} of {one.missed}: bytes to those of the text",
            one.bytes / (text * missed),
            SPARE,
            at_least=False,
        )
        for one, missed in zip(costs, MISSED * 2, strict=False)
        if missed
    ]
    return conclude(
        "catch_up",
        table(("missed", "way back", "bytes", "CPU ms, the first", "CPU ms, each after it"), lines),
        {"costs": [one._asdict() for one in costs]},
        goals,
        [f"A turn has {text:,} bytes of text, in {len(PIECES)} pieces; the reader had seen {BEFORE} turns."],
    )


if __name__ == "__main__":
    sys.exit(main())
