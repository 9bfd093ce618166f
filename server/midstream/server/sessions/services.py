"""What all session loops of a server share."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypedDict

import msgspec
import structlog

from midstream.protocol.limits import Limits
from midstream.server.clock import Clock
from midstream.server.config import Config
from midstream.server.ids import Ids
from midstream.server.inputs import InputPolicy
from midstream.server.sessions.access import Authorization, Everybody
from midstream.server.sessions.owners import Owners
from midstream.server.sessions.pace import Pace
from midstream.server.sessions.shelf import Shelf
from midstream.server.sessions.watch import Watch
from midstream.server.storage import store
from midstream.server.storage.database import Database
from midstream.server.storage.errors import StorageError
from midstream.server.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.protocol.agent_calls import AttachParams, AttachResult
    from midstream.protocol.agents import Write
    from midstream.protocol.frames import DetachCode
    from midstream.protocol.model import Message, Turn
    from midstream.server.sessions.commands import WorkerLink
    from midstream.server.sessions.projection import FinishedDraft
    from midstream.server.sessions.state import LoadedState
    from midstream.server.storage.records import AttachmentRow

log = structlog.get_logger("midstream.storage")


class Holder(TypedDict):
    """Who holds a remote agent's turn."""

    generation: int
    worker: str
    instance: str


class Run(Protocol):
    """One turn's run, as its session sees it. Nothing here awaits but :meth:`attach`."""

    def mark(self) -> AttachmentRow | None:
        """Return how far a remote agent's writes have come; None for an agent in this process."""
        ...

    def stored(self, mark: AttachmentRow) -> None:
        """Learn that the agent's writes are on disk up to a mark."""
        ...

    def committed(self, mark: AttachmentRow | None, finished: FinishedDraft) -> None:
        """Learn what was committed, by whomever, and up to which mark the agent's writes are on disk."""
        ...

    def ending(self) -> None:
        """Learn that the agent is about to end the turn by itself."""
        ...

    def over(self, code: DetachCode) -> None:
        """Stop: the turn has ended (``ended``), or this process does not run it any more (``reload``)."""
        ...

    def watch(self, wrote: Callable[[Write], None]) -> None:
        """Tell somebody of each write of the agent that was carried out."""
        ...

    async def attach(self, link: WorkerLink, params: AttachParams) -> AttachResult:
        """Give the turn to a worker. Raises Refused."""
        ...


class Agents(Protocol):
    """Who runs turns. Each start is of a turn that was committed as running."""

    outlive_server: bool
    """Whether a turn goes on after the server was stopped and started."""

    def start(
        self, state: LoadedState, turn: Turn, prompt: Message | None, kept: AttachmentRow | None
    ) -> Run:
        """Begin to run a turn.

        ``prompt`` is None, and ``kept`` may be there, where an earlier process began it; both only
        where :attr:`outlive_server`.
        """
        ...


_USUAL = Config()
"""What a server is set to where nobody says more: the one place of these numbers."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How session loops behave."""

    limits: Limits = _USUAL.limits
    inputs: InputPolicy = InputPolicy()
    tick_seconds: float = _USUAL.tick_ms / 1000
    """Seconds between two publications of streamed text of one session, at least."""
    tick_limit_seconds: float = _USUAL.tick_limit_ms / 1000
    """What they grow to under load, at most."""
    history_bytes: int = _USUAL.history_bytes
    """Bytes of recent changes that a session keeps to replay."""
    idle_seconds: float = _USUAL.idle_seconds
    """Seconds after which a session that nobody uses is let go."""
    watch_seconds: float = _USUAL.watch_ms / 1000
    """Seconds between two frames to those who watch the list of sessions, at least."""
    mailbox: int = 16_384
    """Commands that may wait for one session, of about 500 bytes each; beyond it they are refused.
    A room of ten thousand comes back at once."""


class Services:
    """The parts of a server that every session's loop works with."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        ids: Ids,
        agents: Agents,
        settings: Settings,
        tally: Tally | None = None,
        authorization: Authorization | None = None,
    ) -> None:
        """Hold them. Without an authorization everybody may do everything."""
        self.is_open = authorization is None
        """Whether there are no rights to weigh."""
        self.authorization = authorization or Everybody()
        self.owners = Owners()
        """Whose sessions are."""
        self.tally = tally or Tally()
        """Where sessions count."""
        self.database = database
        self.clock = clock
        self.ids = ids
        self.agents = agents
        self.settings = settings
        self.pace = Pace(
            tick_seconds=settings.tick_seconds,
            limit_seconds=settings.tick_limit_seconds,
            fan_out=self.tally.fan_out,
        )
        """How long streamed text waits to be joined."""
        self.watch = Watch(clock, self.authorization, self.owners, tick_seconds=settings.watch_seconds)
        """Who is told what becomes of sessions."""
        self.shelf = Shelf()
        """What several readers are given alike."""
        self._purges: set[asyncio.Task[None]] = set()

    def purge(self, session_no: int) -> None:
        """Remove rows that nobody can see any more, batch by batch, in the background."""
        task = asyncio.create_task(self._purge(session_no), name=f"purge {session_no}")
        self._purges.add(task)
        task.add_done_callback(self._purges.discard)

    def traced_load(self, session_id: str) -> AbstractContextManager[object]:
        """Return what a load is to run in."""
        tracing = self.tally.tracing
        return nullcontext() if tracing is None else tracing.load(session_id)

    async def close(self) -> None:
        """End what runs in the background; what is left is purged after the next start."""
        for task in list(self._purges):
            task.cancel()
        await asyncio.gather(*self._purges, return_exceptions=True)

    async def _purge(self, session_no: int) -> None:
        try:
            while await self.database.write(partial(store.purge, session_no=session_no)):
                pass
        except StorageError as error:
            log.warning("purge_postponed", session_no=session_no, error=str(error))
