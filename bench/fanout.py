"""What does one more reader cost?

``python -m bench.fanout`` lets an agent say tokens, each in a version of its own, to 1, 10, 100 and 1,000
readers of one session, each on its own connection, and counts the CPU that the server process takes. Read the
ratios, not the times. It takes about 30 seconds, and needs 2,100 open files.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from bench.conversation import SESSION, Conversation, conversation
from midstream.protocol.calls import CreateParams, SessionResult, SubscribeParams
from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Hello

READERS: Final = (1, 10, 100, 1_000)
DELIVERIES: Final = 100_000
"""For each number of readers."""
AT_ONCE: Final = 50
"""Connections that are opened at the same time."""


class Sink(asyncio.Protocol):
    """The other end of a socket whose bytes are only counted."""

    def __init__(self) -> None:
        """Start at none."""
        self.bytes = 0

    def data_received(self, data: bytes) -> None:
        """Count."""
        self.bytes += len(data)


async def reader(url: str, slots: asyncio.Semaphore) -> tuple[ClientConnection, Sink]:
    """Connect and subscribe; what comes afterwards is only counted."""
    async with slots:
        connection = await connect(
            url,
            subprotocols=[Subprotocol(MSGPACK.subprotocol)],
            compression=None,
            ping_interval=None,
            open_timeout=None,
            proxy=None,
        )
        await connection.send(MSGPACK.encode(Hello(1, None, {})))
        await connection.send(MSGPACK.call(1, "subscribe", SubscribeParams(session_id=SESSION)))
        for _ in range(2):
            await connection.recv()
        sink = Sink()
        connection.transport.set_protocol(sink)
        return connection, sink


async def measure(talk: Conversation, readers: int) -> tuple[float, float]:
    """Return the seconds of CPU for a version, and the deliveries in a second, at so many readers."""
    slots = asyncio.Semaphore(AT_ONCE)
    opened = await asyncio.gather(*(reader(talk.server.url, slots) for _ in range(readers)))
    versions = DELIVERIES // readers
    cpu, start = await talk.server.cpu(), time.perf_counter()
    await talk.server.tell("say", versions)
    sinks = [sink for _, sink in opened]
    while len({sink.bytes for sink in sinks}) > 1 or not sinks[0].bytes:  # noqa: ASYNC110 - a bench may look
        await asyncio.sleep(0.001)
    elapsed = time.perf_counter() - start
    taken = await talk.server.cpu() - cpu
    for connection, _ in opened:
        connection.transport.abort()
    return taken / versions, DELIVERIES / elapsed


async def main() -> None:
    """Print a line for each number of readers."""
    print(f"{'readers':>8} {'deliveries/s':>13} {'CPU a version':>14} {'to one':>9} {'CPU a delivery':>15}")
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        talk = await stack.enter_async_context(conversation(Path(directory) / "bench.db"))
        async with talk.connected() as first:
            await first.call("sessions.create", CreateParams(session_id=SESSION), SessionResult)
            await talk.prompt(first, "long")
        alone = 0.0
        for readers in READERS:
            version, speed = await measure(talk, readers)
            alone = alone or version
            print(
                f"{readers:>8,} {speed:>13,.0f} {version * 1e6:>11,.0f} µs {version / alone:>8.1f}x"
                f" {version / readers * 1e6:>12.1f} µs"
            )


if __name__ == "__main__":
    asyncio.run(main())
