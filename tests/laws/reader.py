"""A reader of one session by the merge law alone, which can be held against the server at any moment."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from midstream.protocol.calls import MessagesParams, Page, SubscribeResult, VerifyResult
from midstream.protocol.digest import message_digest
from midstream.protocol.frames import Closed, Signal
from midstream.protocol.merge import Replica
from midstream.protocol.outcomes import Applied, Gap, PageOutcome
from tests.laws.line import tag_of

if TYPE_CHECKING:
    from midstream.protocol.calls import Cursor
    from midstream.protocol.frames import SyncPayload
    from midstream.protocol.model import Message, Session, Turn
    from midstream.protocol.values import Value
    from tests.laws.line import ChannelFrame, Line

Content = dict[str, Any]
Answer = asyncio.Future[msgspec.Struct]


class Chronicle:
    """What every whole replica showed at each version: all that were there must have shown the same.

    Likewise of each entity at each revision (G5).
    """

    def __init__(self) -> None:
        self._shown: dict[tuple[object, ...], bytes] = {}

    def note(self, replica: Replica) -> None:
        """Hold a replica against those that stood at its version before; it must hold every message."""
        if replica.has_more or replica.from_sequence is None:
            return
        shown = msgspec.msgpack.encode(content(replica))
        self.compare((replica.session_id, replica.epoch, replica.include_internal, replica.version), shown)
        for message in replica.messages():
            self._note_entity(replica, "message", message.message_id, message)
        for turn in replica.turns.values():
            self._note_entity(replica, "turn", turn.turn_id, turn)
        if replica.session is not None:
            self._note_entity(replica, "session", replica.session_id, replica.session)

    def compare(self, key: tuple[object, ...], shown: bytes) -> None:
        """Hold what was shown of one thing at one version against what was shown of it before."""
        assert self._shown.setdefault(key, shown) == shown, f"two states at {key}"

    def _note_entity(self, replica: Replica, kind: str, name: str, entity: Message | Turn | Session) -> None:
        key = (replica.session_id, replica.epoch, kind, name, entity.revision)
        self.compare(key, msgspec.msgpack.encode(entity))

    def __len__(self) -> int:
        """Return how many states of something somebody has shown."""
        return len(self._shown)


def content(replica: Replica) -> Content:
    """Return what a replica shows, as plain values: all but how it came there.

    Of the turns, those that a reader must have: of its messages, and the running one.
    """
    session = replica.session
    messages = replica.messages()
    named = {message.turn_id for message in messages if message.turn_id}
    if session is not None and session.running_turn_id:
        named.add(session.running_turn_id)
    return {
        "session": msgspec.to_builtins(session),
        "turns": {name: msgspec.to_builtins(replica.turns[name]) for name in sorted(named)},
        "messages": msgspec.to_builtins(messages),
        "from_sequence": replica.from_sequence,
    }


class Reader:
    """A subscription and its replica.

    Attributes:
        line: the connection; a lost one is replaced by `rejoin`.
        channel: what the session is called on it, while subscribed.
        tags: the tags of the frames that were applied, in order; of an answer to ``subscribe``: its mode.
        gaps: what was missing; each was repaired as SPEC 4.7 says.
        closed: the codes of ended subscriptions.
        pages: what came of each page.
    """

    def __init__(
        self,
        line: Line,
        session_id: str,
        *,
        include_internal: bool = False,
        limit: int | None = 200,
        pace_ms: int | None = None,
        chronicle: Chronicle | None = None,
    ) -> None:
        self.line = line
        self.replica = Replica(session_id, include_internal=include_internal)
        self.channel: int | None = None
        self.tags: list[str] = []
        self.gaps: list[Gap] = []
        self.closed: list[str] = []
        self.pages: list[PageOutcome] = []
        self._wish: dict[str, Value] = {}
        if limit is not None:
            self._wish["limit"] = limit
        if pace_ms is not None:
            self._wish["pace_ms"] = pace_ms
        self._asked = 0
        self._chronicle = chronicle

    @property
    def session_id(self) -> str:
        """The session that is read."""
        return self.replica.session_id

    def content(self) -> Content:
        """Return what the replica shows."""
        return content(self.replica)

    # Subscribing

    async def join(self, *, cursor: Cursor | None = None) -> None:
        """Subscribe, with a cursor or for a reset, and wait for the sync."""
        await (await self.begin_join(cursor=cursor))

    async def begin_join(self, *, cursor: Cursor | None = None) -> Answer:
        """Send a subscribe. From now on frames of the session are ignored, until the answer (SPEC 4.2)."""
        self._detach()
        self._asked += 1
        number = self._asked

        def attach(result: msgspec.Struct) -> None:
            assert isinstance(result, SubscribeResult)
            if number == self._asked:
                self._attach(result)

        params: dict[str, Value] = {"session_id": self.session_id, **self._wish}
        if self.replica.include_internal:
            params["include_internal"] = True
        if cursor is not None:
            params["cursor"] = msgspec.to_builtins(cursor)
        return await self.line.begin("subscribe", params, attach)

    async def rejoin(self, line: Line) -> None:
        """Go on over another connection, with the cursor."""
        self._detach()
        self.line = line
        await self.join(cursor=self.replica.cursor())

    async def leave(self) -> None:
        """Close the connection. The replica stays as it is."""
        self._detach()
        await self.line.close()

    def _detach(self) -> None:
        if self.channel is not None:
            self.line.routes.pop(self.channel, None)
            self.channel = None

    def _attach(self, result: SubscribeResult) -> None:
        self.channel = result.channel
        self.line.routes[result.channel] = self._take
        self._take_sync(result.sync)

    # What comes

    async def _take(self, frame: ChannelFrame) -> None:
        if isinstance(frame, Closed):
            self.closed.append(frame.code)
            self._detach()
            if frame.retryable:
                await self.begin_join(cursor=self.replica.cursor())
            return
        if isinstance(frame, Signal):
            return
        before = self.replica.messages(), self.replica.version
        outcome = self.replica.apply(frame)
        if isinstance(outcome, Gap):
            assert (self.replica.messages(), self.replica.version) == before
            self.gaps.append(outcome)
            await self.begin_join(cursor=self.replica.cursor() if outcome.keep_cursor else None)
        elif isinstance(outcome, Applied):
            self.tags.append(tag_of(frame))
            self._note()

    def _take_sync(self, payload: SyncPayload) -> None:
        outcome = self.replica.apply_sync(payload)
        assert not isinstance(outcome, Gap), outcome
        self.tags.append(payload.mode)
        self._note()

    def _note(self) -> None:
        if self._chronicle is not None:
            self._chronicle.note(self.replica)

    # Pages and proofs

    async def read_page(self, limit: int = 50) -> None:
        """Read the page below the window and merge it at its place in the stream."""
        await (await self.begin_page(limit))

    async def begin_page(self, limit: int = 50) -> Answer:
        """Ask for the page below the window."""
        replica = self.replica
        params = MessagesParams(
            session_id=self.session_id,
            limit=limit,
            before_sequence=msgspec.UNSET if replica.from_sequence is None else replica.from_sequence,
            include_internal=replica.include_internal,
        )

        def merge(page: msgspec.Struct) -> None:
            assert isinstance(page, Page)
            self.pages.append(self.replica.merge_page(page))
            self._note()

        self.replica.expect_page()
        return await self.line.begin("messages", msgspec.to_builtins(params), merge)

    async def read_all(self, limit: int = 50) -> None:
        """Read pages until nothing is below."""
        while self.replica.has_more:
            await self.read_page(limit)

    async def prove(self) -> None:
        """Compare every message with the server's digests; the answer must stand at the replica's version."""
        messages = self.replica.messages()
        first = messages[0].sequence if messages else 1
        last = max(first, messages[-1].sequence if messages else 1)
        for start in range(first, last + 1, 200):
            await self._prove(start, min(start + 199, last))

    async def _prove(self, start: int, end: int) -> None:
        def compare(answer: msgspec.Struct) -> None:
            assert isinstance(answer, VerifyResult)
            assert (answer.epoch, answer.version) == (self.replica.epoch, self.replica.version)
            assert [tuple(one) for one in answer.digests] == [
                (message.sequence, message.revision, message_digest(message))
                for message in self.replica.messages()
                if start <= message.sequence <= end
            ]

        params: dict[str, Value] = {
            "session_id": self.session_id,
            "from_sequence": start,
            "to_sequence": end,
            "include_internal": self.replica.include_internal,
        }
        await (await self.line.begin("verify", params, compare))

    async def until_version(self, version: int) -> None:
        """Wait until the replica has come so far."""
        await self.line.until(lambda: self.replica.version >= version or not self.line.is_open)
