"""What a case for clients is tried in: a scripted server, the client under test, and the sessions of both.

Whenever the client is asked what it shows, that is held against what the session was at the version that it
says it shows: never torn, doubled or half applied (SPEC 1.4, 5.6).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import UNSET

from midstream.conformance.case import Case, Suite
from midstream.conformance.clients.conversation import Conversation, Mode
from midstream.conformance.clients.driver import Driver, Listed, Refused, Shown
from midstream.conformance.clients.scripted import Asked, Peer, ScriptedServer
from midstream.conformance.clients.truth import check
from midstream.conformance.outcome import Failed, expect, require
from midstream.protocol.calls import (
    MessagesParams,
    PromptParams,
    PromptResult,
    SubscribeParams,
    SubscribeResult,
)
from midstream.protocol.frames import Ping, Pong
from midstream.protocol.values import Value

POLL_S = 0.003
"""Between two looks at what the client shows."""
SCALED = 0.05
"""What a client's own pauses are shortened to, where it can do that."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the cases are run."""

    encoding: Literal["msgpack", "json"] = "msgpack"
    patience: float = 8.0
    """Seconds that the client may take for anything that is due at once."""
    seed: int = 0
    """Where the conversations by chance come from."""


class Scene:
    """One case's server and client; :meth:`connect` or :meth:`open` let the client begin."""

    def __init__(self, driver: Driver, server: ScriptedServer, settings: Settings) -> None:
        """Begin without a connection."""
        self.driver = driver
        self.server = server
        self.settings = settings
        self.talks: dict[str, Conversation] = {}
        """The sessions that are open, by id."""
        self._taken = 0
        self._started: list[asyncio.Task[object]] = []

    @property
    def log(self) -> list[str]:
        """What went over the wire, and what the client's program said."""
        return [*self.server.log, *(f"! {line}" for line in self.driver.errors)]

    @property
    def patience(self) -> float:
        """Seconds that the client may take for anything that is due at once."""
        return self.settings.patience

    @property
    def scale(self) -> float:
        """What the client's pauses are shortened to; 1 where it cannot do that."""
        return SCALED if "scale" in self.driver.ready.can else 1.0

    # The client

    async def connect(
        self, *, encoding: Literal["msgpack", "json"] | None = None, tokens: Sequence[str] = ()
    ) -> None:
        """Let the client begin to connect; of ``tokens`` it uses the next one whenever it needs one."""
        encoding = encoding or self.settings.encoding
        given: list[Value] = [*tokens]
        await self.tell("connect", url=self.server.url, encoding=encoding, scale=self.scale, tokens=given)

    async def tell(self, do: str, *, within: float | None = None, **params: Value) -> msgspec.Raw:
        """Give the client an instruction that it can carry out; see :meth:`Driver.ask`."""
        try:
            return await self.driver.ask(do, within=within or self.patience, **params)
        except Refused as refused:
            raise Failed(f"the client could not carry out {do!r}: {refused}", seen=params) from refused

    def start(self, do: str, *, within: float | None = None, **params: Value) -> asyncio.Task[msgspec.Raw]:
        """Give the client an instruction that takes its time; the task has the answer."""
        task = asyncio.create_task(self.tell(do, within=within, **params))
        self._started.append(task)
        return task

    def attempt(self, do: str, **params: Value) -> asyncio.Task[bool]:
        """Give the client an instruction that it may fail to carry out; the task says whether it did."""

        async def attempting() -> bool:
            try:
                await self.driver.ask(do, within=self.patience + 30 * self.scale, **params)
            except Refused:
                return False
            return True

        task = asyncio.create_task(attempting())
        self._started.append(task)
        return task

    async def again_or_not(self, peer: Peer, first: Asked, attempt: asyncio.Task[bool]) -> Asked | None:
        """Wait until a call comes again as it was, or the client gave it up, which it may."""
        coming = asyncio.create_task(self.call(peer, first.method))
        both: set[asyncio.Task[object]] = {coming, attempt}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            coming.cancel()
            expect(f"whether {first.method!r} succeeded without an answer", attempt.result(), False)  # noqa: FBT003 - what is expected
            return None
        return self.expect_same(first, coming.result())

    def expect_same(self, first: Asked, again: Asked) -> Asked:
        """Expect that a call that comes again is unchanged."""
        expect(f"the params of {first.method!r}, sent again", again.sent, first.sent)
        return again

    async def end(self) -> None:
        """Give up what was started and is not done."""
        for task in self._started:
            task.cancel()
        await asyncio.gather(*self._started, return_exceptions=True)

    async def hold(self, talk: Conversation, *, limit: int = 50, create: bool = False) -> None:
        """Let the client open a session, and keep it from now on."""
        self.talks[talk.session_id] = talk
        await self.tell(
            "open", session=talk.session_id, limit=limit, include_internal=talk.internal, create=create
        )

    async def open(self, talk: Conversation, *, limit: int = 50, mode: Mode | None = None) -> Peer:
        """Connect, open one session and bring it up to now; return the connection."""
        await self.connect()
        await self.hold(talk, limit=limit)
        peer = await self.peer()
        await self.sync(peer, talk, mode=mode)
        await self.reached(talk)
        return peer

    async def peer(self) -> Peer:
        """Wait for the client's next connection, and its hello."""
        # its own pauses come on top of what is due at once
        peer = await self.server.peer(self._taken, within=self.patience + 30 * self.scale)
        self._taken += 1
        return peer

    async def call(self, peer: Peer, method: str, *, within: float | None = None) -> Asked:
        """Wait for the next call of this method."""
        return await peer.call(method, within=within or self.patience)

    async def either(self, peer: Peer, *methods: str) -> Asked:
        """Wait for the next call of any of these methods."""
        return await peer.until(lambda: peer.take(*methods), f"call {methods}", within=self.patience)

    async def subscribed(self, peer: Peer) -> tuple[Asked, SubscribeParams]:
        """Wait for the next ``subscribe``."""
        call = await self.call(peer, "subscribe")
        if not isinstance(call.params, SubscribeParams):
            raise TypeError(call.params)
        return call, call.params

    async def sync(self, peer: Peer, talk: Conversation, *, mode: Mode | None = None) -> SubscribeParams:
        """Wait for the next ``subscribe`` of a session, answer it, and return what was asked."""
        call, asked = await self.subscribed(peer)
        expect("the session that is subscribed to", asked.session_id, talk.session_id)
        expect("include_internal", asked.include_internal, talk.internal)
        await self.answer_sync(peer, call, talk, mode=mode)
        return asked

    async def answer_sync(
        self, peer: Peer, call: Asked, talk: Conversation, *, mode: Mode | None = None
    ) -> None:
        """Answer a ``subscribe`` with what the cursor lacks."""
        asked = call.params
        if not isinstance(asked, SubscribeParams):
            raise TypeError(asked)
        cursor = None if asked.cursor is UNSET else asked.cursor
        limit = 0 if asked.limit is UNSET else asked.limit
        sync = talk.sync(None if mode == "reset" else cursor, limit=limit, mode=mode)
        await peer.answer(call, SubscribeResult(channel=talk.channel, sync=sync))

    # What the client shows

    async def shown(self, talk: Conversation) -> Shown:
        """Ask what the client shows, and hold it against the version that it says it is."""
        raw = await self.tell("state", session=talk.session_id)
        state = msgspec.json.decode(raw, type=Shown)
        check(talk, state)
        return state

    async def until(
        self, talk: Conversation, holds: Callable[[Shown], object], what: str, *, within: float | None = None
    ) -> Shown:
        """Look until what the client shows is as it should be.

        Raises:
            Failed: it is not in time, or at one of the looks it was torn.

        """
        seconds = within or self.patience
        state: Shown | None = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    state = await self.shown(talk)
                    if holds(state):
                        return state
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise Failed(f"the client does not show {what} within {seconds:g} s", seen=state) from None

    async def reached(self, talk: Conversation, *, first: int | None = None) -> Shown:
        """Wait until the replica stands, live, where the session does; its window begins at ``first``."""
        version = talk.version
        state = await self.until(
            talk, lambda shown: shown.version == version and shown.state == "live", f"version {version}"
        )
        if first is not None:
            held = [sequence for sequence, _, _ in state.digests]
            expected = [number for number in sorted(talk.now.messages) if number >= first]
            expect(f"the messages of the window from {first}", held, expected)
        return state

    async def goes_on(self, peer: Peer, talk: Conversation) -> Shown:
        """Show that the subscription lives: the next version is applied, and nothing was subscribed again."""
        await peer.send(talk.title(f"title {talk.version}"))
        state = await self.reached(talk)
        expect("subscribe calls that were not called for", peer.waiting("subscribe"), 0)
        return state

    async def stays(self, talk: Conversation, version: int) -> Shown:
        """Expect that the replica stands at ``version`` still."""
        state = await self.shown(talk)
        expect("the version that is shown", state.version, version)
        return state

    async def heard(self, peer: Peer) -> None:
        """Wait until the client answered a ping: so it has read all that was sent before."""
        nonce = len(peer.frames)
        await peer.send(Ping(nonce))

        def ponged() -> bool | None:
            return any(isinstance(one, Pong) and one.nonce == nonce for one in peer.frames) or None

        await peer.until(ponged, "answer a ping", within=self.patience)

    async def again(self, peer: Peer, talk: Conversation, *, cursor: int | None) -> SubscribeParams:
        """Expect another ``subscribe``, with the cursor of this version or none; answer it."""
        call, asked = await self.subscribed(peer)
        self.expect_cursor(talk, asked, cursor)
        await self.shown(talk)
        await self.answer_sync(peer, call, talk)
        await self.reached(talk)
        return asked

    def expect_cursor(self, talk: Conversation, asked: SubscribeParams, version: int | None) -> None:
        """Expect that a ``subscribe`` has the cursor of this version, or none."""
        if version is None:
            expect("the cursor (none)", asked.cursor, UNSET)
            return
        then = talk.at(version)
        if asked.cursor is UNSET or then is None:
            raise Failed("the client subscribed without its cursor", expected=version)
        expect("the cursor's version", asked.cursor.version, version)
        expect("the cursor's epoch", asked.cursor.epoch, then.epoch)
        require(
            asked.cursor.durable <= then.durable,
            "the cursor's durable is above the last durable version",
            expected=then.durable,
            seen=asked.cursor.durable,
        )

    # Calls that many cases make

    async def page(
        self, peer: Peer, talk: Conversation, limit: int = 2
    ) -> tuple[asyncio.Task[msgspec.Raw], Asked]:
        """Let the client load earlier messages; return what waits for that, and the call that came."""
        loading = self.start("page", session=talk.session_id, limit=limit, within=30)
        call = await self.call(peer, "messages")
        if not isinstance(call.params, MessagesParams) or call.params.stored or call.params.segment:
            raise Failed("a page for the replica was asked with stored or segment", seen=call.sent)
        expect("include_internal of a page", call.params.include_internal, talk.internal)
        return loading, call

    async def verifies(self, peer: Peer, talk: Conversation) -> tuple[asyncio.Task[msgspec.Raw], Asked]:
        """Let the client compare itself; return what waits for that, and the call that came."""
        comparing = self.start("verify", session=talk.session_id)
        return comparing, await self.call(peer, "verify")

    async def prompted(self, peer: Peer, talk: Conversation, text: str, message_id: str) -> PromptParams:
        """Let the client send a prompt, and leave it unanswered; return what came."""
        await self.tell("prompt", session=talk.session_id, text=text, message_id=message_id)
        return await self.prompt(peer)

    async def prompt(self, peer: Peer) -> PromptParams:
        """Wait for the next ``prompt``, and leave it unanswered."""
        call = await self.call(peer, "prompt")
        if not isinstance(call.params, PromptParams):
            raise TypeError(call.params)
        return call.params

    async def started(self, peer: Peer, call: Asked, turn_id: str) -> None:
        """Answer a ``prompt`` by the turn that it started."""
        message_id = str(call.value("message_id"))
        await peer.answer(call, PromptResult(state="started", message_id=message_id, turn_id=turn_id))

    async def listed(self, holds: Callable[[Listed], object], what: str) -> Listed:
        """Look until the list of sessions is as it should be."""
        seen: Listed | None = None
        try:
            async with asyncio.timeout(self.patience):
                while True:
                    seen = msgspec.json.decode(await self.tell("list"), type=Listed)
                    if holds(seen):
                        return seen
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise Failed(f"the client's list is not {what} within {self.patience:g} s", seen=seen) from None


ClientSuite = Suite[Scene]
ClientCase = Case[Scene]
