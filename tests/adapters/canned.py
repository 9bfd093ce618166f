"""The providers' real clients on canned answers: the same bytes as from the network, without one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

import httpx2


def sse(events: Sequence[object], *, end: str = "data: [DONE]\n\n") -> list[bytes]:
    """The events as server-sent events, each by its type where it has one; ready lines as they are."""
    blocks: list[bytes] = []
    for event in events:
        line = event if isinstance(event, str) else json.dumps(event)
        kind = json.loads(line).get("type")
        name = f"event: {kind}\n" if isinstance(kind, str) else ""
        blocks.append(f"{name}data: {line}\n\n".encode())
    return [*blocks, end.encode()]


class Body(httpx2.AsyncByteStream):
    """A body that comes in pieces, and may break off or never end."""

    def __init__(self, pieces: Sequence[bytes], *, then: BaseException | None = None) -> None:
        self._pieces = pieces
        self._then = then
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the pieces, then break off where that is wanted."""
        for piece in self._pieces:
            yield piece
        if self._then is not None:
            raise self._then

    async def aclose(self) -> None:
        """Close it."""
        self.closed = True


class Provider:
    """Answers each request with the next of the bodies, and keeps what was asked."""

    def __init__(self, *bodies: Body | Sequence[bytes], status: int = 200) -> None:
        self._bodies = list(bodies)
        self._status = status
        self.asked: list[object] = []

    @property
    def client(self) -> httpx2.AsyncClient:
        """An HTTP client that reaches nobody else."""
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(json.loads(request.content))
        body = self._bodies.pop(0)
        stream = body if isinstance(body, Body) else Body(body)
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(self._status, headers=headers, stream=stream)
