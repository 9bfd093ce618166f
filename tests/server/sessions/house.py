"""Sessions that run: registry, loops, agents and SQLite as they are, without sockets, in a simulated loop.

A test calls as a connection does, plays the agent, and decides when time passes and when things break.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

import msgspec
import pytest
from msgspec import UNSET, UnsetType, structs

from midstream.agents import Agent, Turn
from midstream.protocol import calls
from midstream.protocol.errors import MidstreamError
from midstream.protocol.model import InteractionResponse, Message, Session, TextPart, UserPart
from midstream.protocol.model import Turn as TurnEntity
from midstream.server.sessions.agents import InProcessAgents
from midstream.server.sessions.commands import Answer, Caller, Command, Subscriber, WorkerLink
from midstream.server.sessions.offers import RemoteAgents
from midstream.server.sessions.registry import Registry
from midstream.server.sessions.services import Services, Settings
from midstream.server.storage.connection import Synchronous
from midstream.server.storage.database import Database
from midstream.server.storage.schema import migrate
from tests.clock import SimClock
from tests.server.sessions.pure_session import CountedIds
from tests.server.sessions.recorder import Recorder
from tests.simulation.run import run

if TYPE_CHECKING:
    from midstream.protocol.calls import CancelQueue, Cursor, Delivery
    from midstream.protocol.values import Value
    from tests.simulation.simloop import SimLoop

R = TypeVar("R", bound=msgspec.Struct)
SEEDS = (0, 1, 2)
"""Orders of callbacks that every test runs in: asyncio's own, and two that are drawn."""


class Options(TypedDict, total=False):
    """Who calls, and from where."""

    subject: str
    scopes: frozenset[str]
    subscriber: Subscriber
    worker: WorkerLink
    replied: Callable[[Answer], None]


class Puppet:
    """An agent that does what the test does with its turn, until the test lets it go."""

    def __init__(self) -> None:
        self._begun: asyncio.Queue[Turn] = asyncio.Queue()
        self._ends: dict[str, asyncio.Future[None]] = {}

    async def __call__(self, turn: Turn) -> None:
        """Hand the turn to the test, and wait for its word."""
        end = self._ends[turn.turn_id] = asyncio.get_running_loop().create_future()
        self._begun.put_nowait(turn)
        await end

    async def next(self) -> Turn:
        """The next turn that begins."""
        return await self._begun.get()

    def finish(self, turn: Turn, error: BaseException | None = None) -> None:
        """Let the agent of a turn return, or raise."""
        end = self._ends[turn.turn_id]
        if error is None:
            end.set_result(None)
        else:
            end.set_exception(error)

    def was_cut_off(self, turn: Turn) -> bool:
        """Whether the agent of a turn was cancelled."""
        return self._ends[turn.turn_id].cancelled()


class House:
    """All sessions of one process, on one database."""

    def __init__(
        self,
        database: Database,
        services: Services,
        agents: InProcessAgents | RemoteAgents,
        puppet: Puppet,
    ) -> None:
        self.database = database
        self.services = services
        self.agents = agents
        self.puppet = puppet
        self.ownership_lost = False
        self.globals = {"sessions.create", "sessions.list", "sessions.fork"}
        """The calls that are to no loaded session."""
        self.registry = Registry(services, on_ownership_lost=self._lose)

    def _lose(self) -> None:
        self.ownership_lost = True

    # Calls

    def post(self, method: str, params: msgspec.Struct, **options: Unpack[Options]) -> asyncio.Future[Answer]:
        """Post a call; its answer comes in the future, and before that to ``replied``."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        subject = options.get("subject", "ann")

        def reply(given: Answer) -> None:
            if "replied" in options:
                options["replied"](given)
            answer.set_result(given)  # raises where it is replied to twice

        command = Command(
            method=method,
            params=params,
            as_sent=cast("Value", msgspec.to_builtins(params)),
            caller=Caller(
                subject=subject,
                connection_id=f"connection of {subject}",
                scopes=options.get("scopes", frozenset()),
            ),
            reply=reply,
            subscriber=options.get("subscriber"),
            worker=options.get("worker"),
        )
        if method in self.globals:
            self.registry.post_global(command)
        else:
            self.registry.post(cast("str", getattr(params, "session_id", "")), command)
        return answer

    async def call(self, kind: type[R], method: str, params: msgspec.Struct, **options: Unpack[Options]) -> R:
        """Call, and give the answer as a client decodes it; raises what the call was refused with."""
        return decoded(kind, await self.post(method, params, **options))

    async def create(self, session_id: str = "s") -> calls.SessionResult:
        """Make a session."""
        params = calls.CreateParams(session_id=session_id)
        return await self.call(calls.SessionResult, "sessions.create", params)

    async def prompt(
        self,
        message_id: str = "m",
        *parts: UserPart,
        delivery: Delivery = "auto",
        session_id: str = "s",
        subject: str = "ann",
    ) -> calls.PromptResult:
        """Hand in an input."""
        content = list(parts) or [TextPart(text=f"text of {message_id}")]
        params = calls.PromptParams(
            session_id=session_id, message_id=message_id, parts=content, delivery=delivery
        )
        return await self.call(calls.PromptResult, "prompt", params, subject=subject)

    async def begin(self, message_id: str = "m", session_id: str = "s") -> Turn:
        """Hand in an input, and take the turn that it starts."""
        await self.prompt(message_id, session_id=session_id)
        return await self.puppet.next()

    async def complete(self, turn: Turn, error: BaseException | None = None) -> TurnEntity:
        """Let the agent of a turn return, or raise; give the turn as it is once it has ended."""
        self.puppet.finish(turn, error)
        return await self.ended(turn)

    async def ended(self, turn: Turn) -> TurnEntity:
        """Wait until a turn has ended, and give it."""
        while True:
            found = (await self.turn(turn.turn_id, turn.session_id)).turn
            assert found is not None
            if found.state != "running":
                return found

    async def stop(
        self, turn_id: str = "current", cancel_queue: CancelQueue = "own", *, subject: str = "ann"
    ) -> calls.StopResult:
        """Stop a turn."""
        params = calls.StopParams(session_id="s", turn_id=turn_id, cancel_queue=cancel_queue)
        return await self.call(calls.StopResult, "stop", params, subject=subject)

    async def respond(
        self,
        interaction_id: str,
        response: InteractionResponse,
        *,
        subject: str = "ann",
        session_id: str = "s",
    ) -> calls.RespondResult:
        """Answer an interaction."""
        params = calls.RespondParams(session_id=session_id, interaction_id=interaction_id, response=response)
        return await self.call(calls.RespondResult, "respond", params, subject=subject)

    async def asked(self, session_id: str = "s") -> list[calls.PendingInteraction]:
        """The pending interactions."""
        params = calls.InteractionsParams(session_id=session_id)
        return (await self.call(calls.InteractionsResult, "interactions", params)).items

    async def page(
        self,
        session_id: str = "s",
        *,
        limit: int = 200,
        before: int | UnsetType = UNSET,
        include_internal: bool = False,
        stored: bool = False,
    ) -> calls.Page:
        """A page of messages."""
        params = calls.MessagesParams(
            session_id=session_id,
            limit=limit,
            before_sequence=before,
            include_internal=include_internal,
            stored=stored,
        )
        return await self.call(calls.Page, "messages", params)

    async def messages(self, session_id: str = "s") -> list[Message]:
        """All messages, internal ones included."""
        return (await self.page(session_id, include_internal=True)).items

    async def session(self, session_id: str = "s") -> calls.SessionResult:
        """The session."""
        return await self.call(
            calls.SessionResult, "sessions.get", calls.SessionParams(session_id=session_id)
        )

    async def clear(self) -> Session:
        """Remove all messages of the session."""
        params = calls.SessionParams(session_id="s")
        return (await self.call(calls.SessionResult, "sessions.clear", params)).session

    async def turn(self, turn_id: str = "current", session_id: str = "s") -> calls.TurnResult:
        """A turn."""
        params = calls.TurnParams(session_id=session_id, turn_id=turn_id)
        return await self.call(calls.TurnResult, "turn", params)

    # Subscriptions

    async def subscribe(
        self, recorder: Recorder | None = None, *, cursor: Cursor | UnsetType = UNSET, session_id: str = "s"
    ) -> Recorder:
        """Subscribe; from the answer on the recorder gets all that is published."""
        joined = recorder or Recorder(session_id)
        session_id = joined.replica.session_id

        def join(answer: Answer) -> None:
            if isinstance(answer, calls.SubscribeResult):
                joined.join(decoded(calls.SubscribeResult, answer).sync)

        params = calls.SubscribeParams(
            session_id=session_id,
            cursor=cursor,
            limit=joined.limit or UNSET,
            include_internal=joined.include_internal,
        )
        await self.call(calls.SubscribeResult, "subscribe", params, subscriber=joined, replied=join)
        return joined

    async def resume(self, recorder: Recorder, session_id: str = "s") -> Recorder:
        """Subscribe again with what a recorder has."""
        cursor = recorder.replica.cursor()
        assert cursor is not None
        return await self.subscribe(recorder.reconnected(), cursor=cursor, session_id=session_id)

    async def equal(self, *recorders: Recorder, session_id: str = "s") -> list[Message]:
        """Hold each recorder's replica against a page and against the digests; give all messages."""
        for recorder in recorders:
            page = await self.page(session_id, include_internal=recorder.include_internal)
            replica = recorder.replica
            assert replica.messages() == page.items
            assert (replica.version, replica.epoch) == (page.version, page.epoch)
            assert replica.session == (await self.session(session_id)).session
            for turn in page.turns:
                assert replica.turns[turn.turn_id] == turn
        return await self.messages(session_id)

    async def settled(self, session_id: str = "s") -> None:
        """Wait until the session has done all that was asked of it so far."""
        await self.session(session_id)

    # The end

    async def close(self) -> None:
        """Stop in good order."""
        await self.registry.stop()
        await self.agents.close()
        await self.services.close()
        await self.database.close()

    async def crash(self) -> None:
        """Die: what was not committed is lost, and nobody hears anything."""
        self.database.abandon()
        me = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not me]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Street:
    """A database file, the houses that own it one after another, and the time."""

    def __init__(self, path: Path, loop: SimLoop) -> None:
        self.path = path
        self.loop = loop
        self.clock = SimClock(loop)
        self.ids = CountedIds()
        self._number = 0

    @asynccontextmanager
    async def house(
        self,
        agent: Agent | None = None,
        *,
        settings: Settings | None = None,
        vfs: str | None = None,
        synchronous: Synchronous = "OFF",
        start: bool = True,
        has_agent: bool = True,
        remote: RemoteAgents | None = None,
    ) -> AsyncGenerator[House]:
        """Open a house, which is closed at the end unless it crashed; its agent is a puppet by default.

        With ``remote`` it has no agent of its own, and waits for workers.
        """
        puppet = Puppet()
        database = await Database.open(
            self.path, migrate=migrate, inline=True, synchronous=synchronous, vfs=vfs
        )
        agents = remote or InProcessAgents((agent or puppet) if has_agent else None)
        services = Services(
            database=database,
            clock=self.clock,
            ids=self.ids,
            agents=agents,
            settings=settings or Settings(),
        )
        house = House(database, services, agents, puppet)
        if start:
            await house.registry.start()
        try:
            yield house
        finally:
            await house.close()


Story = Callable[[Street], Coroutine[Any, Any, None]]


def in_simulation(story: Story) -> Callable[[Path, int], None]:
    """Make a test of a story: it runs in a simulated loop, once a seed, and must leave nothing behind."""

    @pytest.mark.parametrize("seed", SEEDS)
    def test(tmp_path: Path, seed: int) -> None:
        run(lambda loop: story(Street(tmp_path / "a.db", loop)), seed)

    test.__name__ = test.__qualname__ = story.__name__
    test.__doc__ = inspect.getdoc(story)
    test.__module__ = story.__module__
    return test


def decoded(kind: type[R], answer: Answer) -> R:
    """An answer as a client has it, or the error that it is."""
    if isinstance(answer, MidstreamError):
        raise answer
    return msgspec.msgpack.decode(msgspec.msgpack.encode(answer), type=kind)


async def refusal(call: Awaitable[object]) -> MidstreamError:
    """The error that a call is refused with."""
    with pytest.raises(MidstreamError) as refused:
        await call
    return refused.value


def parts_of(message: Message) -> list[dict[str, object]]:
    """The parts of a message as plain values, without what ids and places say."""
    return [
        {
            name: value
            for name, value in cast("dict[str, object]", msgspec.to_builtins(part)).items()
            if name not in {"part_id", "sequence", "step_id"}
        }
        for part in message.parts
    ]


def without_time(message: Message) -> Message:
    """A message without what changes when nothing else does."""
    return structs.replace(message, updated_at=0, revision=0)
