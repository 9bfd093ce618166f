"""A small world: one server, a few visitors, a network between them, and all that can happen to them."""

import asyncio
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from pathlib import Path
from random import Random

from msgspec import UNSET

from midstream.protocol.model import (
    ApprovalResponse,
    InteractionPart,
    InteractionResponse,
    Question,
    QuestionAnswer,
    QuestionResponse,
)
from tests.clock import SimClock
from tests.simulation.agent import ScriptedAgent
from tests.simulation.backend import Backend
from tests.simulation.crew import Hand, Trade
from tests.simulation.diary import Diary
from tests.simulation.failures import LawBroken
from tests.simulation.instruments import Instruments
from tests.simulation.knobs import Knobs, Wish
from tests.simulation.oracle import Oracle
from tests.simulation.person import Person
from tests.simulation.simloop import SimLoop
from tests.simulation.stored import read_file
from tests.simulation.stranger import Stranger
from tests.simulation.trouble import Trouble
from tests.simulation.verdict import Verdict
from tests.simulation.visitor import Scene, Visitor
from tests.simulation.witness import WatchedReplica, Witness

PATIENCE = 600.0
"""Virtual seconds in which everything must come to rest once the faults have ended."""
STRIKE_SECONDS = 5.0
"""Offers that stand for longer are not waited for in the end: many inputs may wait, one after another."""
DOWN_SECONDS = (0.0, 0.5, 5.0)
HOMES = ("A", "B")
"""The sessions that everybody knows."""


class SeededIds:
    """Ids that no two servers of a schedule share, the same in each run of it."""

    def __init__(self, rng: Random) -> None:
        self._count = 0
        self._rng = rng

    def new(self, kind: str) -> str:
        """Return an id."""
        self._count += 1
        return f"{kind}_{self._count}"

    def epoch(self) -> str:
        """Return the name of an epoch."""
        return f"{self._rng.getrandbits(64):016x}"


class World:
    """Everything that one schedule consists of.

    Attributes:
        backend: the server.
        visitors: who uses it, by name.
        crew: the workers, by name.
        trouble: the faults of the network.
        clock: the server's.
        forks: the sessions that somebody tried to make by copying.
    """

    def __init__(self, loop: SimLoop, directory: Path, knobs: Knobs, *, traced: bool = False) -> None:
        self.loop = loop
        self.knobs = knobs
        self.diary = Diary(loop, traced=traced)
        self.oracle = Oracle(self.diary)
        self.witness = Witness(self.diary)
        self.instruments = Instruments(self.diary, self.witness)
        self.trouble = Trouble(loop, self.diary, loses_frames=knobs.loses_frames)
        self.clock = SimClock(loop)
        self.visitors: dict[str, Visitor] = {}
        self.crew: dict[str, Hand] = {}
        self.forks: list[str] = []
        self._path = directory / "world.db"
        self._rng = Random(f"world {loop.seed}")
        self.backend = Backend(
            loop,
            self._path,
            knobs,
            self.diary,
            agent=None if knobs.crew else ScriptedAgent(loop.seed, self.oracle.remember_turn),
            clock=self.clock,
            ids=SeededIds(self._rng),
        )
        self._scene = Scene(loop, self.diary, self.oracle, self.witness, knobs, loop.seed)
        self._supervisor: asyncio.Task[None] | None = None
        self._context = copy_context()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the world; its end is checked if the context was left in peace.

        Raises:
            LawBroken: A promise was broken. The diary stands in its notes.
        """
        self.loop.network.shape = self.knobs.shape
        try:
            with self.knobs.turned(), self.instruments.installed():
                await self.backend.start()
                self._supervisor = self.loop.create_task(self._supervise(), name="supervisor")
                yield
                self.judge()
                await self._come_to_rest()
                self.judge()
                await self._look_at_replicas()
                await self._end()
                self._pronounce()
                self.judge()
        except BaseException as error:
            error.add_note("\n".join(self.diary.lines))
            raise

    def invite(self, name: str, wish: Wish, *, stranger: bool = False) -> Visitor:
        """Let somebody come."""
        visitor = self.visitors[name] = (Stranger if stranger else Person)(self._scene, name, wish)
        visitor.start()
        return visitor

    def hire(self, name: str, trade: Trade) -> Hand:
        """Let a worker come."""
        hand = self.crew[name] = Hand(self._scene, name, trade)
        hand.start()
        return hand

    def at_delta(self, deltas: int, happen: Callable[[], None]) -> None:
        """Let something happen in the middle of a stream: just after so many more deltas were seen."""

        def spring() -> None:
            self.loop.call_soon(happen, context=self._context)

        self.witness.ambushes.append((deltas, spring))

    def judge(self) -> None:
        """Raise what was complained of so far, and errors that nobody handled.

        Raises:
            LawBroken: There were some.
        """
        for error in self.loop.errors:
            self.diary.complain("".join(traceback.format_exception(error)))
        if self.instruments.agents is not None and self.backend.running is not None:
            self.instruments.agents.look()
        self.diary.judge()

    def pending(self, visitor: Visitor, session_id: str) -> list[InteractionPart]:
        """Return the interactions that a visitor sees waiting in a session."""
        replica = visitor.replica(session_id)
        if replica is None:
            return []
        return [
            part
            for message in replica.messages()
            for part in message.parts
            if isinstance(part, InteractionPart) and part.status == "pending"
        ]

    # The end

    async def _supervise(self) -> None:
        """Start the server again whenever it is down."""
        while True:
            await self.backend.down.wait()
            await asyncio.sleep(self._rng.choice(DOWN_SECONDS))
            await self.backend.start()

    async def _come_to_rest(self) -> None:
        """End all faults, answer all questions, and wait until nothing moves any more."""
        self.diary.note("world", "faults end")
        self.witness.ambushes.clear()
        self.trouble.end()
        self.backend.disarm()
        judge = self.invite("judge", Wish(limit=200, include_internal=True))
        self._muster()
        try:
            async with asyncio.timeout(PATIENCE):
                for visitor in self.visitors.values():
                    visitor.start()
                await self._settle(judge)
                # one heartbeat for the marks, one for what they bring to light
                await asyncio.sleep(2.5 * self.knobs.heartbeat_ms / 1000 + 1)
                await self._settle(judge)
        except TimeoutError:
            raise LawBroken(self.loop.report(f"no rest in {PATIENCE:g} s: {self._unrest(judge)}")) from None
        self.diary.note("world", "is at rest")

    def _muster(self) -> None:
        """Let all workers come back, or none: then every turn ends when its time is over."""
        crew = self.knobs.crew
        strike = crew is not None and crew.offer_seconds < STRIKE_SECONDS and self._rng.random() < 0.4
        for hand in self.crew.values():
            if strike:
                hand.crash()
            else:
                hand.start()

    async def _settle(self, judge: Visitor) -> None:
        """Let the judge enter what there is and answer what is asked, until nothing moves."""
        while self._unrest(judge):
            if not judge.errands:
                for session_id in [one for one in self.oracle.sessions if not judge.is_live(one)]:
                    judge.enter(session_id)
            for session_id in self.oracle.sessions:
                for part in self.pending(judge, session_id):
                    judge.respond(session_id, part.interaction_id, response_to(part, self._rng))
            await asyncio.sleep(1)
            self.judge()

    def _unrest(self, judge: Visitor) -> list[str]:
        """Say what still moves."""
        found = ["the server is down"] if self.backend.running is None else []
        for visitor in self.visitors.values():
            found += [task.get_name() for task in visitor.errands]
            if isinstance(visitor, Person) and not visitor.is_connected:
                found.append(f"{visitor.name} has no connection")
            found += [
                f"{visitor.name} is not live in {session_id}"
                for session_id in (self._existing() if visitor is judge else visitor.entered)
                if session_id in self._existing() and not visitor.is_live(session_id)
            ]
        for hand in self.crew.values():
            found += hand.unrest()
        for session_id in [one for one in self.oracle.sessions if judge.is_live(one)]:
            replica = judge.replica(session_id)
            session = None if replica is None else replica.session
            if session is not None and (session.running_turn_id is not UNSET or session.queue):
                found.append(f"{session_id} runs {session.running_turn_id}, and {session.queue} wait")
        return found

    def _existing(self) -> list[str]:
        """Return the sessions that are there for certain."""
        return [
            session_id
            for session_id in self.oracle.lasting()
            if self.oracle.session(session_id).fork_of is None or session_id in self.witness.highest
        ]

    async def _look_at_replicas(self) -> None:
        """Let everybody prove that he equals the server, and the others."""
        for visitor in self.visitors.values():
            for session_id in list(visitor.entered):
                if session_id in self._existing():
                    visitor.chore("earlier", session_id)
                    visitor.chore("verify", session_id)
            if isinstance(visitor, Person):
                visitor.look_at_lists()
        async with asyncio.timeout(PATIENCE):
            while any(visitor.errands for visitor in self.visitors.values()):  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.1)
        judge = self.visitors["judge"]
        for visitor in self.visitors.values():
            for session_id in visitor.entered:
                mine, right = visitor.replica(session_id), judge.replica(session_id)
                both = visitor.is_live(session_id) and judge.is_live(session_id)
                if both and mine is not None and right is not None and mine.version != right.version:
                    self.diary.complain(
                        f"{visitor.name}'s {session_id} rests at version {mine.version}, not {right.version}"
                    )
        await self._look_for_leaks()

    async def _look_for_leaks(self) -> None:
        """See that the server has the subscriptions that are followed, once it has noticed who is gone."""
        following, there = Counter[str](), dict[str, int]()
        for _ in range(5):
            following = Counter(
                session_id
                for visitor in self.visitors.values()
                for session_id in visitor.entered
                if visitor.is_live(session_id)
            )
            registry = self.instruments.registry
            there = {} if registry is None else registry.subscribers
            if there == following:
                return
            await asyncio.sleep(self.knobs.heartbeat_ms / 1000)
        self.diary.complain(f"followed are {following}, the server's subscriptions are {there}")

    async def _dismiss(self) -> None:
        """End the workers, and see that nothing is left of them, nor of their turns before."""
        agents = self.instruments.agents
        if agents is None:
            return
        left = agents.left()
        left += [
            task.get_name() for task in self.loop.unfinished() if task.get_name().startswith("attachment ")
        ]
        if left:
            self.diary.complain(f"no turn runs, and the server has {left}")
        for hand in self.crew.values():
            if self._rng.random() < 0.5:
                hand.crash()
            else:
                hand.drain(0.0)
        async with asyncio.timeout(PATIENCE):
            # a worker that was killed is noticed by its heartbeats
            while agents.workers or any(hand.host for hand in self.crew.values()):  # noqa: ASYNC110 - likewise
                await asyncio.sleep(1)

    async def _end(self) -> None:
        """End the visitors, see the server let go of everything, and end it too."""
        await self._dismiss()
        for visitor in self.visitors.values():
            visitor.close()
        await asyncio.sleep(self.knobs.idle_seconds + 5)
        registry, running = self.instruments.registry, self.backend.running
        if running is not None and running.connections:
            self.diary.complain(f"nobody is there, and the server has {running.connections} connections")
        if registry is not None and registry.loaded:
            self.diary.complain(f"nobody is there, and {registry.loaded} are loaded")
        if registry is not None and registry.watchers:
            self.diary.complain(f"nobody is there, and {registry.watchers} watch the list")
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])
        self.backend.stop(drain=False)
        await self.backend.down.wait()

    def _pronounce(self) -> None:
        self.oracle.interrupted = self.backend.interruptions > 1  # the last end was ours
        verdict = Verdict(read_file(self._path), self.oracle, self.diary, remote=self.knobs.crew is not None)
        verdict.pronounce()
        for visitor in self.visitors.values():
            for session_id in visitor.entered:
                replica = visitor.replica(session_id)
                if replica is not None and session_id in self._existing():
                    _hold(verdict, replica)


def _hold(verdict: Verdict, replica: WatchedReplica) -> None:
    if replica.from_sequence is not None:
        verdict.replica(
            replica.who,
            replica.session_id,
            replica.from_sequence,
            replica.include_internal,
            replica.messages(),
        )


def response_to(part: InteractionPart, rng: Random) -> InteractionResponse:
    """Return some response that fits an interaction."""
    if part.interaction_type == "approval":
        return ApprovalResponse(decision=rng.choice(["approved", "denied"]))
    questions = [] if part.request.questions is UNSET else part.request.questions
    return QuestionResponse(answers=[_answer_to(question, rng) for question in questions])


def _answer_to(question: Question, rng: Random) -> QuestionAnswer:
    if question.options is UNSET:
        return QuestionAnswer(question_id=question.question_id, value=f"because {rng.randrange(100)}")
    values = [option.value for option in question.options]
    if question.multiple is True:
        return QuestionAnswer(question_id=question.question_id, value=rng.sample(values, rng.randint(0, 2)))
    return QuestionAnswer(question_id=question.question_id, value=rng.choice(values))
