"""How the programs of a schedule are set up: drawn so that every limit and every path is near at hand.

With the limits of real life a simulation would never fill an outbox, overflow a history or need a chunk.
"""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random
from unittest.mock import patch

import msgspec

from midstream.protocol.limits import Limits
from midstream.server import server
from midstream.server.connections import listener
from midstream.server.sessions import forks, offers, ticks, versions
from midstream.server.sessions.services import Settings
from midstream.server.storage import store
from tests.link import Shape

MINUTES_10 = 600_000


class CrewKnobs(msgspec.Struct, frozen=True, kw_only=True):
    """How a server that leaves its turns to workers is set up."""

    lease_seconds: float = 5.0
    offer_seconds: float = 5.0
    takeover_seconds: float = 1.0
    reoffer_seconds: float = 5.0
    window_bytes: int = 256 * 1024

    @classmethod
    def drawn(cls, rng: Random) -> "CrewKnobs":
        """Draw settings, likewise."""
        return cls(
            lease_seconds=rng.choice([0.5, 3, 10, 30]),
            offer_seconds=rng.choice([0.5, 3, 30]),
            takeover_seconds=rng.choice([0, 0.5, 5]),
            reoffer_seconds=rng.choice([0.2, 1, 5]),
            window_bytes=rng.choice([100, 600, 4_096, 256 * 1024]),
        )


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one schedule, as `midstream.server.Config`, `Limits` and the constants name them."""

    heartbeat_ms: int = 2_000
    tick_ms: int = 10
    idle_seconds: int = 5
    outbox_bytes: int = 64 * 1024
    sync_seconds: int = 10
    drain_seconds: int = 2
    chunk_bytes: int = 1_024
    queue: int = 4
    page_bytes: int = 1024 * 1024
    history_bytes: int = 64 * 1024
    mailbox: int = 4_096
    ceiling_block: int = 64
    waiting_bytes: int = 64 * 1024
    write_buffer_bytes: int = 128 * 1024
    fork_batch: int = 100
    latency: tuple[float, float] = (0.0005, 0.005)
    bandwidth: float | None = None
    capacity: int = 65_536
    split: float = 0.1
    loses_frames: bool = False
    acts: int = 5
    """How many acts a script has at most."""
    crew: CrewKnobs | None = None
    """None: the agent runs in the server."""

    @classmethod
    def drawn(cls, rng: Random) -> "Knobs":
        """Draw settings; each is ordinary or extreme."""
        narrow = rng.random() < 0.3
        return cls(
            # a chunk must pass in less than two heartbeats, since only whole frames are signs of life
            heartbeat_ms=rng.choice([3_000, 15_000] if narrow else [1_000, 3_000, 15_000]),
            tick_ms=rng.choice([0, 10, 10, 100]),
            idle_seconds=rng.choice([0, 1, 60]),
            outbox_bytes=4_096 if narrow else rng.choice([4_096, 1024 * 1024]),
            sync_seconds=60 if narrow else rng.choice([2, 60]),
            drain_seconds=rng.choice([0, 2]),
            chunk_bytes=1_024 if narrow else rng.choice([1_024, 64 * 1024]),
            queue=rng.choice([1, 2, 32]),
            page_bytes=rng.choice([600, 4_000, 1024 * 1024, 1024 * 1024]),
            history_bytes=rng.choice([0, 500, 4_000, 1024 * 1024]),
            mailbox=rng.choice([3, 4_096, 4_096, 4_096]),
            ceiling_block=rng.choice([2, 2, 16, 4_096]),
            waiting_bytes=rng.choice([20, 64 * 1024]),
            write_buffer_bytes=rng.choice([256, 4_096]) if narrow else 128 * 1024,
            fork_batch=rng.choice([1, 2, 100]),
            latency=rng.choice([(0.0, 0.0), (0.0005, 0.005), (0.0, 0.05), (0.02, 0.4)]),
            bandwidth=rng.choice([2_000.0, 20_000.0]) if narrow else None,
            capacity=rng.choice([500, 4_096]) if narrow else 65_536,
            split=rng.choice([0.0, 0.1, 0.5]),
            loses_frames=rng.random() < 0.3,
        )

    @property
    def limits(self) -> Limits:
        """The limits that the server holds its clients to."""
        limits = Limits(chunk_bytes=self.chunk_bytes, queue=self.queue, page_bytes=self.page_bytes)
        if self.crew is not None:
            limits = msgspec.structs.replace(limits, agent_window_bytes=self.crew.window_bytes)
        return limits

    @property
    def shape(self) -> Shape:
        """How the links carry bytes."""
        return Shape(self.latency, self.bandwidth, self.capacity, self.split)

    @contextmanager
    def turned(self) -> Generator[None]:
        """Give constants of the server these values; real ones, only nearer."""
        with ExitStack() as stack:
            for place, name, value in (
                (versions, "CEILING_BLOCK", self.ceiling_block),
                (ticks, "WAITING_BYTES", self.waiting_bytes),
                (listener, "WRITE_BUFFER_BYTES", self.write_buffer_bytes),
                (forks, "_BATCH", self.fork_batch),
                (store, "_PURGE_ROWS", self.fork_batch),
                (server, "Settings", partial(Settings, mailbox=self.mailbox)),
            ):
                stack.enter_context(patch.object(place, name, value))
            if self.crew is not None:
                stack.enter_context(patch.object(offers, "OFFER_SECONDS", self.crew.reoffer_seconds))
            yield


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What one visitor is like."""

    limit: int = 50
    pace_ms: int | None = None
    include_internal: bool = False
    json: bool = False
    skew_ms: int = 0
    """How far the visitor's wall clock is off."""
    max_messages: int = 10_000
    follows: int = 0
    """How many mutations may wait for an application that follows them; 0: there is none."""

    @classmethod
    def drawn(cls, rng: Random) -> "Wish":
        """Draw a visitor: most are ordinary, some have a small window, a pace or a wrong clock."""
        return cls(
            limit=rng.choice([1, 3, 50]),
            pace_ms=rng.choice([None, None, None, 50, 500]),
            include_internal=rng.random() < 0.3,
            json=rng.random() < 0.3,
            skew_ms=rng.choice([0, MINUTES_10, -MINUTES_10]),
            max_messages=rng.choice([5, 10_000, 10_000]),
            follows=rng.choice([0, 2, 10_000]),
        )
