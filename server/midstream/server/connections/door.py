"""How fast newcomers are let in when many come at once (SPEC 3.1, 11).

After a restart a whole building comes back within a second, and an attacker may send as many. A handshake
takes half a millisecond, and what a client asks for first takes more; done as fast as they come, they would
take all of the time. So they are let in a few at a time, and as long as those took, others have their turn:
half of the time is left, whatever a handshake costs. Who comes back is let in before who comes anew.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import Final

AT_A_TIME: Final = 8
"""Newcomers who are let in together: about 4 ms, which nobody sees."""
ROOM: Final = 6_000
"""Newcomers who may wait: each takes 15 KiB. The others are asked to come again."""
TURNS: Final = 3
"""Turns of the event loop after which those who were let in have had their answer."""


class Door:
    """Lets newcomers in, as many at a time as :data:`AT_A_TIME`."""

    def __init__(self, room: int = ROOM) -> None:
        """Begin with nobody there, and room for so many who wait."""
        self._room = room
        self._returning: dict[asyncio.Future[None], None] = {}
        self._new: dict[asyncio.Future[None], None] = {}
        self._is_busy = False

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._returning) + len(self._new)

    async def enter(self, gone: asyncio.Future[None], *, returning: bool) -> bool:
        """Wait until it is one's turn, not at all where nobody else waits, or until one is ``gone``.

        Returns False at once where there is no room to wait.
        """
        if gone.done():
            return True
        if len(self) >= self._room:
            return False
        waiter = asyncio.get_running_loop().create_future()
        queue = self._returning if returning else self._new
        queue[waiter] = None

        def leave(_: object) -> None:
            if not waiter.done():
                waiter.set_result(None)

        gone.add_done_callback(leave)
        try:
            if not self._is_busy:
                self._let_in()
            await waiter
        finally:
            queue.pop(waiter, None)
            gone.remove_done_callback(leave)
        return True

    def _let_in(self) -> None:
        let_in = list(islice(chain(self._returning, self._new), AT_A_TIME))
        for waiter in let_in:
            self._returning.pop(waiter, None)
            self._new.pop(waiter, None)
            if not waiter.done():
                waiter.set_result(None)
        self._is_busy = bool(let_in)
        if self._is_busy:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._turn, TURNS, loop.time())

    def _turn(self, left: int, begun: float) -> None:
        loop = asyncio.get_running_loop()
        if left:
            loop.call_soon(self._turn, left - 1, begun)
        else:
            loop.call_later(loop.time() - begun, self._let_in)
