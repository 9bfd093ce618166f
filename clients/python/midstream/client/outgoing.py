"""The messages that wait to be written, in the order in which they may go (SPEC 3).

Pure. A frame that goes in chunks holds up the later frames of its own session only; pings and
other sessions pass between its chunks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class Outgoing:
    """What waits: first what is urgent, then one message of each lane in turn.

    Bounded by its caller: a client has a limited number of calls in flight, and of frames of a
    limited size.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self._urgent: deque[bytes] = deque()
        self._lanes: dict[str | None, deque[Iterator[bytes]]] = {}

    def urgent(self, message: bytes) -> None:
        """Let a message go before all others."""
        self._urgent.append(message)

    def add(self, lane: str | None, messages: Iterator[bytes]) -> None:
        """Let the messages of one frame go after all earlier frames of their lane, the session's id."""
        self._lanes.setdefault(lane, deque()).append(messages)

    def take(self) -> bytes | None:
        """Return the message to be written now, or None."""
        if self._urgent:
            return self._urgent.popleft()
        while self._lanes:
            lane, frames = next(iter(self._lanes.items()))
            message = next(frames[0], None)
            # the lane goes to the end of the line, or away when it is empty
            del self._lanes[lane]
            if message is None:
                frames.popleft()
            if frames:
                self._lanes[lane] = frames
            if message is not None:
                return message
        return None
