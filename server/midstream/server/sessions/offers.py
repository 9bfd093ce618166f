"""The workers that are there, and the turns that are offered to them (SPEC 14.3)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import structlog

from midstream.protocol.frames import Offer
from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.server.sessions.remote import AGENT_LOST, NO_AGENT, RemoteRun

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from midstream.protocol.model import Message
    from midstream.protocol.model import Turn as TurnEntity
    from midstream.server.sessions.commands import WorkerLink
    from midstream.server.sessions.state import LoadedState
    from midstream.server.storage.records import AttachmentRow

log = structlog.get_logger("midstream.agent")
OFFER_SECONDS = 5.0
"""How long an offer stands before the next worker gets one too: a worker that is well attaches at once."""

_DO = "start one, with: midstream worker URL module:agent"

_TimerKey: TypeAlias = tuple[Literal["offer", "free"], str]
"""What a timer is for, and of which turn."""


class _Worker:
    """A registered worker, and what it has to do."""

    def __init__(self, link: WorkerLink, concurrency: int) -> None:
        self.link = link
        self.concurrency = concurrency
        self.held: set[str] = set()
        self.offered: set[str] = set()
        self.declined: set[str] = set()
        """Turns that it did not want; each for as long as an offer stands."""

    @property
    def room(self) -> int:
        return self.concurrency - len(self.held | self.offered)


class RemoteAgents:
    """Runs every turn by a worker that takes it; a :class:`~midstream.server.sessions.services.Agents`."""

    outlive_server = True

    def __init__(
        self,
        *,
        lease_seconds: float = 30.0,
        offer_seconds: float = 30.0,
        takeover_seconds: float = 5.0,
        window_bytes: int = DEFAULT_LIMITS.agent_window_bytes,
    ) -> None:
        """Wait ``offer_seconds`` for a taker, and ``lease_seconds`` for one that was lost.

        Others may take a lost turn after ``takeover_seconds``.
        """
        self.lease_seconds = lease_seconds
        self.window_bytes = window_bytes
        self._offer_seconds = offer_seconds
        self._takeover_seconds = takeover_seconds
        self._workers: dict[str, _Worker] = {}
        self._runs: dict[str, RemoteRun] = {}
        """Those without an attachment, the longest waiting first."""
        self._timers: dict[_TimerKey, asyncio.TimerHandle] = {}
        self._free: set[str] = set()
        """Lost turns that any worker may take by now."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.offers = {"made": 0, "taken": 0, "declined": 0, "abandoned": 0}
        """What became of offers since the server started."""

    @property
    def worker_count(self) -> int:
        """How many workers are there."""
        return len(self._workers)

    @property
    def slot_count(self) -> int:
        """How many turns they take at a time, in all."""
        return sum(worker.concurrency for worker in self._workers.values())

    @property
    def waiting_count(self) -> int:
        """How many turns no worker holds."""
        return len(self._runs)

    # What sessions call

    def start(
        self, state: LoadedState, turn: TurnEntity, prompt: Message | None, kept: AttachmentRow | None
    ) -> RemoteRun:
        """Begin to offer a turn; or to wait for the worker that had it when the server stopped."""
        run = RemoteRun(self, state, turn.turn_id, prompt, kept)
        if kept is None or kept.generation == 0:
            run.wait(self._offer_seconds, NO_AGENT)
        else:
            run.wait(self.lease_seconds, AGENT_LOST)
        self.offer(run)
        return run

    def offer(self, run: RemoteRun) -> None:
        """Offer a turn that nobody holds, now and until somebody does."""
        self._forget(run)
        self._runs[run.turn_id] = run
        if run.generation and not run.given_up:
            self._later(("free", run.turn_id), self._takeover_seconds, partial(self._release, run.turn_id))
        else:
            self._free.add(run.turn_id)
        if not self._workers:
            log.warning("turn_waits_for_a_worker", session_id=run.session_id, turn_id=run.turn_id, do=_DO)
        self._dispatch()

    def held(self, run: RemoteRun) -> None:
        """Note that a worker holds a turn now."""
        self._forget(run)
        worker = self._workers.get(run.holder)
        self.offers["taken"] += 1
        if worker is not None:
            worker.held.add(run.turn_id)
        self._dispatch()

    def remove(self, run: RemoteRun) -> None:
        """Forget a turn that is over."""
        self._forget(run)
        self._dispatch()

    def may_take(self, run: RemoteRun, link: WorkerLink) -> bool:
        """Say whether a worker may take a turn that another attachment has held."""
        return link.name == run.holder or run.turn_id in self._free

    def fail(self, run: RemoteRun, failing: Coroutine[None, None, None]) -> None:
        """End a turn that nobody took in time."""
        self.offers["abandoned"] += 1
        log.warning("turn_abandoned", session_id=run.session_id, turn_id=run.turn_id)
        task = asyncio.create_task(failing, name=f"fail {run.turn_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What connections call

    def register(self, link: WorkerLink, concurrency: int) -> WorkerLink | None:
        """Take a worker in; return the one that had its name before, which is to be sent away."""
        before = self._workers.get(link.name)
        self._workers[link.name] = _Worker(link, concurrency)
        log.info("worker_registered", worker=link.name, concurrency=concurrency)
        self._dispatch()
        return before.link if before is not None and before.link is not link else None

    def unregister(self, link: WorkerLink) -> None:
        """Offer nothing more to a worker, because it wants so or is gone."""
        worker = self._workers.get(link.name)
        if worker is not None and worker.link is link:
            del self._workers[link.name]
            log.info("worker_unregistered", worker=link.name)
            self._dispatch()

    def decline(self, link: WorkerLink, turn_id: str) -> None:
        """Learn that a worker does not want a turn that it was offered."""
        worker = self._workers.get(link.name)
        if worker is not None and turn_id in worker.offered:
            self.offers["declined"] += 1
            worker.declined.add(turn_id)
            self._next(turn_id)

    async def finished(self, seconds: float | None) -> None:
        """Return at once: workers go on with their turns when the server is back."""

    async def close(self) -> None:
        """End what waits."""
        self._runs.clear()
        for key in list(self._timers):
            self._cancel(key)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Offers

    def _dispatch(self) -> None:
        """Offer every waiting turn that is offered to nobody to the worker with the most room."""
        offered = {turn_id for worker in self._workers.values() for turn_id in worker.offered}
        for run in list(self._runs.values()):
            if run.turn_id not in offered:
                self._offer_to_best(run, passed=set())

    def _offer_to_best(self, run: RemoteRun, passed: set[str]) -> bool:
        """Offer a turn to the worker with the most room, but those passed; return whether there was one.

        Where there was none, workers are asked again after a while: to read more, or to have declined, is
        no event that anybody tells of.
        """
        able = [
            worker
            for name, worker in self._workers.items()
            if name not in passed
            and run.turn_id not in worker.declined
            and worker.room > 0
            and self._wants(worker.link, run)
        ]
        if not able:
            if ("offer", run.turn_id) not in self._timers:
                self._later(("offer", run.turn_id), OFFER_SECONDS, partial(self._ask_again, run.turn_id))
            return False
        worker = max(able, key=lambda one: (one.link.name == run.holder, one.room))
        self.offers["made"] += 1
        worker.offered.add(run.turn_id)
        worker.link.send(run.session_id, Offer(run.session_id, run.turn_id, run.is_begun))
        self._later(("offer", run.turn_id), OFFER_SECONDS, partial(self._next, run.turn_id))
        return True

    def _wants(self, link: WorkerLink, run: RemoteRun) -> bool:
        if link.is_behind or not link.may_run(run.ref):
            return False
        if run.generation == 0:
            return True
        return self.may_take(run, link) and (link.resumes or not run.is_begun)

    def _next(self, turn_id: str) -> None:
        """Let the offer of a turn pass to the next worker; when all were asked, begin anew.

        Who declined is asked again only after a while: it would decline again at once.
        """
        run = self._runs.get(turn_id)
        passed = {name for name, worker in self._workers.items() if turn_id in worker.offered}
        self._withdraw(turn_id)
        if run is not None and not self._offer_to_best(run, passed):
            self._offer_to_best(run, set())

    def _ask_again(self, turn_id: str) -> None:
        """Offer a turn anew that nobody could be offered, also to those who declined it."""
        self._cancel(("offer", turn_id))
        for worker in self._workers.values():
            worker.declined.discard(turn_id)
        run = self._runs.get(turn_id)
        if run is not None:
            self._offer_to_best(run, set())

    def _release(self, turn_id: str) -> None:
        """Let any worker take a lost turn."""
        self._free.add(turn_id)
        self._dispatch()

    def _withdraw(self, turn_id: str) -> None:
        self._cancel(("offer", turn_id))
        for worker in self._workers.values():
            worker.offered.discard(turn_id)

    def _forget(self, run: RemoteRun) -> None:
        self._withdraw(run.turn_id)
        self._cancel(("free", run.turn_id))
        self._runs.pop(run.turn_id, None)
        self._free.discard(run.turn_id)
        for worker in self._workers.values():
            worker.held.discard(run.turn_id)
            worker.declined.discard(run.turn_id)

    def _later(self, key: _TimerKey, seconds: float, callback: Callable[[], None]) -> None:
        self._cancel(key)
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, callback)

    def _cancel(self, key: _TimerKey) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
