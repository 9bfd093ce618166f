"""Frames to all of a room with ``websockets``: ``python -m bench.peers.websockets_server [uvloop]``.

As its documentation broadcasts: one ``broadcast`` to the set of connections. It frames anew for each, and has
no way to join frames: each is a send of its own, on asyncio's loop and on uvloop.
"""

from __future__ import annotations

from collections import defaultdict
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, broadcast, serve

from bench.peers.commands import obey, run


class Rooms:
    """All subscribers."""

    def __init__(self) -> None:
        self._rooms: defaultdict[int, set[ServerConnection]] = defaultdict(set)

    async def subscribe(self, subscriber: ServerConnection) -> None:
        """Serve one connection until it closes."""
        if subscriber.request is None:
            return
        query = parse_qs(urlsplit(subscriber.request.path).query)
        room = self._rooms[int(query["room"][0])]
        room.add(subscriber)
        try:
            await subscriber.wait_closed()
        finally:
            room.remove(subscriber)

    async def publish(self, room: int, payload: bytes) -> None:
        """Send one frame to all subscribers of a room."""
        broadcast(self._rooms[room], payload)

    def buffered(self) -> bool:
        """Whether any connection holds bytes that the kernel has not taken."""
        return any(
            subscriber.transport.get_write_buffer_size()
            for room in self._rooms.values()
            for subscriber in room
        )


async def main() -> None:
    """Serve until the input ends."""
    rooms = Rooms()
    async with serve(
        rooms.subscribe,
        "127.0.0.1",
        0,
        compression=None,
        ping_interval=None,  # the others send none by default
        backlog=4096,
    ) as server:
        await obey(rooms, next(iter(server.sockets)).getsockname()[1])


if __name__ == "__main__":
    run(main())
