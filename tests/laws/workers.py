"""Workers that are nothing but SPEC.md 14: they attach, send numbered writes, and keep what comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.agent_calls import AttachResult, RegisterResult
from midstream.protocol.calls import Page, SessionResult, TurnResult
from midstream.protocol.errors import Refused
from midstream.protocol.frames import Ack, Append, Detached, Offer, PartHandle, WriteRefused, Wrote
from midstream.protocol.model import TextPart
from midstream.server import Config
from tests.laws.scene import Scene
from tests.laws.world import World, pause

if TYPE_CHECKING:
    import msgspec

    from midstream.protocol.model import Message, Turn
    from midstream.protocol.values import Value
    from tests.laws.line import Line

LEASE = 10.0
TAKEOVER = 2.0
REMOTE = Config(agent="remote", lease_seconds=LEASE, offer_seconds=LEASE, takeover_seconds=TAKEOVER)


class Shop(Scene):
    """A session whose turns are left to workers."""

    @classmethod
    async def open(cls, world: World) -> Shop:
        """Make the session."""
        shop = cls(world, await world.line())
        await shop.ask(SessionResult, "sessions.create")
        return shop

    async def new_turn(self) -> str:
        """Start a turn, and return its id."""
        return str((await self.prompt()).turn_id)

    async def work(self) -> tuple[Hand, Hold]:
        """Start a turn, and let a worker take it."""
        hand = await Hand(self.world).connect()
        return hand, await hand.attach(await self.new_turn())

    async def messages(self) -> list[Message]:
        """Return all messages."""
        return (await self.ask(Page, "messages", limit=200, include_internal=True)).items

    async def said(self) -> list[str]:
        """Return the texts of the agent."""
        return [
            part.text
            for message in await self.messages()
            if message.role == "agent"
            for part in message.parts
            if isinstance(part, TextPart)
        ]

    async def turn_of(self, hold: Hold) -> Turn:
        """Return a turn as it is now."""
        found = (await self.ask(TurnResult, "turn", turn_id=hold.turn_id)).turn
        assert found is not None
        return found


class Hand:
    """One process of a worker, on one connection after another.

    Attributes:
        line: the present connection.
    """

    line: Line

    def __init__(self, world: World, name: str = "w", instance: str = "1", *, resumes: bool = True) -> None:
        self._world = world
        self._who: dict[str, Value] = {"name": name, "instance": instance, "resumes": resumes}

    async def connect(self) -> Hand:
        """Connect anew, and register; the older connection is left as it is."""
        self.line = await self._world.line()
        await self.line.ask(RegisterResult, "agent.register", **self._who)
        return self

    async def attach(
        self, turn_id: str, *, generation: int | None = None, waiting: tuple[str, ...] = ()
    ) -> Hold:
        """Attach to a turn. Raises what it is refused with."""
        asked: dict[str, Value] = {"session_id": "s", "turn_id": turn_id, "waiting": list(waiting)}
        if generation is not None:
            asked["generation"] = generation
        return Hold(self.line, await self.line.ask(AttachResult, "agent.attach", **asked))

    async def back(self, hold: Hold, **wish: tuple[str, ...]) -> Hold:
        """Connect anew, and go on with a turn."""
        await self.connect()
        return await self.attach(hold.turn_id, generation=hold.result.generation, **wish)

    @property
    def offers(self) -> list[str]:
        """The turns that it was offered on the present connection."""
        return [offer.turn_id for offer in self.line.of(Offer)]


class Hold:
    """An attachment.

    Attributes:
        result: the answer that began it.
        n: the number of the next write.
    """

    def __init__(self, line: Line, result: AttachResult) -> None:
        self.line = line
        self.result = result
        self.turn_id = result.turn.turn_id
        self.n = result.next_n

    async def write(self, op: str, **fields: Value) -> int:
        """Make a write, and return its number."""
        return await self._send(["write", self.result.channel, self.n, {"op": op, **fields}])

    async def append(self, text: str, handle: int = 1) -> int:
        """Append text, and return the number of that."""
        return await self._send(Append(self.result.channel, self.n, handle, text))

    async def open_text(self, part_id: str = "p1", handle: int = 1) -> int:
        """Open a text, and return the number of that."""
        part: Value = {"type": "text", "part_id": part_id, "step_id": "s1", "text": "", "state": "streaming"}
        n = await self.write("add_part", part=part)
        await self.name(part_id, handle)
        return n

    async def name(self, part_id: str = "p1", handle: int = 1) -> None:
        """Give a part its number."""
        await self.line.send(PartHandle(self.result.channel, handle, part_id))

    async def call_tool(self, part_id: str = "tool") -> int:
        """Begin a tool call."""
        part: dict[str, Value] = {"type": "tool", "tool_name": "t", "state": "ready", "input": 1}
        return await self.write("add_part", part={**part, "part_id": part_id, "tool_call_id": part_id})

    async def ask(self, interaction_id: str = "ask", **fields: Value) -> int:
        """Ask for an approval of a tool call."""
        return await self.write(
            "ask",
            interaction_id=interaction_id,
            interaction_type="approval",
            request={"title": "?"},
            tool_part_id="tool",
            **fields,
        )

    async def end(self) -> int:
        """End the turn."""
        return await self.write("end_turn", state="completed")

    # What came

    def acks(self) -> list[Ack]:
        """Return the acknowledgements."""
        return [ack for ack in self.line.of(Ack) if ack.channel == self.result.channel]

    async def acknowledged(self, n: int | None = None, *, durable: bool = False) -> None:
        """Wait until all was taken up to a number, or is on disk; of all that was sent, if none is given."""
        number = self.n - 1 if n is None else n
        await self.line.until(lambda: any((a.durable if durable else a.n) >= number for a in self.acks()))

    @property
    def refused(self) -> dict[int, str]:
        """The codes of what was refused, by number."""
        found = [one for one in self.line.of(WriteRefused) if one.channel == self.result.channel]
        return {one.n: one.error.code for one in found}

    @property
    def wrote(self) -> dict[int, list[str]]:
        """The ids of the messages that writes gave back, by number."""
        found = [one for one in self.line.of(Wrote) if one.channel == self.result.channel]
        return {one.n: [message.message_id for message in one.result.messages] for one in found}

    async def detached(self) -> str:
        """Wait until the attachment is over, and return why."""

        def codes() -> list[str]:
            return [one.code for one in self.line.of(Detached) if one.channel == self.result.channel]

        await self.line.until(lambda: bool(codes()))
        [code] = codes()
        return code

    async def _send(self, frame: msgspec.Struct | list[Value]) -> int:
        await self.line.send(frame)
        self.n += 1
        return self.n - 1


def reason(error: BaseException) -> Value:
    """Return the word by which an attach was refused."""
    assert isinstance(error, Refused)
    return error.details["reason"]


async def until_lost() -> None:
    """Let the server notice that a connection is gone."""
    await pause()
