"""An application that knows a session by its mutations alone, as a user interface would."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import structs

from midstream.client import Message, Mutation, ReplicaReset, Session, TextAppended
from midstream.protocol.live import appended
from midstream.protocol.model import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.protocol.model import Part
    from midstream.protocol.model import Session as SessionInfo


class Follower:
    """Keeps its own copy of the messages; a `reset` makes it read the session's again.

    What it reads then may be ahead of the mutations that wait, so it ignores those that it has already.

    Attributes:
        session: what it follows.
        messages: its copy, by id.
        info: its copy of the session's own state.
        turns: the turns that it heard of.
    """

    def __init__(self, session: Session, limit: int) -> None:
        self.session = session
        self.messages: dict[str, Message] = {}
        self.info: SessionInfo = session.info
        self.turns: dict[str, Turn] = {}
        self._known: dict[str, int] = {}
        self._mutations = session.mutations(limit=limit)
        self._read()

    async def follow(self, complain: Callable[[str], None]) -> None:
        """Follow until the session is closed; whenever nothing waits, the copy must be the session."""
        following = asyncio.ensure_future(anext(self._mutations))
        try:
            while True:
                self._take(await following)
                following = asyncio.ensure_future(anext(self._mutations))
                await _turns(2)  # one to begin to wait, one to have what is there
                found = [] if following.done() else self.differences()
                await _turns(2)  # something may have come in this very turn
                for difference in [] if following.done() else found:
                    complain(difference)
        except StopAsyncIteration:
            return

    def differences(self) -> list[str]:
        """Say where the copy is not what the session shows."""
        shown = {message.message_id: message for message in self.session.messages}
        found = [
            f"{message_id} is {self.messages.get(message_id)}, not {shown.get(message_id)}"
            for message_id in shown.keys() | self.messages.keys()
            if shown.get(message_id) != self.messages.get(message_id)
        ]
        if self.info != self.session.info:
            found.append(f"{self.info}, not {self.session.info}")
        found += [
            f"{turn}, not {self.session.turns[turn_id]}"
            for turn_id, turn in self.turns.items()
            if turn_id in self.session.turns and self.session.turns[turn_id] != turn
        ]
        return found

    def _read(self) -> None:
        self.messages = {message.message_id: message for message in self.session.messages}
        self.info = self.session.info
        self.turns = dict(self.session.turns)
        self._known = {message.message_id: message.revision for message in self.session.messages}

    def _take(self, mutation: Mutation) -> None:
        payload = mutation.payload
        if isinstance(payload, ReplicaReset):
            self._read()
        elif isinstance(payload, Turn):
            held = self.turns.get(payload.turn_id)
            if held is None or payload.revision > held.revision:
                self.turns[payload.turn_id] = payload
        elif mutation.message_id is None:
            if not isinstance(payload, (Message, TextAppended)) and mutation.revision > self.info.revision:
                self.info = payload  # type: ignore[assignment] # it is the session
        elif mutation.revision > self._known.get(mutation.message_id, 0):
            self._change(mutation, mutation.message_id)

    def _change(self, mutation: Mutation, message_id: str) -> None:
        payload = mutation.payload
        if isinstance(payload, Message):
            self.messages[message_id] = payload
            return
        message = self.messages[message_id]
        parts: list[Part] = list(message.parts)
        place = next((at for at, part in enumerate(parts) if part.part_id == mutation.part_id), len(parts))
        if isinstance(payload, TextAppended):
            parts[place] = appended(parts[place], payload.text)
        else:
            parts[place : place + 1] = [payload]  # type: ignore[list-item] # it is a part
        self.messages[message_id] = structs.replace(
            message, parts=parts, revision=mutation.revision, updated_at=mutation.created_at
        )


async def _turns(count: int) -> None:
    """Let everybody else go on for some turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)
