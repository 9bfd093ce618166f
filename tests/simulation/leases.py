"""Watches of a server's remote turns: no lease ends early or late, and nothing is left of a worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from midstream.server.sessions.offers import RemoteAgents
from midstream.server.sessions.remote import RemoteRun

if TYPE_CHECKING:
    from collections import Counter

    from midstream.protocol.agent_calls import AttachParams, AttachResult
    from midstream.protocol.frames import DetachCode
    from midstream.protocol.model import TurnFailure
    from midstream.server.sessions.attachment import Attachment
    from midstream.server.sessions.commands import WorkerLink
    from tests.simulation.diary import Diary

SLACK = 1.0
"""Seconds by which a turn may outlive its lease: what is due may stand behind other work of its session."""


class WatchedRun(RemoteRun):
    """A remote turn that notes since when it waits for a worker, and for how long it may.

    Attributes:
        met: counts what became of attachments.
        deadline: when it must have failed, if nobody comes.
    """

    diary: Diary
    met: Counter[str]
    deadline: float | None = None
    _since = 0.0

    def wait(self, seconds: float, failure: TurnFailure) -> None:
        """Wait, and note until when."""
        super().wait(seconds, failure)
        self._since = asyncio.get_running_loop().time()
        self.deadline = self._since + seconds

    def lost(self, attachment: Attachment, *, given_up: bool = False) -> None:
        """Lose an attachment; if it held the turn, the turn waits from now on."""
        held = self.attachment is attachment
        self.met["given up" if given_up else "lost"] += held
        super().lost(attachment, given_up=given_up)
        if held and self.is_running() and self.deadline is None:
            self.diary.complain(f"{self.turn_id} lost its worker, and no lease runs")

    def look(self) -> None:
        """Complain where it waits for longer than it may."""
        now = asyncio.get_running_loop().time()
        waits = self.attachment is None and self.is_running()
        if waits and self.deadline is not None and now > self.deadline + SLACK:
            self.diary.complain(f"{self.turn_id} waits since {self._since} for a worker; it is {now}")

    async def attach(self, link: WorkerLink, params: AttachParams) -> AttachResult:
        """Attach, and count what for."""
        before = self.instance
        result = await super().attach(link, params)
        if not before:
            self.met["attached"] += 1
        else:
            self.met["attached again" if before == link.instance else "taken over"] += 1
        return result

    def over(self, code: DetachCode) -> None:
        """End, and count why, where a worker is told."""
        self.met[code] += self.attachment is not None
        super().over(code)

    def _disarm(self) -> None:
        super()._disarm()
        self.deadline = None

    def _give_over(self, failure: TurnFailure) -> None:
        now = asyncio.get_running_loop().time()
        if self.attachment is not None or self.deadline is None or now < self.deadline - 0.001:
            self.diary.complain(f"{self.turn_id} is given over at {now}, its lease ends at {self.deadline}")
        self.met[failure.code] += 1
        super()._give_over(failure)


class WatchedAgents(RemoteAgents):
    """Those who leave turns to workers, and tell what they hold."""

    def look(self) -> None:
        """Complain of turns that wait for too long."""
        for run in self._runs.values():
            if isinstance(run, WatchedRun):
                run.look()

    def left(self) -> list[str]:
        """Say what is held of turns: nothing, when none runs."""
        found = [f"run {turn_id}" for turn_id in self._runs]
        found += [f"timer {key}" for key in self._timers]
        found += [f"free {turn_id}" for turn_id in self._free]
        found += [f"task {task.get_name()}" for task in self._tasks]
        for name, worker in self._workers.items():
            found += [f"{name} holds {turn_id}" for turn_id in worker.held]
            found += [f"{name} was offered {turn_id}" for turn_id in worker.offered]
        return found

    @property
    def workers(self) -> list[str]:
        """The names of the registered workers."""
        return list(self._workers)
