"""A subscriber that keeps all that it gets, and the replica that a client makes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Change, Delta, SessionFrame, ShortDelta, Skip, Sync, SyncPayload
from midstream.protocol.merge import Replica
from midstream.protocol.outcomes import Gap
from midstream.server.sessions.audience import Audience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from midstream.protocol.calls import Cursor
    from midstream.protocol.values import Value
    from midstream.server.sessions.broadcast import Broadcast


class Closed(NamedTuple):
    """The subscription ended."""

    code: str
    retryable: bool


class Signalled(NamedTuple):
    """Something ephemeral came."""

    sender: str
    name: str
    data: Value


def over_the_wire(frame: SessionFrame) -> SessionFrame:
    """The frame as its reader decodes it."""
    decoded = MSGPACK.decode_server_frame(MSGPACK.encode(frame))
    assert isinstance(decoded, type(frame))
    return decoded


class Recorder:
    """One subscription, which may be behind when a test says so.

    Each frame must follow on the one before: the replica finds a gap wherever the stream has a hole.
    """

    def __init__(self, session_id: str = "s", *, include_internal: bool = False, limit: int = 50) -> None:
        self.include_internal = include_internal
        self.kind = "recorder"
        self.limit = limit
        self.behind = False
        self.cursor: Cursor | None = None
        self.frames: list[SessionFrame] = []
        self.closed: list[Closed] = []
        self.signals: list[Signalled] = []
        self.replica = Replica(session_id, include_internal=include_internal)
        self._arrived = asyncio.Event()

    # What the loop calls

    def audience(self) -> Audience:
        """Each is handed each broadcast."""
        return Audience()

    def publish(self, broadcast: Broadcast) -> None:
        """Take a frame, as a connection that keeps up would."""
        assert not self.closed
        if self.behind:
            return
        for frame in broadcast.frames(include_internal=self.include_internal):
            self._apply(frame)
        self.cursor = broadcast.cursor
        assert self.replica.cursor() is not None
        assert self.cursor.version == self.replica.version

    def bring_up(self, payload: SyncPayload) -> None:
        """Take the sync that was owed, and keep up again."""
        assert self.behind
        self.behind = False
        self.join(payload)

    def signal(self, sender: str, name: str, data: Value) -> None:
        """Keep it."""
        self.signals.append(Signalled(sender, name, data))

    def close(self, code: str, *, retryable: bool) -> None:
        """Keep it."""
        self.closed.append(Closed(code, retryable))
        self._arrived.set()

    # What a test calls

    def join(self, payload: SyncPayload) -> None:
        """Take the sync of a subscribe answer."""
        self._apply(Sync(1, payload))
        self.cursor = self.replica.cursor()

    def reconnected(self) -> Recorder:
        """Another subscription, which begins with what this one has."""
        again = Recorder(self.replica.session_id, include_internal=self.include_internal, limit=self.limit)
        again.replica = self.replica
        return again

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something that came makes the condition true."""
        while not condition():
            self._arrived.clear()
            await self._arrived.wait()

    @property
    def changes(self) -> list[Change]:
        """The changes that came."""
        return [frame for frame in self.frames if isinstance(frame, Change)]

    @property
    def deltas(self) -> list[Delta | ShortDelta]:
        """The deltas that came, in both forms."""
        return [frame for frame in self.frames if isinstance(frame, (Delta, ShortDelta))]

    @property
    def versions(self) -> list[int]:
        """The version of each frame."""
        return [version_of(frame) for frame in self.frames]

    def _apply(self, frame: SessionFrame) -> None:
        frame = over_the_wire(frame)
        self.frames.append(frame)
        self._arrived.set()
        outcome = self.replica.apply(frame)
        assert not isinstance(outcome, Gap), (outcome, frame)


def version_of(frame: SessionFrame) -> int:
    """Where a reader stands after the frame."""
    return frame.payload.version if isinstance(frame, Sync) else frame.version


def first_versions(frames: Iterable[SessionFrame]) -> list[int]:
    """The version below the lowest that each frame covers."""
    return [
        frame.from_version if isinstance(frame, Skip) else version_of(frame) - 1
        for frame in frames
        if not isinstance(frame, Sync)
    ]
