"""A plain screen whose text a test can wait for."""

import asyncio
import io
from collections.abc import Sequence

from midstream.cli.pieces import Piece
from midstream.cli.screen import PlainScreen


class WatchedScreen(PlainScreen):
    """Writes into memory, and tells when it does."""

    def __init__(self) -> None:
        """Begin empty."""
        self._memory = io.StringIO()
        self._changed = asyncio.Event()
        super().__init__(self._memory)

    @property
    def text(self) -> str:
        """Everything that was written."""
        return self._memory.getvalue()

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Write pieces."""
        await super().show(pieces)
        self._changed.set()

    async def state(self, link: str, activity: str) -> None:
        """Write how the connection stands."""
        await super().state(link, activity)
        self._changed.set()

    async def until(self, text: str, *, times: int = 1) -> None:
        """Wait until the text was written so many times."""
        while self.text.count(text) < times:
            self._changed.clear()
            await self._changed.wait()
