"""A worker that is killed again and again during one long turn, and always started again.

``python -m tests.end_to_end.worker_kill [--times 100] [--seed 1]`` starts a server, a turn, and a worker;
kills the worker by ``kill -9`` at a moment of chance, and starts it again. At the end the text must be what
the workers counted, without doubling or holes, and no tool may have been executed twice. It prints how many
were killed when.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from midstream.client import Session
from midstream.client.errors import InteractionClosed
from midstream.protocol.model import InteractionPart, Message, TextPart, ToolPart
from midstream.server import logs
from tests.end_to_end.process import ROOT
from tests.end_to_end.worker_child import WORDS
from tests.worker.stage import WorkerStage, parts_of, text_of

MOMENTS = ("start", "begin", "say", "say", "say", "ask", "execute", "answered")


class WorkerProcess:
    """A worker in a process of its own.

    Attributes:
        notes: what it has said, as far as it was read.
    """

    def __init__(self, process: Process) -> None:
        self.notes: list[dict[str, Any]] = []
        self._process = process
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="worker's output")

    @classmethod
    async def start(cls, url: str, name: str) -> WorkerProcess:
        """Start one."""
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.end_to_end.worker_child", url, name, stdout=PIPE, cwd=ROOT
            )
        )

    def count(self, kind: str) -> int:
        """Return how often it has said this."""
        return sum(note["kind"] == kind for note in self.notes)

    async def until(self, kind: str, times: int) -> None:
        """Wait until it has said this so often.

        Raises:
            EOFError: it ended first.
        """
        while self.count(kind) < times:
            if self._reading.done():
                raise EOFError(f"The worker ended with {await self._process.wait()}")
            self._news.clear()
            await self._news.wait()

    async def kill(self) -> None:
        """Kill it by ``kill -9``, and read what it had said."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self.notes.append(json.loads(line))
                self._news.set()
        finally:
            self._news.set()


class Torture:
    """One turn, and the workers that die of it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.deaths: Counter[str] = Counter()
        self.notes: list[dict[str, Any]] = []
        self.stage = WorkerStage(directory / "chat.db")
        self._session: Session

    async def run(self, times: int) -> list[Message]:
        """Kill so many workers, let the last one end the turn, and return what was said."""
        await self.stage.start()
        try:
            await self.stage.create("s")
            session = self._session = await self.stage.session()
            approving = asyncio.create_task(self._approve())
            turn = await session.prompt("Count")
            for _ in range(times):
                await self._live_and_die()
            worker = await WorkerProcess.start(self.stage.url, "w")
            await worker.until("say", WORDS)
            enough = await session.prompt("Enough")
            ended = await turn.finished()
            assert ended.state == "completed", ended
            await enough.finished()
            await worker.kill()
            self.notes += worker.notes
            approving.cancel()
            await self.stage.proves(await self.stage.reader(include_internal=True))
            return session.messages
        finally:
            await self.stage.close()

    def check(self, messages: list[Message]) -> int:
        """Hold the conversation against what the workers said that they did; return how many words it has."""
        words = text_of(messages).split()
        assert words == [str(number) for number in range(len(words))]
        said = [note["word"] for note in self.notes if note["kind"] == "say"]
        assert set(said) == set(range(len(words)))
        calls = parts_of(messages, ToolPart)
        assert len({call.tool_call_id for call in calls}) == len(calls)
        executed = Counter(note["call"] for note in self.notes if note["kind"] == "execute")
        assert not [call for call, times in executed.items() if times > 1]
        for call in calls:
            assert call.state in {"completed", "failed"}
            assert call.state != "completed" or executed[call.tool_call_id] == 1
        asked = Counter(part.tool_call_id for part in parts_of(messages, InteractionPart))
        assert set(asked.values()) <= {1}
        texts = [part for part in parts_of(messages, TextPart) if part.state == "done"]
        assert all(text.text for text in texts)
        return len(words)

    async def _live_and_die(self) -> None:
        moment = self.chance.choice(MOMENTS)
        worker = await WorkerProcess.start(self.stage.url, "w")
        if moment == "answered":
            await worker.until("ask", 1)
            await self._session.until(lambda: not self._pending())
        else:
            await worker.until(moment, self.chance.randint(1, 2 * WORDS) if moment == "say" else 1)
        await worker.kill()
        self.deaths[moment] += 1
        self.notes += worker.notes

    def _pending(self) -> list[InteractionPart]:
        return [one for one in parts_of(self._session.messages, InteractionPart) if one.status == "pending"]

    async def _approve(self) -> None:
        """Approve what is asked, sometimes after a while of the agent's life."""
        while True:
            await self._session.until(self._pending)
            for part in self._pending():
                with suppress(InteractionClosed):
                    await self._session.approve(part.interaction_id)
            await self._session.until(lambda: not self._pending())


async def torture(directory: Path, times: int, seed: int) -> Torture:
    """Kill so many workers, and check what came out."""
    tortured = Torture(directory, seed)
    words = tortured.check(await tortured.run(times))
    sys.stdout.write(f"killed: {dict(tortured.deaths)}; {words} words, none doubled and none missing\n")
    return tortured


def main() -> None:
    """Kill as many as asked for."""
    parser = argparse.ArgumentParser(description="kill -9 of workers during one long turn")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    logs.configure("json", "warning")
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(torture(Path(directory), asked.times, asked.seed))


if __name__ == "__main__":
    main()
