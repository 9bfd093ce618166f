"""What a server counts while it works: plain numbers that somebody may look at, and nobody has to.

The hot paths add to them where they are anyway, so nothing here takes a lock, makes a label or calls a
library. Numbers only ever grow; each is written by one thread. :mod:`midstream.server.metrics` gathers them.
"""

from __future__ import annotations

from bisect import bisect_left
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from midstream.protocol.calls import PARAMS
from midstream.protocol.errors import MidstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from midstream.protocol.model import Turn
    from midstream.server.tracing import Tracing

SECONDS: Final = (
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""From what a write to a socket takes to what nobody waits for."""
JOBS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
OTHER: Final = "other"
"""Stands for all values that are in no table: strangers choose some of them, and each would be a series."""
SAMPLE: Final = 8
"""Of so many connections the flushes of one are timed: that is 2 % of a flush."""
_CLOSE_CODES: Final = frozenset({1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011})
_FIRST_OWN: Final = 4000


class Histogram:
    """How many values fell below each bound; ``counts`` has one place more, for those above all.

    To take a value costs about 0.15 µs.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        """Begin empty."""
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """The sum of all values."""

    def add(self, value: float) -> None:
        """Take a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many values were taken."""
        return sum(self.counts)


class StorageTally:
    """What a database counts."""

    __slots__ = ("batch_jobs", "batch_seconds", "commit_seconds", "errors", "read_seconds", "tracing")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.commit_seconds = Histogram()
        """From handing a write in until it is on disk."""
        self.batch_seconds = Histogram()
        """What the disk took for a batch, in the writer's thread."""
        self.batch_jobs = Histogram(JOBS)
        self.read_seconds = Histogram()
        """From handing a read in until its result is there."""
        self.tracing: Tracing | None = None
        """Who makes spans of batches; None for nobody."""
        self.errors = {"commit_failed": 0, "read_failed": 0, "ownership_lost": 0}

    def batch(self, jobs: int, seconds: float) -> None:
        """Note that so many writes were done together."""
        self.batch_jobs.add(jobs)
        self.batch_seconds.add(seconds)
        if self.tracing is not None:
            self.tracing.batch(jobs, seconds)


class Tally:
    """What sessions and connections of one server count."""

    __slots__ = (
        "calls", "closes", "conflations", "deliveries", "fan_out", "flush", "hellos", "http",
        "lag", "loads", "opened", "refusals", "stalls", "sync_bytes", "syncs", "tracing",
        "turns_ended", "versions",
    )  # fmt: skip

    def __init__(self) -> None:
        """Begin with nothing."""
        self.versions = 0
        """Versions that sessions published which are let go by now; the others know theirs."""
        self.deliveries = 0
        """Broadcasts times readers whom they reached: in their socket, or in their outbox."""
        self.fan_out = Histogram()
        """From the moment that texts may be published until every clear reader's socket, and every other's
        outbox, has all that were due together."""
        self.syncs = {"replay": 0, "catchup": 0, "reset": 0}
        self.sync_bytes = {"replay": 0, "catchup": 0, "reset": 0}
        self.conflations = 0
        self.loads = {"loaded": 0, "missing": 0, "failed": 0}
        self.turns_ended = {"completed": 0, "stopped": 0, "failed": 0}
        self.opened = 0
        self.hellos = 0
        self.closes: dict[tuple[str, str], int] = {}
        """By who ended a connection, and the code."""
        self.stalls = 0
        self.http: dict[str, int] = {}
        """Answers to requests that opened no WebSocket, by their status."""
        self.refusals = dict.fromkeys(_codes(), 0)
        self.calls = {method: Histogram() for method in (*PARAMS, OTHER)}
        self.flush = Histogram()
        """From entering an outbox that was empty to being written, on one connection of ``SAMPLE``."""
        self.lag = Histogram()
        self.tracing: Tracing | None = None
        """Who makes spans; None for nobody."""

    def sync(self, mode: str, size: int) -> None:
        """Note a sync of so many bytes."""
        self.syncs[mode] += 1
        self.sync_bytes[mode] += size

    def called(self, method: str, seconds: float) -> None:
        """Note that a call was answered, whatever the answer."""
        (self.calls.get(method) or self.calls[OTHER]).add(seconds)

    def refused(self, code: str) -> None:
        """Note a refusal."""
        known = code if code in self.refusals else OTHER
        self.refusals[known] += 1

    def answered(self, status: HTTPStatus) -> None:
        """Note a plain HTTP answer."""
        _count(self.http, str(status.value))

    def closed(self, by: str, code: int) -> None:
        """Note the end of a connection; a client may choose any code, but not a series for each."""
        own = by == "server" and code >= _FIRST_OWN
        name = str(code) if own or code in _CLOSE_CODES else OTHER
        _count(self.closes, (by, name))

    def turns_changed(self, turns: Iterable[Turn]) -> None:
        """Note what became of turns, where one has ended."""
        for turn in turns:
            if turn.state != "running":
                self.turns_ended[turn.state] += 1


def _count(counts: dict[str, int] | dict[tuple[str, str], int], key: str | tuple[str, str]) -> None:
    counts[key] = counts.get(key, 0) + 1  # type: ignore[index,arg-type]  # the key is of the dictionary's kind


def _codes() -> Iterable[str]:
    kinds = [kind for kind in MidstreamError.__subclasses__() if kind.__module__ == MidstreamError.__module__]
    return sorted({OTHER, MidstreamError.code, *(kind.code for kind in kinds)})
