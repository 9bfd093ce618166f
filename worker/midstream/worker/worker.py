"""The worker: one connection, kept; the turns that it was offered and took (SPEC 14)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from random import Random, SystemRandom
from typing import Literal

import msgspec
import structlog
from msgspec import UNSET

from midstream.agents.turn import Agent
from midstream.client.calls import Answer
from midstream.client.clock import Clock, SystemClock
from midstream.client.errors import (
    ClientClosed,
    ClientError,
    ConnectionLost,
    Forbidden,
    IncompatibleServer,
    InvalidRequest,
    MidstreamError,
    NotFound,
    Refused,
)
from midstream.client.exchange import Exchange
from midstream.client.link import Link, LinkOptions
from midstream.client.reconnect import DEFAULT_POLICY, Policy, full_jitter
from midstream.client.timers import Timers
from midstream.client.transport import MAX_FRAME_BYTES, Encoding, Transport, codec_named
from midstream.protocol.agent_calls import (
    AttachParams,
    AttachResult,
    DeclineParams,
    DetachParams,
    RegisterParams,
    RegisterResult,
    UnregisterParams,
)
from midstream.protocol.calls import MessagesParams, Page
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
from midstream.protocol.model import Message
from midstream.worker.attachment import Attachment
from midstream.worker.held import HeldTurn

log = structlog.get_logger("midstream.worker")

HEED_SECONDS = 1.0
"""How long agents that are cancelled get to heed it."""
GIVE_UP_SECONDS = 2.0
"""How long a worker that goes waits for the server to hear so; what it does not hear it notices."""
TURN_REASONS = frozenset({"turn_ended", "fenced", "turn_taken", "not_remote"})
"""Why a turn is not this worker's: reasons of ``refused``."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker can be told beyond what it is; the defaults are right."""

    token: str | None = None
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
        self._agent = agent
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
        self._registered = False
        self._attempts = 0
        self._draining = False
        self._turns: dict[str, HeldTurn] = {}
        self._channels: dict[int, HeldTurn] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = False
        self._idle = asyncio.Event()
        self._idle.set()
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
        self._draining = True
        self._call("agent.unregister", UnregisterParams())
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            log.info("turns_given_up", turns=len(self._turns))
            await self._give_up()
        await self.close()

    async def close(self) -> None:
        """End at once, and return when nothing runs any more; the server notices that its turns are lost."""
        self._end(None)
        await self._heed()
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
            turn = self._channels.get(frame.channel)
            if turn is not None:
                if isinstance(frame, Detached):
                    del self._channels[frame.channel]
                self._follow(turn, turn.frame(frame))
                self.wrote()
        elif isinstance(frame, Offer):
            self._offered(frame)
        elif isinstance(frame, ErrorFrame) and frame.id is None:
            log.warning("frame_refused", code=frame.error.code, error=frame.error.message)
        elif isinstance(frame, (Result, ErrorFrame)):
            self._exchange.answered(frame)

    def link_down(self, state: Literal["connecting", "offline"]) -> None:
        """Learn that there is no connection: agents go on until their windows are full."""
        if state == "offline":
            log.info("worker_disconnected", problem=self._link.problem)
        self._exchange.problem = self._link.problem
        self._transport = None
        self._registered = False
        self._channels.clear()
        for turn in self._turns.values():
            turn.attachment.lost()
            turn.is_asking = False
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

    async def messages(self, session_id: str, limit: int | None) -> list[Message]:
        """Return the session's newest messages, ascending and whole, internal ones included."""
        found: list[Message] = []
        before: int | msgspec.UnsetType = UNSET
        most = self._exchange.limits.page_messages
        while limit is None or len(found) < limit:
            params = MessagesParams(
                session_id=session_id,
                limit=most if limit is None else min(most, limit - len(found)),
                before_sequence=before,
                include_internal=True,
            )
            page = await self._exchange.ask("messages", params, Page, repeatable=True)
            found = page.items + found
            before = page.next_before_sequence
            if not page.has_more or before is UNSET:
                break
        return found

    # Registering and attaching

    def _register(self) -> None:
        if self._registered or self._transport is None:
            return
        self._exchange.start(
            "agent.register", self._registration, self._registering, repeatable=False, urgent=True
        )

    def _registering(self, answer: Answer) -> None:
        if isinstance(answer, RegisterResult):
            log.info("worker_registered", worker=self.name, lease_ms=answer.lease_ms)
            self._registered = True
            self._attempts = 0
            for turn in list(self._turns.values()):
                self._attach(turn)
            if self._draining:
                self._call("agent.unregister", UnregisterParams())
        elif isinstance(answer, ConnectionLost):
            return  # the next connection registers
        elif isinstance(answer, MidstreamError) and answer.retryable:
            self._timers.later(full_jitter(self._random, self._attempts, self._policy), self._register)
            self._attempts += 1
        else:
            self._end(answer if isinstance(answer, MidstreamError) else _strange("agent.register", answer))

    def _offered(self, offer: Offer) -> None:
        if offer.turn_id in self._turns:
            return
        has_room = len(self._turns) < self._registration.concurrency
        if self._draining or not has_room or (offer.resumed and not self._registration.resumes):
            self._call("agent.decline", DeclineParams(session_id=offer.session_id, turn_id=offer.turn_id))
            return
        attachment = Attachment(self._codec, offer.session_id, offer.turn_id, limits=self._exchange.limits)
        turn = HeldTurn(attachment, self, self._agent, self._new_id)
        self._turns[offer.turn_id] = turn
        self._idle.clear()
        self._attach(turn)

    def _attach(self, turn: HeldTurn) -> None:
        """Call ``agent.attach``, unless that is under way, done, or of no use any more."""
        if turn.is_over or turn.is_asking or turn.attachment.channel is not None or not self._registered:
            return
        turn.is_asking = True
        params: AttachParams = turn.attachment.params()
        reply = partial(self._attaching, turn)
        self._exchange.start("agent.attach", params, reply, lane=turn.turn_id, repeatable=False)

    def _attaching(self, turn: HeldTurn, answer: Answer) -> None:
        turn.is_asking = False
        if isinstance(answer, AttachResult) and not turn.is_over:
            self._channels[answer.channel] = turn
            again = turn.attached(answer)
            self._watch(turn)
            if turn.is_over:
                self._channels.pop(answer.channel)
                self._call("agent.detach", DetachParams(channel=answer.channel))
            self._follow(turn, again)
            self.wrote()
        elif isinstance(answer, AttachResult):  # it was given up meanwhile
            self._call("agent.detach", DetachParams(channel=answer.channel))
        elif isinstance(answer, ConnectionLost):
            return  # attached to when there is a connection again
        elif isinstance(answer, MidstreamError) and not _is_final(answer):
            self._again(turn, answer.message)
        else:
            self._let_go(turn, answer.message if isinstance(answer, MidstreamError) else "no attach result")

    def _follow(self, turn: HeldTurn, again: str | None) -> None:
        """Do what follows from what a turn was told."""
        if turn.is_over:
            self._let_go(turn, "over")
        elif again is not None:
            self._again(turn, again)

    def _again(self, turn: HeldTurn, why: str) -> None:
        log.info("attaching_again", turn_id=turn.turn_id, why=why)
        pause = full_jitter(self._random, turn.attempts - 1, self._policy) if turn.attempts else 0.0
        self._timers.later(pause, lambda: self._attach(turn))
        turn.attempts += 1

    def _let_go(self, turn: HeldTurn, why: str) -> None:
        """Stop a turn's agent; the turn is forgotten when that has heeded it."""
        channel = turn.attachment.channel
        turn.end(why)
        if channel is not None:
            self._channels.pop(channel, None)
        if turn.task is None:
            log.debug("turn_not_taken", turn_id=turn.turn_id, why=why)
            self._forget(turn)

    def _watch(self, turn: HeldTurn) -> None:
        task = turn.task
        if task is not None and task not in self._tasks:
            self._tasks.add(task)
            task.add_done_callback(partial(self._done, turn))

    def _done(self, turn: HeldTurn, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(
                error
            )  # what an agent raises gets no further than its task, unless it is for the process
        channel = turn.attachment.channel
        if channel is not None:
            self._channels.pop(channel, None)
            if not turn.is_ended:  # an agent that says itself that its turn is not its own
                self._call("agent.detach", DetachParams(channel=channel))
        turn.end("done")
        self._forget(turn)

    def _forget(self, turn: HeldTurn) -> None:
        if self._turns.get(turn.turn_id) is turn:
            del self._turns[turn.turn_id]
        if not self._turns:
            self._idle.set()

    # Sending

    def _send(self) -> None:
        self._sending = False
        transport = self._transport
        if transport is None:
            return
        for turn in list(self._channels.values()):
            while (payload := turn.attachment.take()) is not None:
                transport.send(payload, turn.turn_id)

    def _call(self, method: str, params: msgspec.Struct) -> asyncio.Event:
        """Make a call whose answer changes nothing here; the event is set when it is answered, or lost."""
        answered = asyncio.Event()

        def reply(answer: Answer) -> None:
            if isinstance(answer, MidstreamError):
                log.debug("call_refused", method=method, code=answer.code, error=answer.message)
            answered.set()

        self._exchange.start(method, params, reply, repeatable=False)
        return answered

    # Ending

    async def _give_up(self) -> None:
        """Give every turn up to other workers, and wait until the server knows, or is gone."""
        told: list[asyncio.Event] = []
        for turn in list(self._turns.values()):
            channel = turn.attachment.channel
            self._let_go(turn, "given up")
            if channel is not None:
                told.append(self._call("agent.detach", DetachParams(channel=channel)))
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                for event in told:
                    await event.wait()
        except TimeoutError:
            log.warning("giving_up_unheard")

    async def _heed(self) -> None:
        """Wait a little until the agents have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=HEED_SECONDS)

    def _end(self, error: BaseException | None) -> None:
        """End all that needs no waiting; once."""
        if self._closed.is_set():
            return
        self._error = error
        self._closed.set()
        for turn in list(self._turns.values()):
            self._let_go(turn, "closed")
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


def _is_final(error: MidstreamError) -> bool:
    """Say whether a refusal to attach means that the turn is not this worker's."""
    if isinstance(error, Refused):
        return error.details.get("reason") in TURN_REASONS
    return isinstance(error, (NotFound, Forbidden, InvalidRequest))


def _strange(method: str, answer: Answer) -> IncompatibleServer:
    return IncompatibleServer(f"{method!r} was answered by a {type(answer).__name__}.")
