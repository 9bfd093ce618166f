"""The turns that a worker took: attached to, attached to again, let go (SPEC 14.3, 14.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

import msgspec
import structlog

from midstream.agents.turn import Agent
from midstream.client.calls import Answer
from midstream.client.errors import (
    ConnectionLost,
    Forbidden,
    InvalidRequest,
    MidstreamError,
    NotFound,
    Refused,
)
from midstream.client.exchange import Exchange
from midstream.client.reconnect import Policy, full_jitter
from midstream.client.timers import Timers
from midstream.client.transport import Transport
from midstream.protocol.agent_calls import AttachResult, DeclineParams, DetachParams
from midstream.protocol.codec import Codec
from midstream.protocol.frames import Detached, Offer
from midstream.worker.attachment import Attachment, AttachmentFrame
from midstream.worker.held import HeldTurn
from midstream.worker.writer import Way

log = structlog.get_logger("midstream.worker")

HEED_SECONDS = 1.0
"""How long agents that are cancelled get to heed it."""
GIVE_UP_SECONDS = 2.0
"""How long a worker that goes waits for the server to hear so; what it does not hear it notices."""
OFFER_SECONDS = 1.0
"""How long an offer may wait here for room; the server waits for five, and then asks others too."""
NOT_OURS = frozenset({"turn_ended", "fenced", "turn_taken", "not_remote"})
"""Reasons of ``refused`` by which a turn is not this worker's."""


class TurnTools(msgspec.Struct, frozen=True):
    """What all turns of a worker need."""

    exchange: Exchange
    timers: Timers
    codec: Codec
    random: Random
    policy: Policy
    way: Way
    new_id: Callable[[str], str]
    fail: Callable[[BaseException], None]


class Turns:
    """All turns that a worker has, by id, and by channel while it is attached.

    Attributes:
        idle: set while there is none.
        is_full: whether no more are taken, whatever the concurrency.

    """

    def __init__(self, agent: Agent, tools: TurnTools, *, concurrency: int, resumes: bool) -> None:
        """Have none."""
        self.idle = asyncio.Event()
        self.idle.set()
        self.is_full = False
        self._agent = agent
        self._tools = tools
        self._concurrency = concurrency
        self._resumes = resumes
        self._registered = False
        self._turns: dict[str, HeldTurn] = {}
        self._channels: dict[int, HeldTurn] = {}
        self._offers: dict[str, Offer] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many there are, those included whose agent has still to heed that it was stopped."""
        return len(self._turns)

    def registered(self) -> None:
        """Learn that the connection is a worker's: attach to all that there is."""
        self._registered = True
        for turn in list(self._turns.values()):
            self._attach(turn)

    def disconnected(self) -> None:
        """Learn that there is no connection: agents go on until their windows are full."""
        self._registered = False
        self._channels.clear()
        self._offers.clear()  # they will be made again
        for turn in self._turns.values():
            turn.attachment.lost()
            turn.is_asking = False

    def offered(self, offer: Offer) -> None:
        """Take an offered turn, or decline it. Where there is no room it waits a little.

        The server may know before this worker that a turn has ended, and an agent that is stopped takes
        its time.
        """
        if offer.turn_id in self._turns:
            return
        if self.is_full or (offer.resumed and not self._resumes):
            self._decline(offer)
        elif len(self._turns) < self._concurrency:
            self._take_up(offer)
        elif offer.turn_id not in self._offers:
            self._offers[offer.turn_id] = offer
            self._tools.timers.later(OFFER_SECONDS, partial(self._had_no_room, offer))

    def frame(self, frame: AttachmentFrame) -> None:
        """Bring a frame to its turn; those of channels that are not ours any more are ignored."""
        turn = self._channels.get(frame.channel)
        if turn is None:
            return
        if isinstance(frame, Detached):
            del self._channels[frame.channel]
        self._follow(turn, turn.frame(frame))
        self._tools.way.wrote()

    def send(self, transport: Transport) -> None:
        """Send all that may go out now."""
        for turn in list(self._channels.values()):
            while (payload := turn.attachment.take()) is not None:
                transport.send(payload, turn.turn_id)

    def end(self, why: str) -> None:
        """Stop every agent, and take no more turns."""
        self.is_full = True
        self._offers.clear()
        for turn in list(self._turns.values()):
            self._let_go(turn, why)

    async def give_up(self) -> None:
        """Give every turn up to other workers, and wait until the server knows, or is gone."""
        told: list[asyncio.Event] = []
        for turn in list(self._turns.values()):
            channel = turn.attachment.channel
            self._let_go(turn, "given up")
            if channel is not None:
                told.append(self.call("agent.detach", DetachParams(channel=channel)))
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                for event in told:
                    await event.wait()
        except TimeoutError:
            log.warning("giving_up_unheard")

    async def heed(self) -> None:
        """Wait a little until the agents that were stopped have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=HEED_SECONDS)

    def call(self, method: str, params: msgspec.Struct) -> asyncio.Event:
        """Make a call whose answer changes nothing here; the event is set when it is answered, or lost."""
        answered = asyncio.Event()

        def reply(answer: Answer) -> None:
            if isinstance(answer, MidstreamError):
                log.debug("call_refused", method=method, code=answer.code, error=answer.message)
            answered.set()

        self._tools.exchange.start(method, params, reply, repeatable=False)
        return answered

    def _take_up(self, offer: Offer) -> None:
        tools = self._tools
        attachment = Attachment(tools.codec, offer.session_id, offer.turn_id, limits=tools.exchange.limits)
        turn = HeldTurn(attachment, tools.way, self._agent, tools.new_id)
        self._turns[offer.turn_id] = turn
        self.idle.clear()
        self._attach(turn)

    def _had_no_room(self, offer: Offer) -> None:
        if self._offers.get(offer.turn_id) is offer:
            del self._offers[offer.turn_id]
            self._decline(offer)

    def _decline(self, offer: Offer) -> None:
        self.call("agent.decline", DeclineParams(session_id=offer.session_id, turn_id=offer.turn_id))

    def _attach(self, turn: HeldTurn) -> None:
        """Call ``agent.attach``, unless that is under way, done, or of no use any more."""
        if turn.is_over or turn.is_asking or turn.attachment.channel is not None or not self._registered:
            return
        turn.is_asking = True
        self._tools.exchange.start(
            "agent.attach",
            turn.attachment.params(),
            partial(self._attaching, turn),
            lane=turn.turn_id,
            repeatable=False,
        )

    def _attaching(self, turn: HeldTurn, answer: Answer) -> None:
        turn.is_asking = False
        if isinstance(answer, AttachResult):
            self._attached(turn, answer)
        elif isinstance(answer, ConnectionLost):
            return  # attached to when there is a connection again
        elif isinstance(answer, MidstreamError) and not _is_final(answer):
            turn.attempts = max(turn.attempts, 1)
            self._again(turn, answer.message)
        else:
            self._let_go(turn, answer.message if isinstance(answer, MidstreamError) else "a strange answer")

    def _attached(self, turn: HeldTurn, result: AttachResult) -> None:
        if turn.task is None and result.next_n > 1 and not self._resumes:
            self._let_go(turn, "another process has begun it since it was offered")
        if not turn.is_over:
            self._channels[result.channel] = turn
            self._follow(turn, turn.attached(result))
            self._watch(turn)
            self._tools.way.wrote()
        if turn.is_over:  # it was let go meanwhile, or what is there cannot be gone on with
            self._channels.pop(result.channel, None)
            self.call("agent.detach", DetachParams(channel=result.channel))

    def _follow(self, turn: HeldTurn, again: str | None) -> None:
        """Do what follows from what a turn was told."""
        if turn.is_over:
            self._let_go(turn, "over")
        elif again is not None:
            self._again(turn, again)

    def _again(self, turn: HeldTurn, why: str) -> None:
        """Attach again: at once the first time, then with backoff."""
        log.info("attaching_again", turn_id=turn.turn_id, why=why)
        tools = self._tools
        pause = full_jitter(tools.random, turn.attempts - 1, tools.policy) if turn.attempts else 0.0
        tools.timers.later(pause, lambda: self._attach(turn))
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
            self._tools.fail(error)  # no agent's own: those become the turn's failure
        channel = turn.attachment.channel
        if channel is not None:
            self._channels.pop(channel, None)
            if not turn.is_ended:  # its agent says that the turn is not its own any more
                self.call("agent.detach", DetachParams(channel=channel))
        turn.end("done")
        self._forget(turn)

    def _forget(self, turn: HeldTurn) -> None:
        if self._turns.get(turn.turn_id) is turn:
            del self._turns[turn.turn_id]
        if self._offers:
            self.offered(self._offers.pop(next(iter(self._offers))))
        if not self._turns:
            self.idle.set()


def _is_final(error: MidstreamError) -> bool:
    """Say whether a refusal to attach means that the turn is not this worker's."""
    if isinstance(error, Refused):
        return error.details.get("reason") in NOT_OURS
    return isinstance(error, (NotFound, Forbidden, InvalidRequest))
