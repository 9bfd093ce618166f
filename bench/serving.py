"""A server in a process of its own, whose agent says what the bench tells it to.

``python -m bench.serving DATABASE`` prints its URL, then obeys lines on its input: each is done when ``done``
is printed. A turn whose prompt is ``short`` answers at once; any other obeys ``say COUNT`` (tokens of four
characters, each in a version of its own), ``join COUNT`` (tokens in one version), ``step`` (begin a new
step) and ``end``. ``later MS`` moves the server's clock forward, ``cpu`` prints the seconds of CPU that the
process took. At the end of its input the server stops in good order.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process

from bench.orders import orders
from midstream.server import Server, Turn, logs
from midstream.server.clock import SystemClock

SHORT_ANSWER = "The answer to a short question, two lines long, as most of them are. " * 2
TOKEN = "word"  # noqa: S105 - a token of text


class MovableClock(SystemClock):
    """The machine's clocks, with the wall clock moved forward."""

    def __init__(self) -> None:
        self.moved_ms = 0

    def wall_ms(self) -> int:
        """Return the wall clock, in ms since the epoch."""
        return super().wall_ms() + self.moved_ms


class Talker:
    """The agent, and the orders that wait for it."""

    def __init__(self) -> None:
        self._orders: asyncio.Queue[list[str]] = asyncio.Queue()
        self._done = asyncio.Event()

    async def order(self, words: list[str]) -> None:
        """Have an order carried out, and wait for it."""
        self._done.clear()
        await self._orders.put(words)
        await self._done.wait()

    async def run(self, turn: Turn) -> None:
        """Run one turn."""
        if turn.prompt_text == "short":
            async with turn.step() as step, step.text() as text:
                await text.append(SHORT_ANSWER)
            return
        while await self._step(turn):
            self._done.set()
        self._done.set()

    async def _step(self, turn: Turn) -> bool:
        """Obey until a new step or the end is ordered; return whether it was a step."""
        async with turn.step() as step, step.text() as text:
            while (words := await self._orders.get())[0] in {"say", "join"}:
                for _ in range(int(words[1])):
                    await text.append(TOKEN)
                    if words[0] == "say":
                        await asyncio.sleep(0)  # lets the tick pass: the next token gets a version of its own
                        await asyncio.sleep(0)
                self._done.set()
        return words[0] == "step"


async def main(database: str) -> None:
    """Serve until the input ends."""
    logs.configure(level="error")
    clock, talker = MovableClock(), Talker()
    server = Server(agent=talker.run, database=database, clock=clock, tick_ms=0)
    async with server.listen("127.0.0.1", 0) as running:
        print(running.url, flush=True)
        async for words in orders():
            answer: object = "done"
            if words[0] == "later":
                clock.moved_ms += int(words[1])
            elif words[0] == "cpu":
                answer = time.process_time()
            else:
                await talker.order(words)
            print(answer, flush=True)


class ServerProcess:
    """The bench's end of such a process."""

    def __init__(self, process: Process, orders: StreamWriter, answers: StreamReader, url: str) -> None:
        """Take over a process that listens at ``url``."""
        self.url = url
        self._process = process
        self._orders = orders
        self._answers = answers

    @classmethod
    async def start(cls, database: str) -> ServerProcess:
        """Start one, and wait until it listens."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.serving", database, stdin=PIPE, stdout=PIPE
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the server has no pipes")
        url = (await process.stdout.readline()).decode().strip()
        return cls(process, process.stdin, process.stdout, url)

    async def tell(self, *words: object) -> None:
        """Give an order, and wait until it is done."""
        answer = await self._ask(*words)
        if answer != "done":
            raise RuntimeError(f"the server did not do {words}: it said {answer!r}")

    async def cpu(self) -> float:
        """Return the seconds of CPU that the process took so far."""
        return float(await self._ask("cpu"))

    async def _ask(self, *words: object) -> str:
        self._orders.write((" ".join(str(word) for word in words) + "\n").encode())
        return (await self._answers.readline()).decode().strip()

    async def stop(self) -> None:
        """Stop in good order."""
        self._orders.close()
        await self._process.wait()

    async def kill(self) -> None:
        """End by ``kill -9``, if it runs."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
