"""What a scripted server tells of one session: each method takes a version, and returns its frame."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.calls import SubscribeResult
from midstream.protocol.frames import Change, ChangeContent, Delta, Mark, MessageEntry, Skip, SyncPayload
from midstream.protocol.model import Message, Session, TextPart, Turn, TurnState

EPOCH = "00000000000000aa"


class Conversation:
    """A session as the scripted server has it. It is told what happens, and says it in frames."""

    def __init__(self, session_id: str = "s", channel: int = 7, version: int = 10) -> None:
        self.channel = channel
        self.epoch = EPOCH
        self.version = version
        self.durable = version
        self.messages: list[Message] = []
        self.turns: dict[str, Turn] = {}
        self.session = Session(
            session_id=session_id,
            revision=version,
            metadata={},
            created_at=1,
            updated_at=1,
            first_sequence=1,
            message_count=0,
            queue=[],
            pending_interactions=0,
        )

    def user(self, text: str, *, message_id: str | None = None, turn_id: str = "t1") -> Change:
        """A user message starts a turn."""
        self._next(durable=True)
        message = self._message(
            "user", [TextPart(part_id=f"p{self.version}", sequence=1, text=text)], message_id
        )
        message = structs.replace(message, turn_id=turn_id)
        turn = Turn(
            turn_id=turn_id,
            revision=self.version,
            state="running",
            phase="starting",
            phase_since=1,
            started_at=1,
        )
        self.turns[turn_id] = turn
        queue = [waiting for waiting in self.session.queue if waiting != message.message_id]
        self._session(message_count=message.sequence, running_turn_id=turn_id, queue=queue)
        self.messages.append(message)
        return self._change([message], [turn])

    def agent(self, text: str = "", *, turn_id: str = "t1") -> Change:
        """An agent message begins, with one open text part."""
        self._next(durable=True)
        part = TextPart(part_id=f"p{self.version}", sequence=1, text=text, state="streaming")
        message = structs.replace(self._message("agent", [part]), turn_id=turn_id, state="streaming")
        self.messages.append(message)
        self._session(message_count=message.sequence)
        return self._change([message], [])

    def delta(self, text: str) -> Delta:
        """The last message grows."""
        self._next(durable=False)
        message = self.messages[-1]
        part = message.parts[0]
        assert isinstance(part, TextPart)
        grown = structs.replace(part, text=part.text + text)
        self.messages[-1] = structs.replace(
            message, parts=[grown], revision=self.version, updated_at=message.created_at + 5
        )
        return Delta(self.channel, self.version, 5, message.sequence, 1, text)

    def ends(self, turn_id: str = "t1", *, state: TurnState = "completed") -> Change:
        """The turn ends, and with it the last message, where that is the agent's."""
        self._next(durable=True)
        touched: list[Message] = []
        if self.messages[-1].role == "agent":
            part = self.messages[-1].parts[0]
            assert isinstance(part, TextPart)
            done = structs.replace(part, state="done")
            self.messages[-1] = structs.replace(
                self.messages[-1], parts=[done], state="done", revision=self.version
            )
            touched.append(self.messages[-1])
        turn = structs.replace(self.turns[turn_id], revision=self.version, state=state, finished_at=9)
        self.turns[turn_id] = turn
        self._session(running_turn_id=UNSET)
        return self._change(touched, [turn])

    def queue(self, *message_ids: str) -> Change:
        """The queue changes."""
        self._next(durable=True)
        self._session(queue=list(message_ids))
        return self._change([], [])

    def titled(self, title: str) -> Change:
        """The session gets another title."""
        self._next(durable=True)
        self._session(title=title)
        return self._change([], [])

    def cleared(self) -> Change:
        """All messages are removed."""
        self._next(durable=True)
        self._session(first_sequence=self.session.message_count + 1)
        self.messages = []
        return self._change([], [])

    def skip(self) -> Skip:
        """Something internal happens."""
        self._next(durable=False)
        return Skip(self.channel, self.version - 1, self.version)

    def mark(self) -> Mark:
        """The stream stands here."""
        return Mark(self.channel, self.version)

    def reset(self, last: int | None = None) -> SyncPayload:
        """Everything anew, or the last few messages."""
        messages = self.messages if last is None else self.messages[-last:]
        return SyncPayload(
            mode="reset",
            epoch=self.epoch,
            version=self.version,
            durable=self.durable,
            session=self.session,
            turns=[turn for turn in self.turns.values() if turn.state == "running"],
            messages=[entry(message) for message in messages],
            has_more=len(messages) < len(self.messages),
        )

    def catchup(self, since: int) -> SyncPayload:
        """What changed above a version."""
        return SyncPayload(
            mode="catchup",
            from_version=since,
            epoch=self.epoch,
            version=self.version,
            durable=self.durable,
            session=self.session if self.session.revision > since else UNSET,
            turns=[turn for turn in self.turns.values() if turn.revision > since],
            messages=[entry(message) for message in self.messages if message.revision > since],
        )

    def subscribed(self, payload: SyncPayload) -> SubscribeResult:
        """The answer to ``subscribe``."""
        return SubscribeResult(channel=self.channel, sync=payload)

    def _next(self, *, durable: bool) -> None:
        self.version += 1
        if durable:
            self.durable = self.version

    def _message(self, role: str, parts: list[TextPart], message_id: str | None = None) -> Message:
        fields = {
            "message_id": message_id or f"m{self.version}",
            "session_id": self.session.session_id,
            "sequence": self.session.message_count + 1,
            "revision": self.version,
            "role": role,
            "visibility": "visible",
            "created_at": self.version,
            "updated_at": self.version,
            "parts": parts,
        }
        return msgspec.convert(fields, Message)

    def _session(self, **changes: object) -> None:
        self.session = structs.replace(self.session, revision=self.version, **changes)

    def _change(self, messages: list[Message], turns: list[Turn]) -> Change:
        content = ChangeContent(
            messages=[structs.replace(entry(message), revision=UNSET) for message in messages],
            turns=turns,
            session=self.session if self.session.revision == self.version else UNSET,
        )
        return Change(self.channel, self.version, True, content)  # noqa: FBT003 - a frame's elements have no names


def entry(message: Message) -> MessageEntry:
    """Return the entry that gives a whole message."""
    own = {name: getattr(message, name) for name in message.__struct_fields__ if name != "parts"}
    return MessageEntry(**own, parts=message.parts, part_count=len(message.parts))
