"""A protocol that writes down everything its transport does with it."""

import asyncio
from collections.abc import Callable


class Probe(asyncio.Protocol):
    """Records callbacks in order, and lets a test wait for them.

    Attributes:
        events: `made`, `data`, `eof`, `lost`, `pause`, `resume`, in order; neighbouring `data` are one,
            because how a stream is cut into pieces means nothing.
        error: what `connection_lost` was told.
        keep_open: what `eof_received` returns.
        on_resume: called by `resume_writing`.
    """

    def __init__(self, *, keep_open: bool = False) -> None:
        self.events: list[str] = []
        self.error: Exception | None = None
        self.keep_open = keep_open
        self.on_resume: Callable[[], None] = lambda: None
        self.made = asyncio.Event()
        self.ended = asyncio.Event()
        self.lost = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._arrived = asyncio.Event()
        self._received = bytearray()

    @property
    def transport(self) -> asyncio.Transport:
        """The transport, once there is one."""
        assert self._transport is not None
        return self._transport

    @property
    def received(self) -> bytes:
        """All bytes so far."""
        return bytes(self._received)

    async def read(self, count: int) -> bytes:
        """Wait until `count` bytes have been received in all, and return them all."""
        while len(self._received) < count:
            self._arrived.clear()
            await self._arrived.wait()
        return self.received

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.events.append("made")
        self.made.set()

    def data_received(self, data: bytes) -> None:
        """Record it."""
        assert data
        self._received += data
        if self.events[-1] != "data":
            self.events.append("data")
        self._arrived.set()

    def eof_received(self) -> bool:
        """Record it."""
        self.events.append("eof")
        self.ended.set()
        return self.keep_open

    def connection_lost(self, exc: Exception | None) -> None:
        """Record it."""
        self.events.append("lost")
        self.error = exc
        self.lost.set()

    def pause_writing(self) -> None:
        """Record it."""
        self.events.append("pause")

    def resume_writing(self) -> None:
        """Record it."""
        self.events.append("resume")
        self.on_resume()
