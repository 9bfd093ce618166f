"""Somebody who uses the server: what he does, and what he is told, goes to the oracle.

A visitor is a program on a host of its own. Everything he does is an errand: a task of that host, which must
come back to him in the end, whatever happens to the network and the server meanwhile.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal

from midstream.client import (
    AlreadyExists,
    ClientClosed,
    ConnectionLost,
    IdempotencyConflict,
    InputCancelled,
    InteractionClosed,
    MidstreamError,
    NotFound,
    OutboxFull,
    Overloaded,
    Refused,
    SessionClosed,
    TimedOut,
    Unavailable,
)
from midstream.protocol.calls import CancelQueue, Delivery, PromptResult, StopResult
from midstream.protocol.model import InteractionPart, InteractionResponse
from tests.simulation.diary import Diary
from tests.simulation.host import Host
from tests.simulation.knobs import Knobs, Wish
from tests.simulation.oracle import Oracle, Prompt
from tests.simulation.simloop import SimLoop
from tests.simulation.witness import WatchedReplica, Witness

EXPECTED: Final = (
    AlreadyExists,
    ClientClosed,
    ConnectionLost,
    IdempotencyConflict,
    InputCancelled,
    InteractionClosed,
    NotFound,
    OutboxFull,
    Overloaded,
    Refused,
    SessionClosed,
    TimedOut,
    Unavailable,
)
"""What a visitor who does nothing wrong may be told."""

Chore = Literal["clear", "archive", "unarchive", "rename", "delete", "signal", "earlier", "verify", "list"]
"""What needs nothing but a session."""


@dataclass(frozen=True)
class Scene:
    """What all visitors of a schedule share."""

    loop: SimLoop
    diary: Diary
    oracle: Oracle
    witness: Witness
    knobs: Knobs
    seed: int


class Visitor(ABC):
    """A program that uses the server.

    Attributes:
        name: its name, and that of its hosts.
        host: its present host; none while it is dead.
        errands: what it has begun and not finished in its present life.
        entered: the sessions that it follows, or tries to.
    """

    def __init__(self, scene: Scene, name: str, wish: Wish) -> None:
        self.name = name
        self.host: Host | None = None
        self.errands: dict[asyncio.Task[None], None] = {}
        self.entered: dict[str, None] = {}
        self.wish = wish
        self._scene = scene
        self._rng = Random(f"{name} {scene.seed}")
        self._prompts = 0
        self._door = asyncio.Lock()

    # Life

    def start(self) -> None:
        """Start the program, if it does not run; it follows what it followed before."""
        if self.host is None:
            self.note("starts")
            self._door = asyncio.Lock()
            with Host(self.name) as self.host:
                self._begin()
            for session_id in list(self.entered):
                self.enter(session_id)

    def crash(self) -> None:
        """Kill the program."""
        if self.host is not None:
            self.note("is killed")
            self._scene.loop.kill(self.host)
            self.host = None
            self.errands.clear()

    def close(self) -> None:
        """Begin to end the program in good order."""
        self._do("closes", self._close())

    def replica(self, session_id: str) -> WatchedReplica | None:
        """Return what it shows of a session, if it has opened it."""
        return self._scene.witness.replicas.get((self.name, session_id))

    @abstractmethod
    def is_live(self, session_id: str) -> bool:
        """Say whether it takes what it shows of a session for equal to the server's."""

    # What it does

    def enter(self, session_id: str) -> None:
        """Follow a session; make it where there is none."""
        self._scene.oracle.session(session_id)
        self.entered[session_id] = None
        self._do(f"enters {session_id}", self._go(session_id))

    def leave(self, session_id: str) -> None:
        """Follow a session no longer."""
        if self.entered.pop(session_id, ...) is None:
            self._do(f"leaves {session_id}", self._go(session_id))

    def switch(self, session_id: str, other: str) -> None:
        """Leave a session for another one, and come back, without a pause."""
        self._scene.oracle.session(other)
        self._do(f"switches {session_id}, {other}, {session_id}", self._switch(session_id, other))

    def prompt(
        self, session_id: str, text: str, delivery: Delivery = "auto", message_id: str | None = None
    ) -> str:
        """Send a prompt, a new one or one that was sent before; return its id."""
        if message_id is None:
            self._prompts += 1
            message_id = f"{self.name}-{self._prompts}"
        if delivery == "interrupt":
            self._scene.oracle.session(session_id).stopped = True
        prompt = self._scene.oracle.sent(session_id, message_id, text)
        self._do(f"sends {message_id} {text!r} ({delivery})", self._send_prompt(prompt, text, delivery))
        return message_id

    def stop(self, session_id: str, turn_id: str, cancel_queue: CancelQueue) -> None:
        """Stop a turn."""
        record = self._scene.oracle.session(session_id)
        record.stopped = True
        record.cancelled |= cancel_queue != "none"
        self._do(f"stops {turn_id} ({cancel_queue})", self._stop_turn(session_id, turn_id, cancel_queue))

    def respond(self, session_id: str, interaction_id: str, response: InteractionResponse) -> None:
        """Answer an interaction."""
        self._do(f"answers {interaction_id}", self._answer(session_id, interaction_id, response))

    def cancel_input(self, session_id: str, message_id: str) -> None:
        """Take queued input back."""
        self._scene.oracle.session(session_id).cancelled = True
        self._do(f"takes {message_id} back", self._take_back(session_id, message_id))

    def fork(self, session_id: str, message_id: str | None, new_id: str) -> None:
        """Copy a session."""
        self._scene.oracle.session(new_id).fork_of = session_id
        self._do(
            f"forks {session_id} at {message_id} to {new_id}", self._fork(session_id, message_id, new_id)
        )

    def chore(self, chore: Chore, session_id: str) -> None:
        """Do something that needs nothing but a session."""
        record = self._scene.oracle.session(session_id)
        if self.host is not None and self._can_ask(session_id):
            record.cleared |= chore == "clear"
            record.deleted |= chore == "delete"
        self._do(f"{chore} {session_id}", self._chore(chore, session_id))

    # Errands

    def note(self, what: str) -> None:
        """Write something into the diary."""
        self._scene.diary.note(self.name, what)

    def _do(self, what: str, errand: Coroutine[Any, Any, None]) -> None:
        if self.host is None:
            errand.close()
            return
        self.note(what)
        with self.host:
            task = self._scene.loop.create_task(self._carry_out(what, errand), name=f"{self.name} {what}")
        self.errands[task] = None
        task.add_done_callback(lambda task: self.errands.pop(task, None))

    async def _carry_out(self, what: str, errand: Coroutine[Any, Any, None]) -> None:
        try:
            await errand
        except EXPECTED as error:
            self.note(f"{what}: {error.code} {error.message}")
        except MidstreamError as error:
            self._scene.diary.complain(f"{self.name} {what}: {error!r}")
        else:
            self.note(f"{what}: done")

    async def _go(self, session_id: str) -> None:
        """Be in a session, or not, as it was last decided; one door at a time."""
        async with self._door:
            if (session_id in self.entered) == self._is_in(session_id):
                return
            if session_id not in self.entered:
                await self._leave(session_id)
                return
            try:
                await self._enter(session_id)
            except NotFound:
                self.entered.pop(session_id, None)  # a copy that is not made yet, or was deleted
                raise

    async def _switch(self, session_id: str, other: str) -> None:
        async with self._door:
            if session_id not in self.entered or other in self.entered or not self._is_in(session_id):
                return
            await self._leave(session_id)
            self.entered[other] = None
            with suppress(NotFound):
                await self._enter(other)
            self.entered.pop(other, None)
            if self._is_in(other):
                await self._leave(other)
            if session_id in self.entered:
                await self._enter(session_id)

    async def _send_prompt(self, prompt: Prompt, text: str, delivery: Delivery) -> None:
        oracle = self._scene.oracle
        try:
            result = await self._prompt(prompt.session_id, prompt.message_id, text, delivery)
        except MidstreamError as error:
            oracle.refused(prompt, error)
            raise
        self.note(f"{prompt.message_id} is {result.state} {result.turn_id or result.position}")
        if result.state != "cancelled":  # a client also says so of what it never sent
            oracle.accepted(prompt, text, result)

    async def _stop_turn(self, session_id: str, turn_id: str, cancel_queue: CancelQueue) -> None:
        result = await self._stop(session_id, turn_id, cancel_queue)
        self._scene.oracle.stopped(result)
        if turn_id != "current" and result.stopped and result.turn_id != turn_id:
            self._scene.diary.complain(f"asked to stop {turn_id}, the server stopped {result.turn_id}")

    async def _answer(self, session_id: str, interaction_id: str, response: InteractionResponse) -> None:
        part = await self._respond(session_id, interaction_id, response)
        if part.status != "resolved" or part.response != response:
            self._scene.diary.complain(f"the answer {response} was taken as {part}")
        self._scene.oracle.answered(session_id, part)

    async def _take_back(self, session_id: str, message_id: str) -> None:
        result = await self._cancel_input(session_id, message_id)
        prompt = self._scene.oracle.prompts.get((session_id, message_id))
        if prompt is not None and result.state != "cancelled":
            self._scene.oracle.ended(prompt, result)

    # What differs from program to program

    def _can_ask(self, session_id: str) -> bool:
        """Say whether a call about a session would be sent now."""
        del session_id
        return True

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    async def _close(self) -> None: ...

    @abstractmethod
    def _is_in(self, session_id: str) -> bool: ...

    @abstractmethod
    async def _enter(self, session_id: str) -> None: ...

    @abstractmethod
    async def _leave(self, session_id: str) -> None: ...

    @abstractmethod
    async def _prompt(
        self, session_id: str, message_id: str, text: str, delivery: Delivery
    ) -> PromptResult: ...

    @abstractmethod
    async def _stop(self, session_id: str, turn_id: str, cancel_queue: CancelQueue) -> StopResult: ...

    @abstractmethod
    async def _respond(
        self, session_id: str, interaction_id: str, response: InteractionResponse
    ) -> InteractionPart: ...

    @abstractmethod
    async def _cancel_input(self, session_id: str, message_id: str) -> PromptResult: ...

    @abstractmethod
    async def _fork(self, session_id: str, message_id: str | None, new_id: str) -> None: ...

    @abstractmethod
    async def _chore(self, chore: Chore, session_id: str) -> None: ...
