"""Frames to all subscribers of a room with aiohttp: ``python -m bench.peers.aiohttp_server [uvloop]``.

As its documentation sends: ``send_bytes`` to each. It has no way to frame once for all, nor to join frames:
each is a send of its own, on asyncio's loop and on uvloop.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from aiohttp import web

from bench.peers.commands import obey, run


class Rooms:
    """All subscribers, each with its transport."""

    def __init__(self) -> None:
        self._rooms: defaultdict[int, dict[web.WebSocketResponse, asyncio.Transport]] = defaultdict(dict)

    async def subscribe(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection until it closes."""
        subscriber = web.WebSocketResponse(compress=False)
        await subscriber.prepare(request)
        room = self._rooms[int(request.query["room"])]
        if request.transport is not None:
            room[subscriber] = request.transport
        try:
            async for _ in subscriber:
                pass
        finally:
            room.pop(subscriber, None)
        return subscriber

    async def publish(self, room: int, payload: bytes) -> None:
        """Send one frame to all subscribers of a room."""
        for subscriber in tuple(self._rooms[room]):
            try:
                await subscriber.send_bytes(payload)
            except ConnectionResetError:  # it has just gone
                continue

    def buffered(self) -> bool:
        """Whether any connection holds bytes that the kernel has not taken."""
        return any(
            transport.get_write_buffer_size() for room in self._rooms.values() for transport in room.values()
        )


async def main() -> None:
    """Serve until the input ends."""
    rooms = Rooms()
    app = web.Application()
    app.router.add_get("/", rooms.subscribe)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    await obey(rooms, runner.addresses[0][1])


if __name__ == "__main__":
    run(main())
