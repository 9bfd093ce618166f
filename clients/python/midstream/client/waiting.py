"""Waiting for something to become true that frames and answers change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from midstream.client.errors import TimedOut

T = TypeVar("T")


class Waiters:
    """The tasks that wait for a change of one thing."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._waiting: dict[asyncio.Future[None], None] = {}

    def notify(self) -> None:
        """Let all who wait look again."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def until(
        self,
        look: Callable[[], T | None],
        *,
        what: str,
        timeout: float | None,  # noqa: ASYNC109 - the error says what was waited for and what is in the way
        problem: Callable[[], str | None],
    ) -> T:
        """Return the first value of ``look`` that is not None; it is called now and after each change.

        Raises:
            TimedOut: there was none within ``timeout`` seconds (None: wait as long as it takes).
            Exception: what ``look`` raises.

        """
        try:
            async with asyncio.timeout(timeout):
                while (value := look()) is None:
                    await self._change()
        except TimeoutError:
            raise TimedOut(what, timeout or 0.0, problem()) from None
        return value

    async def _change(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        try:
            await future
        finally:
            del self._waiting[future]
