"""What monitors ask over plain HTTP: whether the server lives, whether to send it clients, and its metrics.

Each answers at once, from what is known; none reads a disk or waits for anything.
"""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

import msgspec

from midstream.server.config import is_loopback
from midstream.server.connections.page import Answer, document, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from websockets.http11 import Request

    from midstream.server.tally import Tally

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"
PATHS: Final = frozenset({HEALTH_PATH, READY_PATH, METRICS_PATH})
_PROXY_HEADERS: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
"""What proxies add. One on this machine makes the whole world look like loopback."""


class Health(msgspec.Struct, frozen=True):
    """What ``GET /healthz`` says: 200 while ``ok``, 503 while ``draining``."""

    status: str
    connections: int


class Census(NamedTuple):
    """How many connections there are, and what waits for them, at one moment."""

    states: Mapping[str, int]
    """Connections by their state; ``handshake`` counts sockets on which no WebSocket is open."""
    subscriptions: Mapping[str, int]
    """Subscriptions by their state."""
    outbox_bytes: int
    longest_outbox: int


class Monitor(Protocol):
    """Who knows the rest of the server."""

    tally: Tally

    def unready(self) -> str:
        """Return in a word why no clients should be sent here; empty where they should."""
        ...

    def exposition(self, census: Census) -> Answer:
        """Return the metrics."""
        ...


class Probes:
    """Answers monitors. Metrics are for this machine, and for requests that ``admits`` says yes to."""

    def __init__(
        self,
        health: Callable[[], Health],
        *,
        monitor: Monitor | None = None,
        census: Callable[[], Census] | None = None,
        serves_metrics: bool = True,
        trusts_machine: bool = True,
        admits: Callable[[Request], bool] | None = None,
    ) -> None:
        """Answer from these; without a ``monitor``, of health alone.

        ``trusts_machine`` says whether who connects from this machine is of this machine, and no proxy.
        """
        self._health = health
        self._monitor = monitor
        self._census = census
        self._serves_metrics = serves_metrics
        self._trusts_machine = trusts_machine
        self._admits = admits

    def answer(self, request: Request, path: str, peer: object) -> Answer:
        """Answer a request for one of ``PATHS``; ``peer`` is the socket's other end, as asyncio names it."""
        if request.method not in {"GET", "HEAD"}:
            return refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{path} answers GET and HEAD.\n", ("Allow", "GET, HEAD")
            )
        if path == METRICS_PATH:
            return self._metrics(request, peer)
        health = self._health()
        if path == HEALTH_PATH:
            return document(_status(health.status == "ok"), health)
        word = "draining" if health.status != "ok" else ""
        word = word or (self._monitor.unready() if self._monitor is not None else "")
        return document(_status(not word), {"status": word or "ready"})

    def _metrics(self, request: Request, peer: object) -> Answer:
        if not self._serves_metrics or self._monitor is None or self._census is None:
            return refusal(HTTPStatus.NOT_FOUND, "Metrics are off (the setting metrics).\n")
        is_admitted = self._admits is not None and self._admits(request)
        if not is_admitted and not (self._trusts_machine and is_local(request, peer)):
            return refusal(
                HTTPStatus.FORBIDDEN,
                "Metrics are for this machine: ask from it, by 127.0.0.1 or localhost, through no proxy. "
                "From elsewhere, with Authorization: Bearer and a token of scope admin.\n",
            )
        return self._monitor.exposition(self._census())


def is_local(request: Request, peer: object) -> bool:
    """Say whether a program of this machine asks: not a proxy for others, and not a page of another site."""
    # a pair for IPv4, four for IPv6, a text or nothing where it is no such socket
    address = str(cast("tuple[object, ...]", peer)[0]) if isinstance(peer, tuple) and peer else ""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)  # as a socket for both families names an IPv4 address
    headers = request.headers
    hosts = headers.get_all("Host")
    return (
        (mapped or found).is_loopback
        and not any(headers.get_all(name) for name in (*_PROXY_HEADERS, "Origin"))
        # a stranger's name that was pointed at 127.0.0.1 (DNS rebinding) is no name of this machine
        and all(is_loopback(_name(host)) for host in hosts)
        and len(hosts) == 1
    )


def _name(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _status(good: bool) -> HTTPStatus:  # noqa: FBT001 - it is what the name says
    return HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
