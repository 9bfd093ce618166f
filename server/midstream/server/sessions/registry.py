"""All sessions of a server: loaded on demand, at most once, and let go when idle (SPEC 9)."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from midstream.protocol.errors import InternalError, MidstreamError, NotFound, Unavailable
from midstream.server.sessions.directory import Directory
from midstream.server.sessions.forks import Forks
from midstream.server.sessions.guard import Guard
from midstream.server.sessions.loop import SessionLoop
from midstream.server.storage import store
from midstream.server.storage.errors import CommitFailed, OwnershipLost, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from midstream.server.sessions.access import Action, SessionRef
    from midstream.server.sessions.commands import Caller, Command, Subscriber, Watcher
    from midstream.server.sessions.services import Services

log = structlog.get_logger("midstream.sessions")

_RELOAD_SECONDS = (0.1, 1.0, 5.0, 30.0)
"""Seconds that a session with work waits for its next load, after each failure in a row."""
_WAKE_AT_ONCE = 64
"""Sessions that are loaded at the same time at start."""


class Census(NamedTuple):
    """How many there are of what, at one moment."""

    loaded: int
    turns: int
    """Turns that run."""
    versions: int
    """Published since the server started."""
    mailbox: int
    """Commands that wait, in all mailboxes."""
    longest_mailbox: int
    watchers: int


class Registry:
    """Finds the loop of a session, and makes one where there is none."""

    def __init__(self, services: Services, *, on_ownership_lost: Callable[[], None]) -> None:
        """Serve the sessions of the services' database."""
        self._services = services
        self._on_ownership_lost = on_ownership_lost
        self._loops: dict[str, SessionLoop] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloads: dict[str, asyncio.Task[None]] = {}
        self._channels = 0
        self._stopping = False
        self._directory = Directory(services)
        self._guard = Guard(services, deliver=self._deliver, spawn=partial(self._spawn, name="guard"))
        self._forks = Forks(services, self._loop_of, self._check_source)

    @property
    def loaded(self) -> int:
        """How many sessions are loaded, or being loaded or let go."""
        return len(self._loops)

    def census(self) -> Census:
        """Return what there is at the moment. Looks at each loaded session: about 1 ms for ten thousand."""
        loops = self._loops.values()
        mailboxes = [loop.waiting for loop in loops]
        return Census(
            loaded=len(mailboxes),
            turns=sum(loop.runs_turn for loop in loops),
            versions=self._services.tally.versions + sum(loop.versions for loop in loops),
            mailbox=sum(mailboxes),
            longest_mailbox=max(mailboxes, default=0),
            watchers=self._services.watch.watchers,
        )

    async def start(self) -> None:
        """Remove what earlier runs left to be removed, and load every session that has work."""
        for session_no in await self._services.database.read(store.sessions_to_clean):
            self._services.purge(session_no)
        waiting = await self._services.database.read(store.sessions_to_wake)
        slots = asyncio.Semaphore(_WAKE_AT_ONCE)

        async def wake(session_id: str) -> None:
            async with slots:
                if not await asyncio.shield(self._ready(session_id)):
                    self._reload(session_id)

        await asyncio.gather(*(wake(session_id) for session_id in waiting))

    async def stop(self) -> None:
        """End every running turn as interrupted, and unload everything. Later calls are refused."""
        self._stopping = True
        self._forks.stop()
        await asyncio.gather(*(loop.stop() for loop in list(self._loops.values())))
        for task in list(self._reloads.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._services.watch.tell()  # the ends of turns, while there is still somebody to be told

    # What connections call

    def post(self, session_id: str, command: Command) -> None:
        """Put a call into the session's mailbox; it is answered through its ``reply``.

        Raises:
            Overloaded: the mailbox is full.
            Unavailable: the server stops.

        """
        if self._services.is_open:
            self._deliver(session_id, command)
        else:
            self._guard.post(session_id, command)

    def allows(self, caller: Caller, action: Action, session_id: str) -> bool:
        """Say whether a caller may do something with a session that is loaded."""
        return self._services.is_open or self._guard.allows(caller, action, session_id)

    def may_run(self, caller: Caller, session: SessionRef) -> bool:
        """Say whether a caller may run the turns of a session."""
        return self._services.authorization.authorize(caller.identity, "agent", session)

    def sees_alike(self, one: Caller, other: Caller) -> bool:
        """Say whether two callers may read the same sessions."""
        group = self._services.authorization.group
        return group(one.identity) == group(other.identity)

    def _deliver(self, session_id: str, command: Command) -> None:
        self._loop_of(session_id).post(command)

    async def _check_source(self, caller: Caller, session_id: str) -> None:
        if not self._services.is_open:
            await self._guard.check(caller, "read", session_id)

    def post_global(self, command: Command) -> None:
        """Carry out a call that is to no loaded session: create, list, watch, fork."""
        if command.watcher is not None:
            self._services.watch.join(command.watcher)
        self._spawn(self._answer(command), name=command.method)

    def resync(self, session_id: str, subscriber: Subscriber) -> None:
        """Give a subscriber that is behind the sync that it is owed."""
        loop = self._loops.get(session_id)
        if loop is not None:
            loop.resync(subscriber)

    def leave(self, session_id: str, subscriber: Subscriber) -> None:
        """Forget a subscriber at once."""
        loop = self._loops.get(session_id)
        if loop is not None:
            loop.leave(subscriber)

    def watch(self, watcher: Watcher) -> None:
        """Tell somebody what becomes of sessions; its ``sessions.watch`` has been answered."""
        self._services.watch.begin(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Tell somebody nothing any more."""
        self._services.watch.leave(watcher)

    # Loops

    def _loop_of(self, session_id: str) -> SessionLoop:
        loop = self._loops.get(session_id)
        if loop is None or loop.has_ended:
            if self._stopping:
                raise Unavailable("The server stops. Connect again in a moment.")
            self._channels += 1
            loop = SessionLoop(session_id, channel=self._channels, services=self._services)
            self._loops[session_id] = loop
            self._spawn(self._run(loop), name=f"session {session_id}")
        return loop

    async def _run(self, loop: SessionLoop) -> None:
        try:
            await loop.run()
        except Exception:
            log.exception("session_failed", session_id=loop.session_id)
        finally:
            if self._loops.get(loop.session_id) is loop:
                del self._loops[loop.session_id]
                self._services.owners.unload(loop.session_id)
        if isinstance(loop.failure, OwnershipLost):
            self._on_ownership_lost()
        elif loop.failure is not None:
            await self._look_again(loop)
            if loop.has_work:
                self._reload(loop.session_id)

    async def _look_again(self, loop: SessionLoop) -> None:
        """Tell how a session is whose last commit may have been stored although it failed (SPEC 9)."""
        before = loop.session
        if before is None or not self._services.watch.watchers:
            return
        try:
            # by the writer, so that a removal that it does not see is told after it
            stored = await self._services.database.write(
                partial(store.load_session, session_id=loop.session_id)
            )
        except StorageError as error:
            log.warning("session_not_read", session_id=loop.session_id, error=str(error))
            self._services.watch.cut()
        else:
            self._services.watch.note(before if stored is None else stored.session, removed=stored is None)

    def _reload(self, session_id: str) -> None:
        """Load a session that has work again, until that succeeds: nobody else may ever ask for it."""
        before = self._reloads.pop(session_id, None)
        if before is not None:
            before.cancel()
        if not self._stopping:
            task = self._spawn(self._keep_loading(session_id), name=f"reload {session_id}")
            self._reloads[session_id] = task

    async def _keep_loading(self, session_id: str) -> None:
        for seconds in chain(_RELOAD_SECONDS, repeat(_RELOAD_SECONDS[-1])):
            await asyncio.sleep(seconds)
            if await self._ready(session_id):
                break
        self._reloads.pop(session_id, None)

    async def _ready(self, session_id: str) -> bool:
        """Wait until a session is loaded, or has failed to load; return whether it needs no other try."""

        async def nothing(_: object) -> None:
            pass

        try:
            await self._loop_of(session_id).perform(nothing)
        except NotFound:
            return True
        except MidstreamError as error:
            log.warning("session_not_loaded", session_id=session_id, error=error.message)
            return False
        return True

    async def _answer(self, command: Command) -> None:
        try:
            if command.method == "sessions.fork":
                answer = await self._forks.fork(command)
            else:
                answer = await self._directory.answer(command)
        except MidstreamError as error:
            command.reply(error)
        except StorageError as error:
            command.reply(Unavailable(f"The storage failed, so the call may not have been done: {error}"))
            if isinstance(error, CommitFailed):
                self._services.watch.cut()  # a session may have been made all the same
            if isinstance(error, OwnershipLost):
                self._on_ownership_lost()
        except Exception:
            log.exception("call_failed", method=command.method)
            command.reply(InternalError("The call failed. The server's log has the cause."))
        else:
            command.reply(answer)

    def _spawn(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
