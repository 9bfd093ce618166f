"""A session with a short past, a user who types, and an agent whose strings the test holds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from midstream.protocol.calls import (
    Delivery,
    InteractionsResult,
    PromptResult,
    RespondResult,
    SessionResult,
    StopResult,
    TurnResult,
)
from midstream.server import ToolCall, Turn
from tests.laws.reader import Reader
from tests.laws.world import World, pause

if TYPE_CHECKING:
    import msgspec

    from midstream.protocol.model import InteractionPart, TurnState
    from midstream.protocol.values import Value
    from tests.laws.line import Line

T = TypeVar("T", bound="msgspec.Struct")


class Scene:
    """What a case plays in.

    Attributes:
        session_id: the session that is watched.
        user: the connection that calls; a new one after each `restart` and `crash`.
    """

    def __init__(self, world: World, user: Line) -> None:
        self.world = world
        self.user = user
        self.session_id = "s"
        self._prompts = 0
        self._asking: set[asyncio.Task[Any]] = set()

    @classmethod
    async def begin(cls, world: World) -> Scene:
        """Make the session, with one finished turn as its past."""
        scene = cls(world, await world.line())
        await scene.ask(SessionResult, "sessions.create", session_id="s")
        turn = await scene.turn("What came before")
        async with turn.step() as step, step.text() as text:
            await text.append("An answer")
        await scene.finish(turn)
        return scene

    async def ask(self, kind: type[T], method: str, **params: Value) -> T:
        """Call a method of the watched session, unless ``session_id`` says another."""
        return await self.user.ask(kind, method, **{"session_id": self.session_id, **params})

    # The user

    async def prompt(
        self, *parts: Value, delivery: Delivery = "auto", message_id: str | None = None
    ) -> PromptResult:
        """Send an input; without parts, a text that its id decides."""
        self._prompts += 1
        name = message_id or f"input_{self._prompts}"
        said: list[Value] = [*parts] or [{"type": "text", "text": f"I am {name}"}]
        return await self.ask(PromptResult, "prompt", message_id=name, parts=said, delivery=delivery)

    async def turn(self, text: str = "Go on") -> Turn:
        """Start a turn and return the agent's side of it, which has done nothing yet."""
        await self.prompt({"type": "text", "text": text})
        return await self.world.puppet.next()

    async def stop(self, **params: Value) -> StopResult:
        """Stop the running turn."""
        return await self.ask(StopResult, "stop", **params)

    async def respond(self, interaction: InteractionPart, response: Value) -> RespondResult:
        """Answer an interaction."""
        name = interaction.interaction_id
        return await self.ask(RespondResult, "respond", interaction_id=name, response=response)

    async def approve(self, decision: str = "approved") -> RespondResult:
        """Answer the one approval that is pending."""
        return await self.respond(await self.asked(), {"kind": "approval", "decision": decision})

    async def mode(self, mode: str) -> None:
        """Let approvals be asked for, or be given at once."""
        await self.ask(SessionResult, "sessions.approval_mode", approval_mode=mode)

    async def asked(self) -> InteractionPart:
        """Wait until something is asked, and return it."""
        async with asyncio.timeout(60):
            while not (found := await self.ask(InteractionsResult, "interactions")).items:
                await pause(0.01)
        return found.items[-1].interaction

    # The agent

    async def approval(self, turn: Turn, call: ToolCall | None = None, **wish: Any) -> InteractionPart:  # noqa: ANN401  # of ask_approval
        """Let the agent ask for an approval and wait; return what it asked."""
        task = asyncio.create_task(turn.ask_approval(call, title="May I?", **wish), name="asks")
        self._asking.add(task)
        task.add_done_callback(self._asked)
        return await self.asked()

    def in_background(self, waits: Coroutine[Any, Any, object]) -> None:
        """Let the agent wait for something that the test brings about, or that is cut off."""
        task = asyncio.create_task(waits, name="waits")
        self._asking.add(task)
        task.add_done_callback(self._asked)

    def _asked(self, task: asyncio.Task[Any]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()  # the turn may have ended first

    async def finish(self, turn: Turn, error: BaseException | None = None) -> TurnState:
        """Let the agent return, or raise, and wait until the turn has ended."""
        self.world.puppet.end(turn, error)
        async with asyncio.timeout(60):
            while True:
                found = (await self.ask(TurnResult, "turn", turn_id=turn.turn_id)).turn
                if found is not None and found.state != "running":
                    return found.state
                await pause(0.01)

    # The server

    async def restart(self) -> None:
        """Stop the server in good order and start it again."""
        await self.world.restart()
        self.user = await self.world.line()

    async def crash(self) -> None:
        """Kill the server and start it again."""
        await self.world.crash()
        self.user = await self.world.line()

    async def unload(self) -> None:
        """Let the session be put away: everybody has left it, and time passes."""
        await pause(self.world.settings["idle_seconds"] + 1)

    # Readers

    async def reader(self, **wish: Any) -> Reader:  # noqa: ANN401  # of World.reader
        """Return a reader of the watched session, which has joined."""
        return await self.world.reader(self.session_id, **wish)

    async def proves(self, reader: Reader) -> None:
        """Hold a reader against one that has just read everything, and both against the digests."""
        fresh = await self.fresh(include_internal=reader.replica.include_internal)
        await reader.until_version(fresh.replica.version)
        assert reader.content() == fresh.content()
        await reader.prove()

    async def fresh(self, **wish: Any) -> Reader:  # noqa: ANN401  # of World.fresh
        """Return a reader that has just read everything."""
        return await self.world.fresh(self.session_id, **wish)
