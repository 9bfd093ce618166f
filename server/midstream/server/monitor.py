"""What a running server tells those who monitor it: readiness, metrics, and the lag of its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, cast

from midstream.server.connections.page import Answer, refusal
from midstream.server.metrics import METRICS, Metric, Read, View, Workers
from midstream.server.readiness import Readiness
from midstream.server.tally import Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

    from midstream.server.clock import Clock
    from midstream.server.connections.probes import Census
    from midstream.server.sessions.offers import RemoteAgents
    from midstream.server.sessions.registry import Registry
    from midstream.server.storage.database import Database
    from midstream.server.tally import Tally

LAG_SECONDS: Final = 0.25
"""Between two looks at how late the event loop is: often enough to see a pause of a second whole."""
_INSTALL: Final = "Metrics need a package: pip install 'midstream[metrics]', and start the server anew.\n"


class Monitor:
    """Gathers what there is to say of one server."""

    def __init__(
        self,
        tally: Tally,
        database: Database,
        registry: Registry,
        remote: RemoteAgents | None,
        clock: Clock,
    ) -> None:
        """Look at the parts of a server."""
        self.tally = tally
        self._database = database
        self._registry = registry
        self._remote = remote
        self._readiness = Readiness(database, clock)
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._census: Census | None = None
        self._prometheus: CollectorRegistry | None = None

    def start(self) -> None:
        """Begin to look at how late the event loop is."""
        self._timer = self._loop.call_later(LAG_SECONDS, self._look, self._loop.time() + LAG_SECONDS)

    async def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        await self._readiness.close()

    def unready(self) -> str:
        """Return in a word why no clients should be sent here; empty where they should."""
        return self._readiness.asked()

    def exposition(self, census: Census) -> Answer:
        """Return the metrics in Prometheus's text form, or say what is missing."""
        try:
            from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest  # noqa: PLC0415 - an extra
        except ImportError:
            return refusal(HTTPStatus.NOT_IMPLEMENTED, _INSTALL)
        if self._prometheus is None:
            self._prometheus = self._registered()
        self._census = census
        headers = (("Content-Type", CONTENT_TYPE_PLAIN_0_0_4), ("Cache-Control", "no-store"))
        return Answer(HTTPStatus.OK, headers, generate_latest(self._prometheus))

    def collect(self) -> Iterator[Family]:
        """Give every metric as prometheus-client's registry wants it."""
        if self._census is None:
            return
        view = self._view(self._census)
        for metric in METRICS:
            value = metric.read(view)
            if value is not None:
                yield _family(metric, value)

    def _registered(self) -> CollectorRegistry:
        from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector  # noqa: PLC0415 - an extra

        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        return registry

    def _view(self, census: Census) -> View:
        remote = self._remote
        return View(
            tally=self.tally,
            storage=self._database.tally,
            connections=census,
            sessions=self._registry.census(),
            workers=None
            if remote is None
            else Workers(remote.worker_count, remote.slot_count, remote.waiting_count, remote.offers),
            ready=not self._readiness.word(),
            version=_version(),
            file_bytes=dict(self._file_sizes()),
        )

    def _file_sizes(self) -> Iterator[tuple[str, int]]:
        path = self._database.path
        for name, file in (("database", path), ("wal", path.with_name(f"{path.name}-wal"))):
            try:
                yield name, file.stat().st_size
            except OSError:  # it is not there, or the disk fails: readiness says that
                continue

    def _look(self, due: float) -> None:
        now = self._loop.time()
        self.tally.lag.add(max(0.0, now - due))
        self._timer = self._loop.call_later(LAG_SECONDS, self._look, now + LAG_SECONDS)


def _family(metric: Metric, value: Read) -> Family:
    from prometheus_client import core  # noqa: PLC0415 - an extra

    if metric.kind == "histogram":
        histograms = core.HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, one in _labelled(value):
            if isinstance(one, Histogram):
                histograms.add_metric(labels, _buckets(one), one.total)
        return histograms
    kind = core.CounterMetricFamily if metric.kind == "counter" else core.GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, one in _labelled(value):
        if not isinstance(one, Histogram):
            family.add_metric(labels, one)
    return family


def _labelled(value: Read) -> list[tuple[tuple[str, ...], float | Histogram]]:
    """Return every value with those of its labels."""
    if not isinstance(value, Mapping):
        return [((), value)]
    items = cast("Mapping[str | tuple[str, str], float | Histogram]", value)
    return [(key if isinstance(key, tuple) else (key,), one) for key, one in items.items()]


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Return how many values are at or below each bound."""
    buckets: list[tuple[str, float]] = []
    count = 0
    for bound, more in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        count += more
        buckets.append((bound, count))
    return buckets


def _version() -> str:
    try:
        return version("midstream")
    except PackageNotFoundError:  # run from the source tree
        return "unknown"
