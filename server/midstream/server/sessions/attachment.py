"""A worker's hold of one turn: its frames are carried out in order, and acknowledged (SPEC 14.5)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import structlog

from midstream.agents.errors import TurnEnded
from midstream.protocol.agents import NOTHING
from midstream.protocol.errors import (
    InternalError,
    InvalidRequest,
    LimitExceeded,
    MidstreamError,
    Unavailable,
)
from midstream.protocol.frames import (
    Ack,
    Append,
    Detached,
    ErrorFrame,
    PartHandle,
    WriteFrame,
    WriteRefused,
    Wrote,
)
from midstream.server.sessions.outcomes import Outcome

if TYPE_CHECKING:
    from msgspec import Struct

    from midstream.protocol.agents import Write
    from midstream.protocol.frames import DetachCode, WorkerFrame
    from midstream.server.sessions.commands import BadWrite, WorkerLink
    from midstream.server.sessions.remote import RemoteRun

log = structlog.get_logger("midstream.agent")
_SLACK = 2
"""Windows of bytes that may wait here: a worker that keeps to its window never gets near."""
_YIELD_EVERY = 64
"""Frames after which others get a turn: text waits for nothing, and tens of thousands of it fit the bound."""


class Attachment:
    """One connection's hold of one turn.

    Text is appended as it comes, unless something before it waits: 4 µs a frame, decoding
    included. Everything else is work of the session's loop. Nothing here blocks the connection's
    reader: what has to wait is queued, within the worker's window.
    """

    def __init__(
        self, run: RemoteRun, link: WorkerLink, *, next_n: int, window_bytes: int, most_handles: int
    ) -> None:
        """Begin to take frames numbered from ``next_n``."""
        self.link = link
        self.channel = link.open(self)
        self._run = run
        self._next = next_n
        self._bound = window_bytes * _SLACK
        self._handles: dict[int, str] = {}
        self._most_handles = most_handles
        self._waiting: deque[tuple[Append | WriteFrame | BadWrite, str | None, int]] = deque()
        """What has to wait: the frame, the part that its handle stood for when it came, and its bytes."""
        self._bytes = 0
        self._busy = False
        self._full = False
        self._over = False
        self._leaving = False
        self._given_up = False
        self._done = next_n - 1
        """The last write that was carried out, and whose outcome was told."""
        self._acked = (-1, -1)
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._serve(), name=f"attachment {run.turn_id}")

    # What the connection calls

    def take(self, frame: WorkerFrame | BadWrite, size: int) -> None:
        """Take a frame of so many bytes."""
        if self._over:
            return
        if isinstance(frame, PartHandle):
            self._name(frame)
            return
        if frame.n != self._next:
            if frame.n > self._next:
                self.detach("gap")
            return  # else it was taken before
        self._next += 1
        self._run.outcomes.took(size)
        # looked up as it comes: a handle may stand for another part by the time that a frame had to wait
        part_id = self._handles.get(frame.handle) if isinstance(frame, Append) else None
        if isinstance(frame, Append) and not (self._busy or self._waiting):
            self._append(frame, part_id)
            self._wake.set()
            return
        self._waiting.append((frame, part_id, size))
        self._bytes += size
        # a single frame may be longer than any window
        if self._bytes > self._bound and len(self._waiting) > 1:
            self.detach("overloaded")
        self._wake.set()

    @property
    def session_id(self) -> str:
        """The session whose turn is held."""
        return self._run.session_id

    def weigh(self) -> None:
        """End it, if the worker may not run the session's turns any more."""
        if not self.link.may_run(self._run.ref):
            self.detach("forbidden")

    def lost(self) -> None:
        """Learn that the connection is gone. What came before is carried out: it may be the turn's end."""
        self._leave(given_up=False)

    def give_up(self) -> None:
        """Learn that the worker gives the turn up to others, after what it has sent."""
        self._leave(given_up=True)

    def _name(self, frame: PartHandle) -> None:
        if frame.handle not in self._handles and len(self._handles) >= self._most_handles:
            error = LimitExceeded("parts", self._most_handles, len(self._handles) + 1)
            self.send(ErrorFrame(None, error.info()))
            self._heed_reader()
        else:
            self._handles[frame.handle] = frame.part_id

    # What the run calls

    def detach(self, code: DetachCode) -> None:
        """End it, and tell the worker what was taken, and why."""
        if self._over:
            return
        if code == "ended":
            self._done = self._run.applied
        self.acknowledge()
        self._end()
        self.send(Detached(self.channel, code))
        self._run.lost(self)

    def send(self, frame: Struct) -> None:
        """Send a frame to the worker."""
        self.link.send(self._run.session_id, frame)

    def acknowledge(self) -> None:
        """Tell the worker what was taken, and what is on disk, if that is more than it knows."""
        state = self._done, min(self._done, self._run.durable)
        if state != self._acked and not self._over:
            self._acked = state
            self.send(Ack(self.channel, *state))

    # Carrying out

    def _leave(self, *, given_up: bool) -> None:
        self.link.forget(self.channel)
        self._given_up = given_up
        self._leaving = True
        self._wake.set()
        if not (self._busy or self._waiting or self._full):
            self._left()

    def _left(self) -> None:
        self._end()
        self._run.lost(self, given_up=self._given_up)

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._waiting.clear()
            self.link.forget(self.channel)
            self._wake.set()

    async def _serve(self) -> None:
        try:
            while not self._over:
                await self._wake.wait()
                self._wake.clear()
                await self._work_off()
                if self._leaving:
                    self._left()
        except (TurnEnded, Unavailable):
            self.detach("ended" if not self._run.is_running() else "reload")
        except Exception:
            log.exception("attachment_failed", turn_id=self._run.turn_id)
            self.detach("reload")

    async def _work_off(self) -> None:
        self._busy = True
        carried_out = 0
        while not self._over:
            if self._full:
                self._full = False
                await self._run.published()
            elif self._waiting:
                frame, part_id, size = self._waiting.popleft()
                self._bytes -= size
                await self._carry_out(frame, part_id)
                carried_out += 1
                if carried_out % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            else:
                break
            self._heed_reader()
        self._busy = False
        self.acknowledge()

    async def _carry_out(self, frame: Append | WriteFrame | BadWrite, part_id: str | None) -> None:
        if isinstance(frame, Append):
            self._append(frame, part_id)
        elif isinstance(frame, WriteFrame):
            await self._write(frame.n, frame.write)
        else:
            self._run.applied = self._done = frame.n
            self._refuse(frame.n, frame.error, kept=False)

    def _append(self, frame: Append, part_id: str | None) -> None:
        self._run.applied = self._done = frame.n
        try:
            if part_id is None:
                raise _no_part(frame.handle)
            self._full = self._run.append(part_id, frame.text) or self._full
        except TurnEnded:
            self.detach("ended")
        except MidstreamError as error:
            self._refuse(frame.n, error, kept=False)

    async def _write(self, n: int, write: Write) -> None:
        try:
            result = await self._run.write(self, n, write)
        except (TurnEnded, Unavailable):
            raise
        except MidstreamError as error:
            self._refuse(n, error)
        except Exception:
            log.exception("write_failed", turn_id=self._run.turn_id)
            self._refuse(n, InternalError("The write failed. The server's log has the cause."))
        else:
            if result != NOTHING:
                self.send(Wrote(self.channel, n, result))
        self._done = n

    def _refuse(self, n: int, error: MidstreamError, *, kept: bool = True) -> None:
        if not kept:
            self._run.outcomes.add(Outcome(n, error=error.info()))
        self.send(WriteRefused(self.channel, n, error.info()))
        self._heed_reader()

    def _heed_reader(self) -> None:
        """End it where the worker does not read what it is told."""
        if self.link.is_behind:
            self.detach("overloaded")


def _no_part(handle: int) -> InvalidRequest:
    return InvalidRequest("handle", f"{handle} stands for no part; send a `part` frame first")
