"""Workers of a simulation: programs that run agents, are killed, replaced and started again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from midstream.worker import ConnectionRejected, MidstreamError, Worker, WorkerOptions
from tests.clock import SimClock
from tests.simulation.backend import URL
from tests.simulation.host import Host
from tests.simulation.resuming import WorkerAgent, generation_of

if TYPE_CHECKING:
    from tests.simulation.visitor import Scene

REPLACED: Final = 4506


class Trade(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker is like."""

    name: str
    """The name that it registers; another one may have the same."""
    concurrency: int = 1
    resumes: bool = True
    json: bool = False

    @classmethod
    def drawn(cls, name: str, rng: Random) -> Trade:
        """Draw a worker."""
        return cls(
            name=name,
            concurrency=rng.choice([1, 1, 2, 10]),
            resumes=rng.random() < 0.8,
            json=rng.random() < 0.3,
        )


class Hand:
    """One worker, over all lives of its program.

    Attributes:
        name: the name of its hosts; unlike `trade.name` it is its own.
        host: its present host; none while it does not run.
        worker: what runs, or ran last.
    """

    def __init__(self, scene: Scene, name: str, trade: Trade) -> None:
        self.name = name
        self.trade = trade
        self.host: Host | None = None
        self.worker: Worker | None = None
        self._scene = scene
        self._lives = 0
        self._ending: dict[asyncio.Task[None], None] = {}

    def start(self) -> None:
        """Start the program, if it does not run."""
        if self.host is not None:
            return
        self._lives += 1
        self._scene.diary.note(self.name, f"starts its life {self._lives} as {self.trade}")
        process = f"{self.name}.{self._lives}"
        scene, trade = self._scene, self.trade
        with Host(self.name) as self.host:
            agent = WorkerAgent(
                scene.seed,
                process,
                lambda turn, process: scene.oracle.recall(
                    turn, process, generation_of(turn), resumes=trade.resumes
                ),
                scene.diary.complain,
            )
            self.worker = Worker(
                URL,
                agent,
                name=trade.name,
                concurrency=trade.concurrency,
                resumes=trade.resumes,
                clock=SimClock(scene.loop),
                random=Random(f"{process} {scene.seed}"),
                options=WorkerOptions(encoding="json" if trade.json else "msgpack"),
            )
            scene.loop.create_task(self._run(self.host, self.worker), name=f"worker {process}")

    def crash(self) -> None:
        """Kill the program."""
        if self.host is not None:
            self._scene.diary.note(self.name, "is killed")
            self._scene.loop.kill(self.host)
            self.host = None
            self._ending.clear()

    def drain(self, seconds: float) -> None:
        """Begin to end it in good order, giving its turns so long."""
        if self.host is None or self.worker is None or self._ending:
            return
        self._scene.diary.note(self.name, f"drains for {seconds} s")
        with self.host:
            task = self._scene.loop.create_task(self.worker.drain(seconds), name=f"drain {self.name}")
        self._ending[task] = None

    def unrest(self) -> list[str]:
        """Say what it still has to do."""
        turns = 0 if self.worker is None or self.host is None else self.worker.turns
        return [f"{self.name} has {turns} turns"] if turns else []

    async def _run(self, host: Host, worker: Worker) -> None:
        note = self._scene.diary.note
        try:
            await worker.run()
            note(self.name, "has ended")
        except ConnectionRejected as error:
            note(self.name, f"was sent away: {error.message}")
            if error.details.get("close_code") != REPLACED:
                self._scene.diary.complain(f"worker {self.name} was sent away: {error.message}")
        except MidstreamError as error:
            self._scene.diary.complain(f"worker {self.name} failed: {error!r}, {error.__cause__!r}")
        with suppress(asyncio.CancelledError):
            if self._ending:
                await asyncio.wait(list(self._ending))
        self._ending.clear()
        if worker.turns:
            self._scene.diary.complain(f"worker {self.name} ended, and has {worker.turns} turns")
        if self.host is host:
            self.host = None
