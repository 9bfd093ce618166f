"""The actor that owns one session: one task, one mailbox, one writer (SPEC 8, 9).

Commands come in, in order. Each is decided on a draft; what must last is persisted, then
published; then the caller is answered, so that the answer stands in the stream at the version it
shows. Between commands the loop publishes streamed text, tick by tick.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from logging import DEBUG, ERROR
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from midstream.protocol.errors import InternalError, MidstreamError, NotFound, Overloaded, Unavailable
from midstream.server.sessions.calls import READING, handler
from midstream.server.sessions.commands import Command, Subscriber
from midstream.server.sessions.loading import load
from midstream.server.sessions.state import LoadedState
from midstream.server.storage.errors import CommitFailed, OwnershipLost, ReadFailed, StorageError

if TYPE_CHECKING:
    from midstream.protocol.model import Session
    from midstream.server.sessions.repair import Repair
    from midstream.server.sessions.services import Services

T = TypeVar("T")
log = structlog.get_logger("midstream.session")


class _Work:
    """Something to do inside the loop, between two commands, for somebody who waits for it."""

    def __init__(self, job: Callable[[LoadedState], Awaitable[object]], future: asyncio.Future[Any]) -> None:
        self._job = job
        self._future = future

    async def do(self, state: LoadedState) -> None:
        """Do it; what goes wrong is the caller's to hear, and the loop's only where storage failed."""
        try:
            result = await self._job(state)
        except StorageError as error:
            self.refuse(Unavailable(f"The session's storage failed: {error}"))
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to the caller
            self.refuse(error)
        except BaseException:
            self.refuse(Unavailable("The session ended while this was done."))
            raise
        else:
            if not self._future.done():
                self._future.set_result(result)

    def refuse(self, error: Exception) -> None:
        """Tell the caller that it was not done."""
        if not self._future.done():
            self._future.set_exception(error)


class SessionLoop:
    """One session of one server process, from its load to its unload.

    All methods but :meth:`run` are plain functions for the event loop's thread; none of them blocks.
    """

    __slots__ = (
        "_base", "_current", "_ended", "_is_woken", "_leaving", "_mailbox", "_repair", "_services",
        "_sleep_ends", "_state", "_used_at", "channel", "failure", "has_work", "session_id",
    )  # fmt: skip

    def __init__(self, session_id: str, *, channel: int, services: Services) -> None:
        """Prepare a loop; it loads when it runs. Commands may be posted at once."""
        self.session_id = session_id
        self.channel = channel
        self.failure: BaseException | None = None
        """What broke the loop, if it did not end by itself."""
        self.has_work = False
        """Whether the session had a running turn or queued input when the loop ended."""
        self._services = services
        self._mailbox: deque[Command | _Work] | None = None  # an empty one would take 600 bytes
        self._is_woken = False
        self._sleep_ends: asyncio.Future[None] | None = None
        self._state: LoadedState | None = None
        self._repair: Repair | None = None
        """What is still to be stored before anything changes; until then the session is only read."""
        self._current: Command | _Work | None = None
        self._leaving: dict[Subscriber, None] = {}
        self._used_at = services.clock.now()
        self._ended = False
        self._base = 0

    @property
    def versions(self) -> int:
        """How many versions it published that are not in the server's tally, which gets them at its end."""
        return 0 if self._state is None else self._state.versions.published - self._base

    @property
    def runs_turn(self) -> bool:
        """Whether a turn runs."""
        return self._state is not None and self._state.projection.turn is not None

    @property
    def waiting(self) -> int:
        """How many commands wait in the mailbox."""
        return len(self._mailbox or ())

    @property
    def owner(self) -> str | None:
        """The subject that made the session, if it had a token; known once it is loaded."""
        return self._services.owners.get(self.session_id)

    @property
    def has_ended(self) -> bool:
        """Whether the loop takes nothing more: a new one may load the session."""
        return self._ended

    @property
    def session(self) -> Session | None:
        """The session as it was last seen; None before it was loaded."""
        return None if self._state is None else self._state.projection.session

    # For everybody

    def post(self, command: Command) -> None:
        """Put a command at the end of the mailbox; its ``reply`` is called in its turn.

        Raises:
            Overloaded: the mailbox is full.
            Unavailable: the loop has ended; post to a new one.

        """
        if self._ended:
            raise Unavailable("The session is being reloaded. Send the call again.")
        if self._mailbox is not None and len(self._mailbox) >= self._services.settings.mailbox:
            raise Overloaded("The session has too many calls waiting. Send the call again in a moment.")
        self._put(command)

    def perform(self, work: Callable[[LoadedState], Awaitable[T]]) -> asyncio.Future[T]:
        """Do something inside the loop, in the order of the mailbox, and give its result.

        Raises, through the future:
            Unavailable: the loop ended before, or while, it was done.

        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        work_item = _Work(work, future)
        if self._ended:
            work_item.refuse(Unavailable("The session's loop has ended."))
        else:
            self._put(work_item)
        return future

    def resync(self, subscriber: Subscriber) -> None:
        """Give a subscriber the sync that it is owed, when its turn comes."""
        self.perform(partial(_bring_up, subscriber)).add_done_callback(_ignore)

    def leave(self, subscriber: Subscriber) -> None:
        """Forget a subscriber at once, also one whose ``subscribe`` is still to come."""
        if self._state is not None:
            self._state.stream.remove(subscriber)
        if any(_is_subscribe(item, subscriber) for item in self._waiting()):
            self._leaving[subscriber] = None
        self.nudge()

    def nudge(self) -> None:
        """Wake the loop: something is due."""
        self._is_woken = True
        if self._sleep_ends is not None and not self._sleep_ends.done():
            self._sleep_ends.set_result(None)

    def has_left(self, subscriber: Subscriber) -> bool:
        """Say, once, whether a subscriber left before its ``subscribe`` was done."""
        left = subscriber in self._leaving
        self._leaving.pop(subscriber, None)
        return left

    # The task

    async def run(self) -> None:
        """Load, serve until there is nothing to do, and unload. Returns when the loop has ended."""
        structlog.contextvars.bind_contextvars(session_id=self.session_id)
        try:
            with self._services.traced_load(self.session_id):
                self._state, self._repair = await load(self, self._services)
            self._services.tally.loads["missing" if self._state is None else "loaded"] += 1
            if self._state is None:
                self._end(NotFound("session", self.session_id))
                return
            self._base = self._state.versions.published
            await self._serve(self._state)
            self._end(Unavailable("The session was let go. Send the call again."))
        except StorageError as error:
            # of a disk that fails the storage itself tells, once and not for every session
            is_told = isinstance(error, (CommitFailed, ReadFailed))
            log.log(DEBUG if is_told else ERROR, "session_storage_failed", error=str(error))
            self._break(error)
        except BaseException as error:
            self._break(error)
            raise

    async def stop(self) -> None:
        """End the running turn as interrupted, unload and end the loop, because the server stops."""
        with contextlib.suppress(MidstreamError):
            await self.perform(self._close)

    async def _close(self, state: LoadedState) -> None:
        if self._repair is None:
            await state.close()
        else:
            state.closed = True  # as after a crash: the next start repairs it

    async def _serve(self, state: LoadedState) -> None:
        while not state.closed:
            self._is_woken = False
            # before each item: what is due must not wait until nobody wants anything any more
            if self._repair is not None and await self._repair.in_time():
                self._repair = None
            if self._repair is None:
                await state.on_time()
            if self._mailbox:
                await self._do_next(state, self._mailbox)
            elif state.is_idle(self._used_at):
                await state.unload()
                if not self._mailbox:
                    return
            else:
                await self._sleep(state)

    async def _sleep(self, state: LoadedState) -> None:
        if self._is_woken:
            return
        self._mailbox = None
        state.busy = False
        loop = asyncio.get_running_loop()
        repair = self._repair
        seconds = state.seconds_to_deadline(self._used_at) if repair is None else repair.seconds()
        timer = None if seconds is None else loop.call_later(seconds, self.nudge)
        self._sleep_ends = loop.create_future()
        try:
            await self._sleep_ends
        finally:
            self._sleep_ends = None
            if timer is not None:
                timer.cancel()
            state.busy = True

    async def _do_next(self, state: LoadedState, mailbox: deque[Command | _Work]) -> None:
        item = self._current = mailbox.popleft()
        self._used_at = self._services.clock.now()
        try:
            if isinstance(item, Command):
                await self._answer(state, item)
            else:
                await item.do(state)
        finally:
            self._current = None
            if isinstance(item, Command) and item.subscriber is not None:
                self._leaving.pop(item.subscriber, None)
        if state.is_torn:
            message = "a change was stored and could not be published"
            raise RuntimeError(message)

    async def _answer(self, state: LoadedState, command: Command) -> None:
        try:
            carry_out = handler(command.method)
            if self._repair is not None and command.method not in READING:
                await self._repair.now()
                self._repair = None
            answer = await carry_out(state, command)
            subscriber = command.subscriber
            if subscriber is not None and command.method != "subscribe":
                await state.bring_up(subscriber)
                if state.is_behind(subscriber):
                    # only a call that changed nothing gets here: the sync of one that did always enters
                    raise Overloaded("The connection takes no more now. Send the call again in a moment.")  # noqa: TRY301
        except MidstreamError as error:
            command.reply(error)
        except StorageError as error:
            command.reply(
                Unavailable(f"The session's storage failed, so the call may not have been done: {error}")
            )
            is_owed = self._repair is not None and isinstance(error, CommitFailed)
            if isinstance(error, (CommitFailed, OwnershipLost)) and not is_owed:
                raise
        except Exception:
            log.exception("call_failed", method=command.method)
            command.reply(InternalError("The call failed. The server's log has the cause."))
        except BaseException:
            command.reply(Unavailable("The session ended while this call was carried out. Send it again."))
            raise
        else:
            command.reply(answer)

    # The end

    def _break(self, error: BaseException) -> None:
        """End the epoch: what is in memory can no longer be trusted (SPEC 9)."""
        self.failure = error
        if self._state is None:
            self._services.tally.loads["failed"] += 1
        else:
            self.has_work = self._state.has_work()
            self._state.cut_off("reload")
            self._state.stream.close("reload", retryable=True)
        self._end(Unavailable("The session failed, so the call was not done. Send it again later."))

    def _end(self, error: MidstreamError) -> None:
        self._services.tally.versions += self.versions
        if self._state is not None:
            self._base = self._state.versions.published
        self._ended = True
        waiting, self._mailbox = self._mailbox or (), None
        for item in waiting:
            if isinstance(item, Command):
                item.reply(error)
            else:
                item.refuse(error)

    def _waiting(self) -> list[Command | _Work]:
        return [*([self._current] if self._current else []), *(self._mailbox or ())]

    def _put(self, item: Command | _Work) -> None:
        if self._mailbox is None:
            self._mailbox = deque()
        self._mailbox.append(item)
        self.nudge()


async def _bring_up(subscriber: Subscriber, state: LoadedState) -> None:
    """Give a subscriber the sync that it is owed, with all the text that waits."""
    await state.flush()
    try:
        await state.bring_up(subscriber)
    except ReadFailed as error:
        # to the session nothing happened: only this one reader is to ask anew
        log.warning("sync_not_read", error=str(error))
        state.stream.remove(subscriber)
        subscriber.close("reload", retryable=True)


def _is_subscribe(item: Command | _Work, subscriber: Subscriber) -> bool:
    return isinstance(item, Command) and item.method == "subscribe" and item.subscriber is subscriber


def _ignore(future: asyncio.Future[None]) -> None:
    """Take note of a failure that the loop has dealt with, so that nobody is told that nobody looked."""
    if not future.cancelled():
        future.exception()
