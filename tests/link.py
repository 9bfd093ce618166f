"""An in-memory connection between a client and a server, with the faults of a real one.

A `Link` works on any asyncio event loop; under `SimLoop` its time is virtual and its chances are seeded.
Bytes are FIFO in each direction, whatever else happens, as in TCP: a fault delays or ends the stream, and
only `filter` can take something out of its middle.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from random import Random
from typing import Literal

from tests.pipe import Note, Pipe, Shape, unnoted
from tests.transport import Address, LinkTransport, SocketStub

__all__ = ["Address", "Direction", "Filter", "Link", "LinkTransport", "Shape", "Side"]

Direction = Literal["up", "down"]
"""`up` is from the client to the server, `down` from the server to the client."""
Side = Literal["client", "server"]
Filter = Callable[[Direction, bytes], bytes]
"""Sees every written chunk and returns what is sent in its place."""


class Link:
    """One connection: two pipes, and a transport at each end.

    Both ends are there from the beginning; `link.client.start(protocol)` and `link.server.start(protocol)`
    connect the programs.

    Attributes:
        client, server: the two ends.
        up, down: the two pipes; `up.held` is how many bytes the server has not read yet.
        index: the number of this link in its network, from 1.
        filter: the surgeon: called with each written chunk, returns the bytes that are sent in its place.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        rng: Random,
        shape: Shape | None = None,
        *,
        index: int = 1,
        addresses: tuple[Address, Address] = (("127.0.0.1", 50_001), ("127.0.0.1", 80)),
        contexts: tuple[Context, Context] | None = None,
        note: Note = unnoted,
    ) -> None:
        self.index = index
        self._loop = loop
        self.filter: Filter | None = None
        carried = shape or Shape()
        self.up = Pipe(loop, rng, carried, 2 * index, note)
        self.down = Pipe(loop, rng, carried, 2 * index + 1, note)
        near, far = contexts or (copy_context(), copy_context())
        here, there = addresses
        self.client = LinkTransport(loop, self.down, self.up, self._extra(here, there), near)
        self.server = LinkTransport(loop, self.up, self.down, self._extra(there, here), far)
        self.up.filter = partial(self._filtered, "up")
        self.down.filter = partial(self._filtered, "down")
        self.up.join(self.client, self.server)
        self.down.join(self.server, self.client)

    def _extra(self, local: Address, peer: Address) -> dict[str, object]:
        return {"sockname": local, "peername": peer, "socket": SocketStub(local, peer), "link": self}

    @property
    def closed(self) -> bool:
        """Whether both ends have closed for good."""
        return self.client.gone and self.server.gone

    def reshape(self, shape: Shape) -> None:
        """Carry what is written from now on in another way."""
        self.up.shape = self.down.shape = shape

    def cut(self, *, client: float | None = 0.0, server: float | None = 0.0) -> None:
        """End the connection for good: bytes in flight are lost at once.

        Each end is told (`ConnectionResetError`) after its number of seconds; `None` leaves it untold, so
        that it writes into nothing until it gives up by itself.
        """
        self.up.sever()
        self.down.sever()
        for end, after in ((self.client, client), (self.server, server)):
            if after is not None:
                self._loop.call_later(after, end.receive_reset, context=end.context)

    def reset(self, side: Side) -> None:
        """Let one end die: it closes at once, the other gets a reset after the latency."""
        end = self.client if side == "client" else self.server
        end.reset()

    def half_open(self, direction: Direction | None = None) -> None:
        """Let nothing arrive in one direction (or both) and tell nobody, until `heal` or `cut`.

        An end or a reset does not arrive either.
        What is written fills the capacity and then the write buffer. After `heal` it arrives, as TCP sends
        again what was not acknowledged; to lose bytes from the middle of the stream, use `filter`.
        """
        for pipe in self._pipes(direction):
            pipe.darken()

    def heal(self, direction: Direction | None = None) -> None:
        """Undo `half_open`."""
        for pipe in self._pipes(direction):
            pipe.heal()

    def stall(self, direction: Direction) -> None:
        """Let the receiver of a direction not read, until `unstall`; it still notices a reset."""
        for pipe in self._pipes(direction):
            pipe.stall()

    def unstall(self, direction: Direction) -> None:
        """Undo `stall`."""
        for pipe in self._pipes(direction):
            pipe.unstall()

    def _filtered(self, direction: Direction, data: bytes) -> bytes:
        return data if self.filter is None else self.filter(direction, data)

    def _pipes(self, direction: Direction | None) -> tuple[Pipe, ...]:
        if direction is None:
            return self.up, self.down
        return (self.up,) if direction == "up" else (self.down,)
