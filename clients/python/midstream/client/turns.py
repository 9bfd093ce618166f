"""A prompt and the turn that takes it: what is known of them, and the handle that waits for them (SPEC 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias, TypeVar

from msgspec import UNSET

from midstream.client.errors import InputCancelled, MidstreamError
from midstream.client.waiting import Waiters
from midstream.protocol.calls import CancelQueue, PromptParams, PromptResult, StopResult
from midstream.protocol.model import Turn

T = TypeVar("T")

HandleState: TypeAlias = Literal[
    "pending", "queued", "running", "completed", "failed", "stopped", "cancelled", "refused"
]
"""``pending``: not accepted yet (kept here, or on its way). ``queued``: accepted, no turn has it.
``running`` and what follows it: the state of the turn. ``cancelled`` and ``refused``: there will be none."""


class Progress:
    """What this client knows of one prompt. Only grows: nothing older replaces anything newer."""

    def __init__(self, prompt: PromptParams) -> None:
        """Know only that it was asked for."""
        self.prompt = prompt
        self.state: HandleState = "pending"
        self.position: int | None = None
        self.result: PromptResult | None = None
        self.turn_id: str | None = None
        self.turn: Turn | None = None
        self.error: MidstreamError | None = None
        self.asking = False
        """A call is under way to learn more."""
        self.changed = Waiters()

    @property
    def over(self) -> bool:
        """Say whether nothing more will happen."""
        return self.error is not None or self.state not in {"pending", "queued", "running"}

    def learn(self, result: PromptResult) -> None:
        """Take what the server says of the input."""
        self.result = result
        if result.state == "cancelled":
            self.fail(InputCancelled(result.message_id), "cancelled")
        elif result.turn_id is not UNSET:
            self.took(result.turn_id)
        elif self.state == "pending":
            self.state = "queued"
            self.moved(None if result.position is UNSET else result.position)
        self.changed.notify()

    def moved(self, position: int | None) -> None:
        """Take the input's place in the queue, counted from 1."""
        self.position = position

    def took(self, turn_id: str) -> None:
        """Take the turn that the input started, or into which it was absorbed."""
        if self.turn_id is None and not self.over:
            self.turn_id = turn_id
            self.position = None
            self.state = "running"
            self.changed.notify()

    def follow(self, turn: Turn) -> None:
        """Take the turn as it is now; an older copy is ignored."""
        if self.over or (self.turn is not None and turn.revision <= self.turn.revision):
            return
        self.turn = turn
        self.state = turn.state
        self.changed.notify()

    def fail(self, error: MidstreamError, state: Literal["refused", "cancelled"] | None = None) -> None:
        """Learn that there will be no more news, and why; the state stays where none is given."""
        if not self.over:
            self.error = error
            self.state = state or self.state
            self.changed.notify()


class TurnOwner(Protocol):
    """What a handle asks of its session."""

    async def stop(self, turn_id: str = "current", *, cancel_queue: CancelQueue = "own") -> StopResult:
        """Stop a turn."""
        ...

    async def cancel_input(self, message_id: str) -> PromptResult:
        """Take a queued input back."""
        ...

    @property
    def problem(self) -> str | None:
        """What is in the way of the connection."""
        ...


class TurnHandle:
    """A prompt that was given to a session, and the turn that takes it.

    It stays valid over disconnects: what it waits for it learns from the replica, or by asking.
    """

    def __init__(self, progress: Progress, owner: TurnOwner) -> None:
        """Belong to a session."""
        self._progress = progress
        self._owner = owner

    @property
    def message_id(self) -> str:
        """The id of the prompt, and of the user message it becomes."""
        return self._progress.prompt.message_id

    @property
    def state(self) -> HandleState:
        """Where the prompt is now, as far as this client knows."""
        return self._progress.state

    @property
    def position(self) -> int | None:
        """The place in the queue, counted from 1, while it is queued and the place is known."""
        return self._progress.position

    @property
    def turn_id(self) -> str | None:
        """The turn that took the prompt, once one did."""
        return self._progress.turn_id

    @property
    def turn(self) -> Turn | None:
        """That turn, as this client last saw it."""
        return self._progress.turn

    @property
    def error(self) -> MidstreamError | None:
        """Why there is no turn to wait for: refused, cancelled, or the session closed here."""
        return self._progress.error

    async def accepted(self, *, timeout: float | None = None) -> PromptResult:  # noqa: ASYNC109 - as of all here
        """Wait until the server has the prompt on disk, and return what it said.

        Raises:
            TimedOut: not within ``timeout`` seconds. The prompt still waits to be sent.
            MidstreamError: it was refused, or the session closed before it was sent.

        """
        return await self._until("The acceptance of the prompt", self._result, timeout)

    async def started(self, *, timeout: float | None = None) -> str:  # noqa: ASYNC109 - as of all here
        """Wait until a turn has the prompt, and return the turn's id.

        Raises:
            TimedOut: not within ``timeout`` seconds.
            InputCancelled: it was cancelled before.
            MidstreamError: it was refused, or the session closed here.

        """
        return await self._until("The start of the turn", lambda: self._progress.turn_id, timeout)

    async def finished(self, *, timeout: float | None = None) -> Turn:  # noqa: ASYNC109 - as of all here
        """Wait until the turn that has the prompt is over, and return it: completed, failed or stopped.

        Raises:
            TimedOut: not within ``timeout`` seconds.
            InputCancelled: it was cancelled before a turn took it.
            MidstreamError: it was refused, or the session closed here.

        """
        return await self._until("The end of the turn", self._ended, timeout)

    async def stop(self) -> None:
        """Stop the turn that has the prompt; where none has, take the prompt back.

        Raises:
            MidstreamError: the server refused, or the connection was lost.

        """
        if self.turn_id is not None:
            await self._owner.stop(self.turn_id)
        elif not self._progress.over:
            result = await self._owner.cancel_input(self.message_id)
            if result.turn_id is not UNSET:  # a turn took it meanwhile
                await self._owner.stop(result.turn_id)

    def _result(self) -> PromptResult | None:
        return self._progress.result

    def _ended(self) -> Turn | None:
        turn = self._progress.turn
        return None if turn is None or turn.state == "running" else turn

    async def _until(self, what: str, look: Callable[[], T | None], timeout: float | None) -> T:  # noqa: ASYNC109 - as of all here
        def value() -> T | None:
            found = look()
            if found is None and self._progress.error is not None:
                raise self._progress.error
            return found

        return await self._progress.changed.until(
            value, what=what, timeout=timeout, problem=lambda: self._owner.problem
        )
