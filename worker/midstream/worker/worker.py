"""The worker: one connection, kept; the turns that it was offered and took (SPEC 14)."""

from __future__ import annotations

import asyncio
import base64
from random import Random, SystemRandom
from typing import Literal

import msgspec
import structlog

from midstream.agents.turn import Agent
from midstream.client.calls import Answer
from midstream.client.clock import Clock, SystemClock
from midstream.client.credentials import Token
from midstream.client.errors import (
    ClientClosed,
    ClientError,
    ConnectionLost,
    IncompatibleServer,
    MidstreamError,
)
from midstream.client.exchange import Exchange
from midstream.client.link import Link, LinkOptions
from midstream.client.reconnect import DEFAULT_POLICY, Policy, full_jitter
from midstream.client.timers import Timers
from midstream.client.transport import MAX_FRAME_BYTES, Encoding, Transport, codec_named
from midstream.protocol.agent_calls import (
    RegisterParams,
    RegisterResult,
    UnregisterParams,
)
from midstream.protocol.agents import Context
from midstream.protocol.frames import (
    Ack,
    Answered,
    Detached,
    ErrorFrame,
    Offer,
    Result,
    ServerFrame,
    WelcomeInfo,
    WriteRefused,
    Wrote,
)
from midstream.worker.contexts import read_context
from midstream.worker.turns import Turns, TurnTools

log = structlog.get_logger("midstream.worker")


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker can be told beyond what it is; the defaults are right."""

    token: Token | None = None
    """Says who the worker is, with the scope ``agent``: a text, or a function that returns one for now."""
    encoding: Encoding = "msgpack"
    max_frame_bytes: int = MAX_FRAME_BYTES
    """The longest frame that is taken from the server."""
    policy: Policy = DEFAULT_POLICY
    """When to connect, ping and give up."""


DEFAULT_OPTIONS = WorkerOptions()


class Worker:
    """Runs an agent's turns for a server, in a process of its own.

    ``await worker.run()`` connects and serves until :meth:`drain` or :meth:`close`, over any number of
    connections: a turn goes on where the server has it, and each write is applied once. All methods
    belong to one event loop.

    Attributes:
        registered: set while the server knows this worker, and offers it turns.

    """

    def __init__(  # noqa: PLR0913  # what a worker is, and what a simulation gives it
        self,
        url: str,
        agent: Agent,
        *,
        name: str | None = None,
        concurrency: int = 1,
        resumes: bool = False,
        clock: Clock | None = None,
        random: Random | None = None,
        options: WorkerOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Prepare to run ``agent`` for the server at ``url`` (``ws://`` or ``wss://``).

        ``name`` is the worker's, and no other's: a second worker of this name replaces the first. With a
        name that it keeps when it is started again, its turns come back to it at once; without one it
        gets one that nothing else has. It runs ``concurrency`` turns at a time. ``resumes`` says that
        the agent can go on with a turn that another process began: see :attr:`Turn.resumed`.

        Raises:
            ValueError: the URL is not one of a WebSocket, or the concurrency is less than 1.

        """
        if not url.startswith(("ws://", "wss://")):
            raise ValueError(f"url is {url!r}, but must begin with ws:// or wss://")
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}, but must be at least 1")
        self._random = random or SystemRandom()
        self.name = name or self._new_id("worker")
        self._registration = RegisterParams(
            name=self.name, instance=self._new_id("instance"), concurrency=concurrency, resumes=resumes
        )
        self._policy = options.policy
        self._codec = codec_named(options.encoding)
        self._timers = Timers(self._fail)
        self._exchange = Exchange(self._codec, self._random, self._timers, timeout_s=None)
        link = LinkOptions(
            url=url,
            codec=self._codec,
            token=options.token,
            policy=options.policy,
            max_frame_bytes=options.max_frame_bytes,
        )
        self._link = Link(link, self, clock=clock or SystemClock(), random=self._random, timers=self._timers)
        self._transport: Transport | None = None
        self.registered = asyncio.Event()
        self._attempts = 0
        tools = TurnTools(
            exchange=self._exchange,
            timers=self._timers,
            codec=self._codec,
            random=self._random,
            policy=options.policy,
            way=self,
            new_id=self._new_id,
            fail=self._end,
        )
        self._turns = Turns(agent, tools, concurrency=concurrency, resumes=resumes)
        self._sending = False
        self._closed = asyncio.Event()
        self._error: BaseException | None = None

    @property
    def turns(self) -> int:
        """How many turns it has now."""
        return len(self._turns)

    async def run(self) -> None:
        """Serve until :meth:`drain` or :meth:`close`.

        Raises:
            ConnectionRejected: the server said not to come back; 4506: another worker took the name.
            MidstreamError: the server does not take workers, or does not speak this protocol.
            Exception: a fault of the worker's own.

        """
        self._link.start()
        try:
            await self._closed.wait()
        finally:
            await self.close()
        if self._error is not None:
            raise self._error

    async def drain(self, seconds: float) -> None:
        """Take no more turns, let those that run end for so many seconds, give up the rest, and close.

        What is given up is offered to other workers at once. Returns when nothing runs any more.
        """
        self._turns.is_full = True
        self._turns.call("agent.unregister", UnregisterParams())
        try:
            async with asyncio.timeout(seconds):
                await self._turns.idle.wait()
        except TimeoutError:
            log.info("turns_given_up", turns=len(self._turns))
            await self._turns.give_up()
        await self.close()

    async def close(self) -> None:
        """End at once, and return when nothing runs any more; the server notices that its turns are lost."""
        self._end(None)
        await self._turns.heed()
        await self._link.close()

    # What the link tells

    def link_opened(self, transport: Transport, welcome: WelcomeInfo) -> None:
        """Register, and then attach to the turns that were held."""
        self._exchange.problem = None
        self._transport = transport
        self._exchange.connect(transport, welcome.limits)
        self._exchange.send()
        self._register()

    def link_frame(self, frame: ServerFrame) -> None:
        """Bring a frame where it belongs; those of channels that are not ours any more are ignored."""
        if isinstance(frame, (Ack, Wrote, WriteRefused, Answered, Detached)):
            self._turns.frame(frame)
        elif isinstance(frame, Offer):
            self._turns.offered(frame)
        elif isinstance(frame, ErrorFrame) and frame.id is None:
            log.warning("frame_refused", code=frame.error.code, error=frame.error.message)
        elif isinstance(frame, (Result, ErrorFrame)):
            self._exchange.answered(frame)

    def link_down(self, state: Literal["connecting", "offline"]) -> None:
        """Learn that there is no connection: agents go on until their windows are full."""
        if state == "offline":
            log.warning("worker_not_connected", worker=self.name, problem=self._link.problem)
        self._exchange.problem = self._link.problem
        self._transport = None
        self.registered.clear()
        self._turns.disconnected()
        self._exchange.disconnect()

    def link_ended(self, error: MidstreamError) -> None:
        """Learn that there will be no connection any more."""
        self._end(error)

    # What writers need

    def wrote(self) -> None:
        """Send, in this tick of the loop, what there is to send by then."""
        if not self._sending and self._transport is not None:
            self._sending = True
            asyncio.get_running_loop().call_soon(self._timers.run, self._send)

    async def context(self, session_id: str, limit: int | None) -> Context:
        """Return the session's last summary and the messages behind it, whole, internal ones included."""
        return await read_context(self._exchange, session_id, limit)

    # Registering

    def _register(self) -> None:
        if self.registered.is_set() or self._transport is None:
            return
        self._exchange.start(
            "agent.register", self._registration, self._registering, repeatable=False, urgent=True
        )

    def _registering(self, answer: Answer) -> None:
        if isinstance(answer, RegisterResult):
            log.info("worker_registered", worker=self.name, lease_ms=answer.lease_ms)
            self.registered.set()
            self._attempts = 0
            self._turns.registered()
            if self._turns.is_full:
                self._turns.call("agent.unregister", UnregisterParams())
        elif isinstance(answer, ConnectionLost):
            return  # the next connection registers
        elif isinstance(answer, MidstreamError) and answer.retryable:
            self._timers.later(full_jitter(self._random, self._attempts, self._policy), self._register)
            self._attempts += 1
        else:
            self._end(answer if isinstance(answer, MidstreamError) else _strange("agent.register", answer))

    def _send(self) -> None:
        self._sending = False
        if self._transport is not None:
            self._turns.send(self._transport)

    # Ending

    def _end(self, error: BaseException | None) -> None:
        """End all that needs no waiting; once."""
        if self._closed.is_set():
            return
        self._error = error
        self._closed.set()
        self._turns.end("closed")
        self._exchange.close(ClientClosed())
        self._timers.cancel_all()
        self._link.abort()

    def _fail(self, failure: Exception) -> None:
        """End because of a fault in this worker, which :meth:`run` raises."""
        error = ClientError(
            f"The worker failed and is closed: {failure!r}. This is a fault of the worker; please report it."
        )
        error.__cause__ = failure
        self._end(error)

    def _new_id(self, kind: str) -> str:
        bits = self._random.getrandbits(64).to_bytes(8)
        return f"{kind}_{base64.b32encode(bits).decode().rstrip('=').lower()}"


def _strange(method: str, answer: Answer) -> IncompatibleServer:
    return IncompatibleServer(f"{method!r} was answered by a {type(answer).__name__}.")
