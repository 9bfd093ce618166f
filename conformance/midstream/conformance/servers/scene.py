"""What a case for servers is tried in: connections, sessions and workers of its own."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

from midstream.conformance.case import Case
from midstream.conformance.outcome import Failed, Skipped, expect
from midstream.conformance.proxy import Proxy, proxy_to
from midstream.conformance.servers.agent import Agent, Held
from midstream.conformance.servers.book import CallRefused
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.ledger import Ledger
from midstream.conformance.servers.opening import open_socket
from midstream.conformance.servers.peer import Peer
from midstream.conformance.servers.subscription import Subscription
from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.merge import Replica

USER_TEXT = {"type": "text", "text": "Say something"}
RESTART_SECONDS = 60.0


@dataclass(kw_only=True)
class Target:
    """The server under test, and what is there to test it with.

    Attributes:
        url: where it is.
        token: what `hello` carries.
        restart: a command that ends the server's process at once and starts another one on the same data.
        drain: a command that tells the server to stop in good order, and does not wait for it.
        workers: whether its turns are left to workers; found out by `probe`.
        why_no_workers: the reason, where they are not.
        welcome: what it said to the first connection.
    """

    url: str
    token: str | None = None
    restart: str | None = None
    drain: str | None = None
    seed: int = 0
    workers: bool = False
    why_no_workers: str = "the server has not been asked whether it leaves turns to workers"
    welcome: Map = field(default_factory=dict[str, Any])

    async def probe(self, *, agent: str = "auto") -> None:
        """Find out what can be tested."""
        async with scene_of(self) as scene:
            peer = await scene.open()
            self.welcome = peer.welcome
            if agent == "own":
                self.why_no_workers = "turns are left to the server's own agent (--agent own)"
                return
            try:
                await peer.call("agent.register", name=scene.new_id("w"), instance="1")
            except CallRefused as refusal:
                self.why_no_workers = f"the server leaves no turn to workers: {refusal.info['message']}"
                return
            self.workers = True


class Scene:
    """What one case has. Everything that is opened is closed at its end, and judged once more.

    Attributes:
        target: the server under test.
        rng: the case's own chances; the same for the same seed.
        log: what went over the wire.
    """

    def __init__(self, target: Target, name: str) -> None:
        """Have nothing open."""
        self.target = target
        self.name = name
        self.rng = Random(f"{target.seed}:{name}")  # noqa: S311  # repeatable, not secret
        self.log: list[str] = []
        self.ledger = Ledger()
        self._stack = AsyncExitStack()
        self._peers: list[Peer] = []

    # Connections

    async def open(
        self,
        codec: Codec = MSGPACK,
        *,
        url: str | None = None,
        hello: bool = True,
        **more: Any,  # noqa: ANN401  # of websockets
    ) -> Peer:
        """Open a connection, and say hello on it."""
        socket = await open_socket(url or self.target.url, [codec.subprotocol], **more)
        expect(
            "the server chooses the subprotocol that was offered (3.1)", socket.subprotocol, codec.subprotocol
        )
        peer = Peer(socket, codec, self.ledger, self.log, f"c{len(self._peers) + 1}")
        self._peers.append(peer)
        self._stack.push_async_callback(peer.close)
        if hello:
            await peer.hello(self.target.token)
        return peer

    async def proxy(self) -> Proxy:
        """Have a proxy to the server, whose faults the case chooses."""
        if self.target.url.startswith("wss:"):
            raise Skipped("the proxy does not carry TLS; test the server without it")
        return await self._stack.enter_async_context(proxy_to(self.target.url))

    async def restart(self) -> None:
        """End the server's process at once, and wait until another one serves."""
        if self.target.restart is None:
            raise Skipped("how to restart the server was not said (--restart)")
        await _carry_out("--restart", self.target.restart)
        async with asyncio.timeout(RESTART_SECONDS):
            while True:
                try:
                    socket = await open_socket(self.target.url, [MSGPACK.subprotocol])
                    await socket.close()
                    break
                except (OSError, TimeoutError):
                    await asyncio.sleep(0.05)

    async def drain(self) -> None:
        """Tell the server to stop in good order."""
        if self.target.drain is not None:
            await _carry_out("--drain", self.target.drain)

    # Sessions

    def new_id(self, word: str = "conform") -> str:
        """Return an id that nobody has."""
        return f"{word}-{uuid4().hex}"

    async def session(self, peer: Peer, **params: Any) -> str:  # noqa: ANN401 - of SPEC
        """Make a session, and return its id."""
        name = self.new_id()
        await peer.call("sessions.create", session_id=name, **params)
        return name

    async def follow(self, peer: Peer, session_id: str, **params: Any) -> Subscription:  # noqa: ANN401 - of SPEC
        """Subscribe with a first page."""
        given: Map = {"limit": 50, **params}
        return await peer.subscribe(session_id, **given)

    async def prompt(self, peer: Peer, session_id: str, text: str = "Say something", **more: Any) -> Map:  # noqa: ANN401 - of SPEC
        """Hand in a text under a new id."""
        params = {"message_id": self.new_id("m"), "parts": [{"type": "text", "text": text}], **more}
        return await peer.call("prompt", session_id=session_id, **params)

    # Turns

    async def agent(
        self,
        name: str | None = None,
        instance: str | None = None,
        **more: Any,  # noqa: ANN401 - of SPEC
    ) -> Agent:
        """Have a worker of the case's own."""
        peer = await self.open()
        agent = Agent(peer, name or self.new_id("w"), instance or self.new_id("i"))
        await agent.register(**more)
        return agent

    async def turn(self, peer: Peer, session_id: str, agent: Agent | None = None) -> Held:
        """Start a turn by a prompt, and let a worker hold it."""
        worker = agent or await self.agent()
        answer = await self.prompt(peer, session_id)
        if answer["state"] != "started":
            raise Failed("a prompt where no turn runs starts one (8.1)", expected="started", seen=answer)
        return await worker.attach(session_id, answer["turn_id"])

    # Proofs

    async def same(self, subscription: Subscription, peer: Peer) -> None:
        """Fail unless a replica equals what the server has: by digests, by pages, and by a new copy."""
        await peer.ping()
        internal = subscription.replica.include_internal
        await self.verify(subscription, peer)
        fresh_peer = await self.open(peer.codec)
        count = subscription.session["message_count"]
        fresh = await fresh_peer.subscribe(subscription.session_id, limit=200, include_internal=internal)
        await self.read_all(fresh, fresh_peer)
        held = subscription.messages
        first = subscription.replica.from_sequence or count + 1
        expect(
            "G7: a replica equals a new copy",
            held,
            [one for one in fresh.messages if one["sequence"] >= first],
        )
        expect("G7: the session equals that of a new copy", subscription.session, fresh.session)
        shared = subscription.turns.keys() & fresh.turns.keys()
        expect(
            "G7: turns equal those of a new copy",
            {name: subscription.turns[name] for name in shared},
            {name: fresh.turns[name] for name in shared},
        )
        await fresh_peer.close()

    async def verify(self, subscription: Subscription, peer: Peer) -> None:
        """Fail unless the digests of `verify` are those of the replica (5.6)."""
        first = subscription.replica.from_sequence or 1
        last = max(first, subscription.session["message_count"])
        for start in range(first, last + 1, 200):
            end = min(start + 199, last)
            answer = await peer.call(
                "verify",
                session_id=subscription.session_id,
                from_sequence=start,
                to_sequence=end,
                include_internal=subscription.replica.include_internal,
            )
            held = [one for one in subscription.digests() if start <= one[0] <= end]
            expect("5.6: digests and revisions equal those of the replica", answer["digests"], held)

    async def read_all(self, subscription: Subscription, peer: Peer) -> None:
        """Read pages until nothing is below, and merge them."""
        while subscription.replica.has_more:
            params: Map = {"session_id": subscription.session_id, "limit": 50}
            if subscription.replica.include_internal:
                params["include_internal"] = True
            if subscription.replica.from_sequence is not None:
                params["before_sequence"] = subscription.replica.from_sequence
            subscription.replica.expect_page()
            page = await peer.call("messages", **params)
            subscription.replica.merge_page(page_of(peer, page))

    async def copy(self, peer: Peer, session_id: str, *, internal: bool = False) -> list[Map]:
        """Return all messages that may be seen, page by page."""
        items: list[Map] = []
        before: Map = {}
        while True:
            page = await peer.call(
                "messages", session_id=session_id, limit=200, include_internal=internal, **before
            )
            items = page["items"] + items
            if not page["has_more"]:
                return items
            before = {"before_sequence": page["next_before_sequence"]}

    async def close(self) -> None:
        """Close everything."""
        await self._stack.aclose()

    def judge(self) -> None:
        """Fail where something that came over any connection broke a rule."""
        for peer in self._peers:
            peer.check()


async def _carry_out(option: str, command: str) -> None:
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*shlex.split(command), stdin=nothing, stdout=nothing)
    if code := await process.wait():
        raise RuntimeError(f"the command of {option} ended with {code}")


def page_of(peer: Peer, page: Map) -> Any:  # noqa: ANN401  # a page, typed
    """Return a page as the replica takes it."""
    return peer.codec.decode_result("messages", peer.codec.raw(page))


def copied(subscription: Subscription) -> Replica:
    """Return a copy of a replica, as a cache keeps it."""
    saved = subscription.replica.save()
    if saved is None:
        raise Failed("a replica after a sync has a cursor", expected="a cursor", seen=None)
    return Replica.restore(saved)


@asynccontextmanager
async def scene_of(target: Target, case: Case[Scene] | None = None) -> AsyncGenerator[Scene]:
    """Have a scene for a case.

    Raises:
        Skipped: the case needs what is not there.

    """
    needs = frozenset[str]() if case is None else case.needs
    if "agent" in needs and not target.workers:
        raise Skipped(target.why_no_workers)
    if "restart" in needs and target.restart is None:
        raise Skipped("how to restart the server was not said (--restart)")
    if "drain" in needs and target.drain is None:
        raise Skipped("how to stop the server in good order was not said (--drain)")
    if "own" in needs and target.workers:
        raise Skipped("the server leaves its turns to workers, and has no agent of its own")
    scene = Scene(target, "" if case is None else case.id)
    try:
        yield scene
        scene.judge()
    finally:
        await scene.close()
