"""A server's metrics as a Prometheus reads them, over its real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from prometheus_client.parser import text_string_to_metric_families

from midstream.server import RunningServer

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass(frozen=True)
class Reply:
    """An answer over plain HTTP."""

    status: int
    headers: dict[str, str]
    body: str


async def get(
    server: RunningServer, path: str, *headers: str, host: str = "localhost", method: str = "GET"
) -> Reply:
    """Ask a server something over plain HTTP."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    writer.write("\r\n".join(lines).encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    first, *rest = head.decode().split("\r\n")
    return Reply(int(first.split()[1]), dict(line.split(": ", 1) for line in rest), body.decode())


class Scrape:
    """What one scrape gave."""

    def __init__(self, text: str) -> None:
        """Read the text form."""
        self.text = text
        self.series: Series = {
            (sample.name, frozenset(sample.labels.items())): float(sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        """Return the value of one series; 0 where it is not there yet."""
        return self.series.get((name, frozenset(labels.items())), 0)

    def since(self, before: Scrape) -> dict[str, float]:
        """Return what was counted since another one, by ``name{labels}`` as Prometheus writes it.

        Of counters and of the counts of histograms, those that changed.
        """
        changed: dict[str, float] = {}
        for (name, labels), value in self.series.items():
            more = value - before.series.get((name, labels), 0)
            if name.startswith("midstream_") and name.endswith(("_total", "_count")) and more:
                shown = ",".join(f"{key}={text}" for key, text in sorted(labels))
                changed[f"{name}{{{shown}}}" if shown else name] = more
        return changed


async def scrape(server: RunningServer) -> Scrape:
    """Read the metrics."""
    reply = await get(server, "/metrics")
    assert reply.status == HTTPStatus.OK, reply.body
    return Scrape(reply.body)


async def until(server: RunningServer, true: Callable[[Scrape], bool]) -> Scrape:
    """Scrape until something is so."""
    async with asyncio.timeout(30):
        while not true(found := await scrape(server)):
            pass
    return found
