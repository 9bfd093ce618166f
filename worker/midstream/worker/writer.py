"""Where the writes of a remote turn go: through its attachment to the server (SPEC 14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from midstream.agents.errors import TurnEnded
from midstream.agents.resumption import Resumption
from midstream.protocol.agents import NOTHING, Ask, Context, Write, WriteResult, is_stored
from midstream.protocol.errors import MidstreamError
from midstream.protocol.model import InteractionPart
from midstream.worker.attachment import Attachment, Event, Heard, Settled

YIELD_EVERY = 64
"""Writes after which a producer lets others run, though nothing makes it wait."""

K = TypeVar("K", int, str)
T = TypeVar("T")


class Way(Protocol):
    """The connection, as a writer needs it."""

    def wrote(self) -> None:
        """Learn that there may be frames to send; they go out soon, together."""
        ...

    async def context(self, session_id: str, limit: int | None) -> Context:
        """Return the session's last summary and the messages behind it, whole."""
        ...


class RemoteWriter:
    """The :class:`~midstream.agents.writer.Writer` of a turn that a worker runs.

    A write that is stored returns when the server has it on disk. Any other returns when it is on its
    way; where the server refuses it, what is written next raises why, at the latest the next write that
    is stored. Every method waits while more is on its way than the window, or the connection is gone
    and as much waits for it.
    """

    def __init__(self, attachment: Attachment, way: Way, new_id: Callable[[str], str]) -> None:
        """Write through an attachment; ``resumption`` is set once it is known what there was."""
        self.session_id = attachment.session_id
        self.turn_id = attachment.turn_id
        self.resumption: Resumption | None = None
        self._attachment = attachment
        self._way = way
        self._new_id = new_id
        self._ended = False
        self._answers: dict[int, asyncio.Future[WriteResult]] = {}
        self._outcomes: dict[str, asyncio.Future[InteractionPart]] = {}
        self._room: dict[asyncio.Future[None], None] = {}
        self._calls = 0

    def new_id(self, kind: str) -> str:
        """Return an id that nothing else has."""
        return self._new_id(kind)

    def is_running(self) -> bool:
        """Say whether the turn still runs, as far as is known here, and this worker runs it."""
        return not self._ended

    async def write(self, write: Write) -> WriteResult:
        """Make a write, and return when it is done; see the class."""
        await self._may_write()
        n = self._attachment.write(write)
        self._way.wrote()
        if not is_stored(write):
            return NOTHING
        result = await self._answer(n)
        self._raise_refusal()
        return result

    async def append(self, part_id: str, text: str) -> None:
        """Append text to an open part."""
        await self._may_write()
        self._attachment.append(part_id, text)
        self._way.wrote()

    async def ask(self, question: Ask) -> InteractionPart:
        """Make the write, and return the interaction when it has an outcome."""
        await self._may_write()
        n = self._attachment.write(question)
        self._attachment.await_outcome(question.interaction_id)
        self._way.wrote()
        try:
            await self._answer(n)
        except BaseException:
            self._attachment.forget_outcome(question.interaction_id)
            raise
        return await self.outcome(question.interaction_id)

    async def outcome(self, interaction_id: str) -> InteractionPart:
        """Return an interaction of the turn when it has an outcome, whoever asked it."""
        known = self._attachment.await_outcome(interaction_id)
        if known is not None:
            return known
        return await self._future(self._outcomes, interaction_id)

    async def context(self, limit: int | None) -> Context:
        """Return the session's last summary and the messages behind it, after all that was written before."""
        await self._may_write()
        await self.settled()
        return await self._way.context(self.session_id, limit)

    async def settled(self) -> None:
        """Return when the server has taken all that was written; raise what it refused."""
        n = self._attachment.await_all()
        if n is not None:
            self._way.wrote()
            await self._answer(n)
        self._raise_refusal()

    # What the owner tells it

    def take(self, event: Event) -> None:
        """Learn what became of a write or an interaction."""
        if isinstance(event, Settled):
            _resolve(self._answers, event.n, event.result)
        elif isinstance(event, Heard):
            _resolve(self._outcomes, event.interaction.interaction_id, event.interaction)

    def look(self) -> None:
        """Let those go on who wait for room, if there is some."""
        if self._ended or self._attachment.has_room:
            for future in self._room:
                if not future.done():
                    future.set_result(None)

    def end(self) -> None:
        """Learn that nothing can be written any more."""
        self._ended = True
        for waiting in (self._answers, self._outcomes):
            for future in waiting.values():
                future.cancel()
        self.look()

    async def _may_write(self) -> None:
        """Wait for room, and now and then for others; raise what an earlier write was refused with."""
        self._calls += 1
        if self._calls % YIELD_EVERY == 0:
            await asyncio.sleep(0)
        while not self._ended and not self._attachment.has_room:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._room[future] = None
            try:
                await future
            finally:
                del self._room[future]
        if self._ended:
            raise TurnEnded
        self._raise_refusal()

    def _raise_refusal(self) -> None:
        refusal, self._attachment.refusal = self._attachment.refusal, None
        if refusal is not None:
            raise refusal

    async def _answer(self, n: int) -> WriteResult:
        return await self._future(self._answers, n)

    async def _future(self, waiting: dict[K, asyncio.Future[T]], key: K) -> T:
        if self._ended:
            raise TurnEnded
        future = waiting.get(key)
        if future is None:
            future = waiting[key] = asyncio.get_running_loop().create_future()
            future.add_done_callback(_looked_at)
        await asyncio.wait({future})  # others may wait for it too, and are not cancelled with this one
        if future.cancelled():
            raise TurnEnded
        return future.result()


def _resolve(waiting: dict[K, asyncio.Future[T]], key: K, answer: T | MidstreamError) -> None:
    future = waiting.pop(key, None)
    if future is None or future.done():
        return
    if isinstance(answer, MidstreamError):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _looked_at(future: asyncio.Future[T]) -> None:
    """Count a failure as seen: who waited for it may have been cancelled."""
    if not future.cancelled():
        future.exception()
