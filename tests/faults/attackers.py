"""Ill-willed connections, from one process.

`python -m tests.faults.attackers HOST PORT NUMBER SECONDS [KIND...]`: each of so many slots opens a
connection of its kind, and another one when the server has ended that, up to a bound. At the end it
prints one line of JSON: how many were opened, and how many the server ended.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from struct import pack

import msgspec

OPENINGS = 4
"""How often a slot opens a connection, at most."""
AGAIN_SECONDS = 3.0
"""How long a slot whose connection was ended waits before the next one."""
RAMP_SECONDS = 10.0
"""How long it takes until all slots have begun."""

HELLO: tuple[object, ...] = ("hello", 1, None, {"client": "attacker"})
Attack = Callable[["Victim"], Awaitable[None]]


class Victim:
    """A raw connection to the server."""

    def __init__(self, sock: socket.socket, host: str) -> None:
        """Use a connected socket."""
        self._sock = sock
        self._host = host
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        """Send raw bytes."""
        await self._loop.sock_sendall(self._sock, data)

    async def upgrade(self) -> None:
        """Open a WebSocket as anybody does."""
        key = base64.b64encode(os.urandom(16)).decode()
        await self.send(
            f"GET / HTTP/1.1\r\nHost: {self._host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: midstream.v1.msgpack\r\n\r\n".encode()
        )
        await self._loop.sock_recv(self._sock, 4096)

    async def message(self, payload: bytes) -> None:
        """Send a masked binary message."""
        await self.send(header(len(payload)) + payload)

    async def frame(self, frame: object) -> None:
        """Send a frame of the protocol."""
        await self.message(msgspec.msgpack.encode(frame))

    async def until_ended(self) -> None:
        """Read, and throw away, until the server ends it."""
        with suppress(OSError):
            while await self._loop.sock_recv(self._sock, 65_536):
                pass


def header(length: int) -> bytes:
    """Return the header of a binary message that is masked with zeros."""
    if length < 126:
        return pack("!BBI", 0x82, 0x80 | length, 0)
    if length < 1 << 16:
        return pack("!BBHI", 0x82, 0xFE, length, 0)
    return pack("!BBQI", 0x82, 0xFF, length, 0)


async def half_handshake(victim: Victim) -> None:
    """Begin an HTTP request, and go on with one header a second."""
    await victim.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    for number in range(60):
        await asyncio.sleep(1)
        await victim.send(f"X-{number}: {'a' * 500}\r\n".encode())


async def long_headers(victim: Victim) -> None:
    """Send a megabyte of headers, as fast as it goes."""
    await victim.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    for number in range(120):
        await victim.send(f"X-{number}: {'a' * 8_000}\r\n".encode())
    await victim.until_ended()


async def silence(victim: Victim) -> None:
    """Open a WebSocket, and say nothing."""
    await victim.upgrade()
    await victim.until_ended()


async def garbage(victim: Victim) -> None:
    """Send noise: instead of HTTP, or behind the handshake."""
    if os.urandom(1)[0] & 1:
        await victim.upgrade()
    for _ in range(64):
        await victim.send(os.urandom(8_192))


async def long_hello(victim: Victim) -> None:
    """Send a megabyte before ``hello``, as fast as it goes."""
    await victim.upgrade()
    await victim.send(header(1 << 20))
    for _ in range(16):
        await victim.send(bytes(65_536))
    await victim.until_ended()


async def deep_nesting(victim: Victim) -> None:
    """Send arrays in arrays, as a ``hello`` and, behind a good one, as a call."""
    await victim.upgrade()
    if os.urandom(1)[0] & 1:
        await victim.frame(HELLO)
        for _ in range(50):
            await victim.message(
                msgspec.msgpack.encode(["call", 1, "prompt"])[:-1] + b"\x91" * 60_000 + b"\xc0"
            )
            await asyncio.sleep(0.1)
    await victim.message(b"\x91" * 8_000 + b"\xc0")
    await victim.until_ended()


async def never_reading(victim: Victim) -> None:
    """Subscribe to what streams, ask for pages, and read nothing."""
    await victim.upgrade()
    await victim.frame(HELLO)
    await victim.frame(["call", 1, "subscribe", {"session_id": "busy", "limit": 50}])
    for number in range(2, 200):
        await victim.frame(["call", number, "messages", {"session_id": "busy", "limit": 200}])
        await asyncio.sleep(0.25)


ATTACKS: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (half_handshake, long_headers, silence, garbage, long_hello, deep_nesting, never_reading)
}


async def slot(name: str, delay: float, address: tuple[str, int], seen: Counter[str]) -> None:
    """Attack again and again, a bounded number of times."""
    await asyncio.sleep(delay)
    for _ in range(OPENINGS):
        with socket.socket() as sock:
            sock.setblocking(False)  # noqa: FBT003 - of the standard library
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            try:
                await asyncio.get_running_loop().sock_connect(sock, address)
                seen[f"{name} opened"] += 1
                await ATTACKS[name](Victim(sock, f"{address[0]}:{address[1]}"))
            except OSError:
                seen[f"{name} ended"] += 1
        await asyncio.sleep(AGAIN_SECONDS)


async def main(host: str, port: int, count: int, seconds: float, names: list[str]) -> None:
    """Attack for so many seconds."""
    seen: Counter[str] = Counter()
    slots = [
        asyncio.create_task(
            slot(names[number % len(names)], RAMP_SECONDS * number / count, (host, port), seen)
        )
        for number in range(count)
    ]
    await asyncio.sleep(seconds)
    for task in slots:
        task.cancel()
    await asyncio.gather(*slots, return_exceptions=True)
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    os.nice(10)  # the attackers' own work is not to take the honest clients' time
    asyncio.run(
        main(
            sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5:] or list(ATTACKS)
        )
    )
