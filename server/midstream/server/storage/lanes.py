"""How jobs get from the event loop to an engine and their outcomes back (SPEC 9).

A `ThreadLane` runs its engines in threads of their own; an `InlineLane` runs its engine in the event loop,
for simulations that must be deterministic. Both give the same promises: jobs are taken in order of arrival;
those that wait together go together, up to `batch`; a future resolves when its whole batch is done.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from midstream.server.storage.batch import Done, Failed, Outcome, Work
from midstream.server.storage.errors import DatabaseClosed


class Engine(Protocol):
    """What a lane needs of an engine."""

    def run(self, jobs: Sequence[Work]) -> list[Outcome]:
        """Do the jobs; one outcome for each, in their order."""
        ...

    def close(self) -> None:
        """Let everything go; must not fail."""
        ...

    def abandon(self) -> None:
        """Let everything go as a crash does."""
        ...


E = TypeVar("E", bound=Engine)


@dataclass(frozen=True, slots=True)
class Job:
    """Work that waits, and where its outcome goes."""

    work: Work
    future: asyncio.Future[object]


class ThreadLane:
    """One queue, and a thread for each engine that was started."""

    def __init__(self, name: str, *, batch: int, closed: str = "database") -> None:
        """Name the threads, bound what goes together, and say what is closed when it is."""
        self._name = name
        self._batch = batch
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Job | None] = SimpleQueue()  # None ends the thread that takes it
        self._ended: list[asyncio.Future[object]] = []
        self._closing = False

    async def start(self, open_engine: Callable[[], E]) -> E:
        """Open an engine in a thread of its own, and give it (for what it tells; its lane runs it).

        What `open_engine` raises is raised here, and a start that is cancelled closes what it opened.
        """
        opened: asyncio.Future[E] = self._loop.create_future()
        ended: asyncio.Future[object] = self._loop.create_future()
        self._ended.append(ended)
        # A daemon, so that a program that forgets to close can end; the file survives that like a crash.
        threading.Thread(
            target=self._serve, args=(open_engine, opened, ended), name=self._name, daemon=True
        ).start()
        try:
            return await opened
        except BaseException:
            await self.close()
            raise

    def submit(self, work: Work) -> asyncio.Future[object]:
        """Hand in a job; raises `DatabaseClosed` after `close`. Cancelling the future stops no job."""
        if self._closing:
            raise DatabaseClosed(self._closed)
        future: asyncio.Future[object] = self._loop.create_future()
        self._queue.put(Job(work, future))
        return future

    async def close(self) -> None:
        """Let the jobs that wait finish, then close the engines; may be called again."""
        if not self._closing:
            self._closing = True
            for _ in self._ended:
                self._queue.put(None)
        if self._ended:
            await asyncio.wait(self._ended)  # unlike gather, does not cancel them when it is cancelled

    def _serve(
        self, open_engine: Callable[[], E], opened: asyncio.Future[E], ended: asyncio.Future[object]
    ) -> None:
        try:
            engine = open_engine()
        except BaseException as error:  # noqa: BLE001 - it is raised where the lane was started
            self._post(partial(_fail, opened, error))
        else:
            self._post(partial(_resolve, opened, engine))
            while self._serve_batch(engine):
                pass
            engine.close()
        finally:
            self._post(partial(_resolve, ended, None))

    def _serve_batch(self, engine: Engine) -> bool:
        """Run what waits; give False when the thread is to end."""
        jobs: list[Job] = []
        item = self._queue.get()
        while item is not None:
            jobs.append(item)
            if len(jobs) == self._batch:
                break
            try:
                item = self._queue.get_nowait()
            except Empty:
                break
        outcomes = _run(engine, jobs)
        return self._post(partial(_deliver, jobs, outcomes)) and item is not None

    def _post(self, callback: Callable[[], None]) -> bool:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:  # the loop is closed: nobody waits any more, and nobody will close this
            return False
        return True


class InlineLane:
    """A queue that a callback of the event loop works off; no threads."""

    def __init__(self, *, batch: int, closed: str = "database") -> None:
        """Bound what goes together, and say what is closed when it is."""
        self._batch = batch
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[Job] = deque()
        self._engine: Engine | None = None

    async def start(self, open_engine: Callable[[], E]) -> E:
        """Open the one engine here and now, and give it; what `open_engine` raises is raised here."""
        engine = open_engine()
        self._engine = engine
        return engine

    def submit(self, work: Work) -> asyncio.Future[object]:
        """Hand in a job; raises `DatabaseClosed` after `close`. Cancelling the future stops no job."""
        if self._engine is None:
            raise DatabaseClosed(self._closed)
        future: asyncio.Future[object] = self._loop.create_future()
        self._jobs.append(Job(work, future))
        if len(self._jobs) == 1:
            self._loop.call_soon(self._serve)
        return future

    async def close(self) -> None:
        """Let the jobs that wait finish, then close the engine; may be called again."""
        while self._jobs:
            self._serve_batch()
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def abandon(self) -> None:
        """Drop the jobs that wait, cancelling their futures, and abandon the engine."""
        for job in self._jobs:
            job.future.cancel()
        self._jobs.clear()
        if self._engine is not None:
            self._engine.abandon()
            self._engine = None

    def _serve(self) -> None:
        if self._jobs:  # else they were done by `close` or dropped by `abandon`
            self._serve_batch()
        if self._jobs:
            self._loop.call_soon(self._serve)

    def _serve_batch(self) -> None:
        jobs = [self._jobs.popleft() for _ in range(min(self._batch, len(self._jobs)))]
        if self._engine is not None:
            _deliver(jobs, _run(self._engine, jobs))


Lane = ThreadLane | InlineLane


def _run(engine: Engine, jobs: Sequence[Job]) -> list[Outcome]:
    if not jobs:
        return []
    try:
        return engine.run([job.work for job in jobs])
    except Exception as error:  # noqa: BLE001 - a fault of the engine must reach the callers, not end its thread
        return [Failed(error) for _ in jobs]


def _deliver(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
    for job, outcome in zip(jobs, outcomes, strict=True):
        match outcome:
            case Done(value):
                _resolve(job.future, value)
            case Failed(error):
                _fail(job.future, error)


T = TypeVar("T")


def _resolve(future: asyncio.Future[T], value: T) -> None:
    if not future.done():  # its caller may have been cancelled
        future.set_result(value)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
