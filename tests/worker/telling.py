"""An agent that a test tells what to say."""

from __future__ import annotations

import asyncio

from midstream.agents import Turn


class Told:
    """An agent that streams a word each time it is told to."""

    def __init__(self) -> None:
        self.begun = 0
        self.stopped = asyncio.Event()
        self._words: asyncio.Queue[str | None] = asyncio.Queue()

    def say(self, *words: str) -> None:
        """Let it say these."""
        for word in words:
            self._words.put_nowait(word)

    def end(self) -> None:
        """Let it return."""
        self._words.put_nowait(None)

    async def __call__(self, turn: Turn) -> None:
        """Run a turn."""
        self.begun += 1
        try:
            async with turn.step() as step, step.text() as text:
                while (word := await self._words.get()) is not None:
                    await text.append(word)
        except asyncio.CancelledError:
            self.stopped.set()
            raise
