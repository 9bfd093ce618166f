"""One direction of an in-memory connection: a FIFO of bytes with latency, bandwidth and a bounded capacity.

A `Pipe` plays the two kernels and the wire between them. It is driven by one scheduled callback at a time, so
no order in which an event loop runs its callbacks can reorder, double or lose a byte; only a fault does.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

FIN: Final = b""
"""In the queue: the source will send nothing more."""
RST: Final = None
"""In the queue, always last: the source's side is gone, and says so."""

Note = Callable[[str, int, int], None]
"""Told of each event, for a trace: its name, the pipe's serial number and a size in bytes."""


def unnoted(event: str, serial: int, size: int) -> None:
    """Take no note of an event."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a link carries bytes.

    Attributes:
        latency: the least and the greatest time one way, in seconds, drawn anew for each write. What would
            overtake waits for what is before it.
        bandwidth: bytes a second each way; `None` is no limit.
        capacity: bytes that fit between the two programs each way (what real kernels buffer on both sides and
            what is on the wire). What does not fit stays in the sender's write buffer.
        split: the chance, 0 to 1, that a delivery is cut at a random byte and comes in two.
    """

    latency: tuple[float, float] = (0.0005, 0.005)
    bandwidth: float | None = None
    capacity: int = 65_536
    split: float = 0.1


class Source(Protocol):
    """The end that writes into a pipe."""

    def room(self) -> None:
        """Learn that the pipe can take more."""


class Sink(Protocol):
    """The end that a pipe delivers to. It is called from a callback of its own, in its own context."""

    context: Context

    @property
    def reading(self) -> bool:
        """Whether it takes bytes now."""
        ...

    @property
    def gone(self) -> bool:
        """Whether it has closed for good."""
        ...

    def receive(self, data: bytes) -> None:
        """Take the next bytes."""

    def receive_eof(self) -> None:
        """Learn that no more bytes come."""

    def receive_reset(self) -> None:
        """Learn that the other side is gone."""

    def refuse(self) -> None:
        """Answer bytes that came after it was gone, with a reset."""


class Pipe:
    """Bytes on their way from a source to a sink, in order.

    Attributes:
        shape: how bytes are carried; may be replaced at any time, for what is written later.
        filter: applied to every written chunk before it is buffered; what it returns is what is sent.
        sim_serial: names this pipe in the trace of a simulation.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, rng: Random, shape: Shape, serial: int, note: Note
    ) -> None:
        self.shape = shape
        self.filter: Callable[[bytes], bytes] | None = None
        self.sim_serial = serial
        self._loop = loop
        self._rng = rng
        self._note = note
        self._queue: deque[tuple[float, bytes | None]] = deque()
        self._held = 0
        self._wire_free = 0.0
        self._handle: asyncio.Handle | None = None
        self._dark = self._stalled = self._broken = False
        self._source: Source
        self._sink: Sink

    def join(self, source: Source, sink: Sink) -> None:
        """Name the two ends; called once, before any byte."""
        self._source, self._sink = source, sink

    @property
    def held(self) -> int:
        """Bytes that were taken from the source and not yet read by the sink."""
        return self._held

    # What the source does

    @property
    def room(self) -> int:
        """Bytes that it takes now."""
        return max(0, self.shape.capacity - self._held)

    def offer(self, data: bytes | memoryview) -> int:
        """Take as much of `data` as the capacity allows, and return how many bytes that is."""
        room = self.room
        if not room:
            return 0
        piece = bytes(data if len(data) <= room else data[:room])
        self._held += len(piece)
        self._append(piece)
        return len(piece)

    def finish(self) -> None:
        """Send the end of the stream, behind what was taken."""
        self._append(FIN)

    def reset(self) -> None:
        """Send a reset, behind what was taken; a sink that does not read learns of it all the same."""
        self._append(RST)

    # What the sink does

    @property
    def unread(self) -> bool:
        """Whether bytes have arrived that the sink has not taken."""
        return (
            not self._dark and bool(self._queue) and self._queue[0][0] <= self._loop.time() and self._held > 0
        )

    def kick(self) -> None:
        """Look again whether something can be delivered: the sink reads again, or is gone."""
        if self._sink.gone and not self._dark and self._queue and self._queue[0][0] <= self._loop.time():
            self._discard()
        self._schedule()

    # Faults

    def darken(self) -> None:
        """Deliver nothing and say nothing, until `heal`. The bytes wait, as TCP would send them again."""
        self._dark = True
        self._unschedule()

    def heal(self) -> None:
        """Deliver again; what waited arrives one latency from now."""
        if self._dark:
            self._dark = False
            earliest = self._loop.time() + self._rng.uniform(*self.shape.latency)
            self._queue = deque((max(due, earliest), item) for due, item in self._queue)
            self._schedule()

    def stall(self) -> None:
        """Let the sink's program not read, though its kernel does, until `unstall`."""
        self._stalled = True
        self._unschedule()
        self._schedule()

    def unstall(self) -> None:
        """Let the sink read again."""
        self._stalled = False
        self._schedule()

    def sever(self) -> None:
        """Lose what is in flight and all that is still written, for good."""
        self._broken = True
        self._queue.clear()
        self._unschedule()

    # Inside

    def _append(self, item: bytes | None) -> None:
        if self._broken:
            return
        now = self._loop.time()
        due = now + self._rng.uniform(*self.shape.latency)
        if item and self.shape.bandwidth is not None:
            self._wire_free = max(now, self._wire_free) + len(item) / self.shape.bandwidth
            due += self._wire_free - now
        self._queue.append((due, item))
        self._schedule()

    def _schedule(self) -> None:
        if self._handle is not None or self._dark or not self._queue:
            return
        due, item = self._queue[0]
        if not self._sink.gone and (self._stalled or not self._sink.reading):
            due, item = self._queue[-1]
            if item is not RST:
                return
        if due <= self._loop.time():
            self._handle = self._loop.call_soon(self._pump, context=self._sink.context)
        else:
            self._handle = self._loop.call_at(due, self._pump, context=self._sink.context)

    def _unschedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _pump(self) -> None:
        self._handle = None
        if self._dark or not self._queue:
            return
        now = self._loop.time()
        if self._sink.gone:
            self._discard()
        elif self._stalled or not self._sink.reading:
            if self._queue[-1][1] is RST and self._queue[-1][0] <= now:
                self._deliver_reset()
        elif self._queue[0][0] <= now:
            self._deliver(now)
        self._schedule()

    def _deliver(self, now: float) -> None:
        _, item = self._queue[0]
        if item is RST:
            self._deliver_reset()
        elif item == FIN:
            self._queue.popleft()
            self._note("eof", self.sim_serial, 0)
            self._sink.receive_eof()
        else:
            data = self._take(now)
            self._held -= len(data)
            self._note("data", self.sim_serial, len(data))
            self._source.room()
            self._sink.receive(data)

    def _take(self, now: float) -> bytes:
        """Remove and return all bytes that have arrived or, if chance will have it, their first part."""
        queue = self._queue
        pieces: list[bytes] = []
        while queue and queue[0][0] <= now and (item := queue[0][1]):
            pieces.append(item)
            queue.popleft()
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if len(data) > 1 and self._rng.random() < self.shape.split:
            at = self._rng.randrange(1, len(data))
            queue.appendleft((now, data[at:]))
            data = data[:at]
        return data

    def _deliver_reset(self) -> None:
        self._queue.clear()
        self._held = 0
        self._note("reset", self.sim_serial, 0)
        self._sink.receive_reset()

    def _discard(self) -> None:
        """Drop what comes for a sink that is gone; bytes among it are answered with a reset, as in TCP."""
        unwanted = any(item for _, item in self._queue)
        self._queue.clear()
        self._held = 0
        if unwanted:
            self._sink.refuse()
