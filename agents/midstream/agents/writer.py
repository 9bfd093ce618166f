"""Where an agent's writes go: into the session's loop in the same process, or over a connection (SPEC 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from midstream.agents.resumption import Resumption
    from midstream.protocol.agents import Ask, Context, Write, WriteResult
    from midstream.protocol.model import InteractionPart

T = TypeVar("T")


def absent(value: T | None) -> T | UnsetType:
    """Return None as a field that is not there."""
    return UNSET if value is None else value


class Writer(Protocol):
    """The one way in which an agent writes. Every method raises TurnEnded once the turn has ended.

    What the protocol refuses is raised as its :class:`~midstream.protocol.errors.MidstreamError`.
    """

    session_id: str
    turn_id: str
    resumption: Resumption | None
    """What another process left of the turn; None where this one is the first to write it."""

    def new_id(self, kind: str) -> str:
        """Return an id that nothing else has."""
        ...

    def is_running(self) -> bool:
        """Say whether the turn still runs, and this agent is the one that runs it."""
        ...

    async def write(self, write: Write) -> WriteResult:
        """Make a write, and return when it is done: when it is on disk, where it is one that is stored.

        A write that is not stored may return as soon as it is on its way, and be refused at the next.
        """
        ...

    async def append(self, part_id: str, text: str) -> None:
        """Append text to an open part; waits only where the agent is ahead of its readers' server."""
        ...

    async def ask(self, question: Ask) -> InteractionPart:
        """Make the write, and return the interaction when it has an outcome."""
        ...

    async def outcome(self, interaction_id: str) -> InteractionPart:
        """Return an interaction that another process asked, when it has an outcome."""
        ...

    async def context(self, limit: int | None) -> Context:
        """Return the last summary and the messages behind it, whole; the newest ``limit`` of them."""
        ...
