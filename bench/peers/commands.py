"""What every peer in Python does alike: it says where it listens, and obeys lines on its input.

A peer is a server under test. It prints ``ready URL``, then answers each line with a line:

- ``fan COUNT BYTES BATCH``: it publishes COUNT frames of BYTES bytes to all subscribers of room 0, BATCH in
  one turn of the event loop, then lets the loop turn; ``done`` when the kernel has taken everything.
- ``rooms ROOMS COUNT BYTES``: it publishes COUNT frames in each of so many rooms, one for each in a turn.
- ``pace ROOMS RATE COUNT``: it publishes COUNT frames in each room, RATE a second in all, evenly spread. A
  payload is four letters and the time at which it was published (CLOCK_MONOTONIC in ns, 16 hex digits).
- ``cpu``: the seconds of CPU that it used so far.
- ``memory``: the bytes that it has of its own (bench/resident.py); only of peers in Python.

At the end of its input it exits. commands.mjs is the same in JavaScript.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Coroutine
from typing import NoReturn, Protocol

from bench.orders import orders
from bench.resident import resident


class Peer(Protocol):
    """What a library does for it."""

    async def publish(self, room: int, payload: bytes) -> None:
        """Send one binary frame to all subscribers of a room."""

    def buffered(self) -> bool:
        """Whether any connection holds bytes that the kernel has not taken."""
        ...


async def obey(peer: Peer, port: int) -> NoReturn:
    """Obey until the input ends, and exit then, without a word to the subscribers."""
    print(f"ready ws://127.0.0.1:{port}", flush=True)
    async for words in orders():
        print(await _answer(peer, words), flush=True)
    os._exit(0)


async def _answer(peer: Peer, words: list[str]) -> object:
    numbers = [int(word) for word in words[1:]]
    match words[0]:
        case "cpu":
            return time.process_time()
        case "memory":
            return resident()
        case "fan":
            await _fan(peer, *numbers)
        case "rooms":
            await _rooms(peer, *numbers)
        case "pace":
            await _pace(peer, *numbers)
        case _:
            return f"unknown: {' '.join(words)}"
    await asyncio.sleep(0)
    while peer.buffered():  # noqa: ASYNC110 - no library tells when all of its sockets are empty
        await asyncio.sleep(0.001)
    return "done"


async def _fan(peer: Peer, count: int, size: int, batch: int) -> None:
    payload = b"w" * size
    for sent in range(0, count, batch):
        for _ in range(min(batch, count - sent)):
            await peer.publish(0, payload)
        await asyncio.sleep(0)


async def _rooms(peer: Peer, rooms: int, count: int, size: int) -> None:
    payload = b"w" * size
    for _ in range(count):
        for room in range(rooms):
            await peer.publish(room, payload)
        await asyncio.sleep(0)


async def _pace(peer: Peer, rooms: int, rate: int, count: int) -> None:
    """Publish by absolute deadlines: a frame that is late moves none of those after it.

    Timers wake up to a millisecond late, and what is due by then goes out together, as in any server that
    waits for a model: to spin until the exact time would keep the core warm, and hide what it costs to wake.
    """
    start, total, sent = time.monotonic(), rooms * count, 0
    while sent < total:
        due = min(total, int((time.monotonic() - start) * rate) + 1)
        for number in range(sent, due):
            await peer.publish(number % rooms, b"word%016x" % time.monotonic_ns())
        sent = max(sent, due)
        await asyncio.sleep(max(0.0, start + sent / rate - time.monotonic()))


def run(serve: Coroutine[object, object, None]) -> None:
    """Run a peer on asyncio's own loop, or on uvloop where that is the one argument."""
    if sys.argv[1:] == ["uvloop"]:
        import uvloop  # noqa: PLC0415 - only where it is asked for

        uvloop.run(serve)
    else:
        asyncio.run(serve)
