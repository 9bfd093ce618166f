"""Workers as a session's loop sees them: links that note what is sent to them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from midstream.protocol.agent_calls import AttachParams, AttachResult
from midstream.protocol.agents import AddPart, Ask, EndStep, EndText, EndTurn, MoveTool, Write
from midstream.protocol.errors import Refused
from midstream.protocol.frames import Ack, Append, Detached, Offer, PartHandle, WriteFrame
from midstream.protocol.model import InteractionRequest, TextPart, ToolPart
from midstream.server.sessions.offers import RemoteAgents

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec
    from msgspec import UnsetType

    from midstream.protocol.model import Message
    from midstream.server.sessions.access import SessionRef
    from midstream.server.sessions.commands import TakesWrites
    from tests.server.sessions.house import House

F = TypeVar("F")
COMPLETED = EndTurn(state="completed")


class Link:
    """A registered worker's connection; a :class:`~midstream.server.sessions.commands.WorkerLink`."""

    def __init__(self, name: str, *, instance: str = "", resumes: bool = False) -> None:
        self.name = name
        self.instance = instance or f"instance of {name}"
        self.resumes = resumes
        self.is_behind = False
        self.is_gone = False
        self.sent_away = False
        self.frames: list[msgspec.Struct] = []
        self._attachments: dict[int, TakesWrites] = {}
        self._channels = 0
        self._changed = asyncio.Event()

    def may_run(self, session: SessionRef, /) -> bool:  # noqa: ARG002 - it may all
        """Say that the worker may run the turns of a session."""
        return True

    def send_away(self) -> None:
        """Note that another has the name now."""
        self.sent_away = True

    def open(self, attachment: TakesWrites) -> int:
        """Give out a channel."""
        self._channels += 1
        self._attachments[self._channels] = attachment
        return self._channels

    def send(self, session_id: str, frame: msgspec.Struct) -> None:
        """Note a frame."""
        del session_id
        self.frames.append(frame)
        self._changed.set()

    def forget(self, channel: int) -> None:
        """Let an attachment go."""
        self._attachments.pop(channel, None)

    def take(self, frame: Append | WriteFrame | PartHandle, size: int = 20) -> None:
        """Send a frame, as the worker; one for a channel that is over is dropped."""
        if frame.channel in self._attachments:
            self._attachments[frame.channel].take(frame, size)

    def lose(self) -> None:
        """Lose the connection."""
        self.is_gone = True
        for attachment in list(self._attachments.values()):
            attachment.lost()

    def give_up(self, channel: int) -> None:
        """Give a turn up."""
        self._attachments[channel].give_up()

    def of(self, kind: type[F]) -> list[F]:
        """The frames of one kind so far."""
        return [frame for frame in self.frames if isinstance(frame, kind)]

    @property
    def offers(self) -> list[tuple[str, bool]]:
        """The offers so far: the turn, and whether it was begun."""
        return [(offer.turn_id, offer.resumed) for offer in self.of(Offer)]

    @property
    def detached(self) -> list[str]:
        """Why its attachments ended."""
        return [frame.code for frame in self.of(Detached)]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something that was sent makes it so."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()


class Remote:
    """An agent that runs in a worker: what it writes, numbered as it must be."""

    def __init__(self, house: House, link: Link, attached: AttachResult) -> None:
        self.house = house
        self.link = link
        self.attached = attached
        self.n = attached.next_n

    @classmethod
    async def attach(
        cls,
        house: House,
        link: Link,
        turn_id: str,
        *,
        generation: int | UnsetType | None = None,
        waiting: list[str] | None = None,
    ) -> Remote:
        """Attach to a turn. Raises what the server refuses."""
        params = AttachParams(session_id="s", turn_id=turn_id, waiting=waiting or [])
        if isinstance(generation, int):
            params = AttachParams(
                session_id="s", turn_id=turn_id, generation=generation, waiting=waiting or []
            )
        return cls(house, link, await house.call(AttachResult, "agent.attach", params, worker=link))

    def write(self, write: Write, n: int | None = None) -> int:
        """Send a write, and return its number."""
        number = self._number(n)
        self.link.take(WriteFrame(self.attached.channel, number, write))
        return number

    def append(self, handle: int, text: str, n: int | None = None) -> int:
        """Send text, and return its number."""
        number = self._number(n)
        self.link.take(Append(self.attached.channel, number, handle, text))
        return number

    def open_text(self, part_id: str = "p1", handle: int = 1, *, step_id: str = "step") -> None:
        """Open a text."""
        self.write(AddPart(part=TextPart(part_id=part_id, text="", state="streaming", step_id=step_id)))
        self.handle(part_id, handle)

    def handle(self, part_id: str, handle: int = 1) -> None:
        """Number a part."""
        self.link.take(PartHandle(self.attached.channel, handle, part_id))

    def say(self, text: str, part_id: str = "p1") -> None:
        """Say something, and commit it."""
        self.open_text(part_id)
        self.append(1, text)
        self.write(EndText(part_id=part_id))
        self.write(EndStep(step_id="step"))

    def call_tool(self, part_id: str = "tool") -> None:
        """Begin a tool call."""
        part = ToolPart(
            part_id=part_id, tool_call_id=f"call {part_id}", tool_name="t", state="ready", input=1
        )
        self.write(AddPart(part=part))

    def ask(self, interaction_id: str = "ask", tool: str = "tool") -> None:
        """Ask for an approval of a tool call."""
        self.write(
            Ask(
                interaction_id=interaction_id,
                interaction_type="approval",
                request=InteractionRequest(title="?"),
                tool_part_id=tool,
            )
        )

    def run(self, part_id: str = "tool") -> int:
        """Claim the execution of a tool call."""
        return self.write(MoveTool(part_id=part_id, state="running"))

    async def acknowledged(self, n: int | None = None, *, durable: bool = False) -> None:
        """Wait until the server says that it has everything up to ``n``, or that it is on disk."""
        number = self.n - 1 if n is None else n

        def has() -> bool:
            acks = [ack for ack in self.link.of(Ack) if ack.channel == self.attached.channel]
            return any((ack.durable if durable else ack.n) >= number for ack in acks)

        await self.link.until(has)

    def _number(self, n: int | None) -> int:
        if n is not None:
            return n
        self.n += 1
        return self.n - 1


def remote_agents(**settings: float) -> RemoteAgents:
    """Those who wait for workers, with the usual times unless others are given."""
    times = {"lease_seconds": 30.0, "offer_seconds": 30.0, "takeover_seconds": 5.0} | settings
    return RemoteAgents(
        lease_seconds=times["lease_seconds"],
        offer_seconds=times["offer_seconds"],
        takeover_seconds=times["takeover_seconds"],
        window_bytes=int(settings.get("window_bytes", 256 * 1024)),
    )


async def begin(house: House, agents: RemoteAgents, link: Link) -> Remote:
    """Create the session, prompt, and attach to the turn."""
    await house.create()
    agents.register(link, 1)
    turn_id = (await house.prompt("a")).turn_id
    assert isinstance(turn_id, str)
    return await Remote.attach(house, link, turn_id)


def texts(messages: list[Message]) -> list[str]:
    """The texts of the agent, in order."""
    return [
        part.text
        for message in messages
        if message.role == "agent"
        for part in message.parts
        if isinstance(part, TextPart)
    ]


def reason(error: object) -> object:
    """The word that says why something was refused."""
    assert isinstance(error, Refused)
    return error.details["reason"]
