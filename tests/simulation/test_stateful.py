"""The same world as the schedules', driven by Hypothesis, which makes what it finds as short as can be."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from midstream.protocol.calls import Delivery
from tests.simulation.knobs import Knobs, Wish
from tests.simulation.run import simulation
from tests.simulation.schedule import EVENTS
from tests.simulation.script import LAST, STEP_ACTS, TURN_ACTS
from tests.simulation.simloop import SimLoop
from tests.simulation.volume import scratch
from tests.simulation.world import HOMES, World

T = TypeVar("T")
CHANCES = st.integers(0, 2**16)
NAMES = ("ann", "bob", "cid")


@st.composite
def words(draw: st.DrawFn, acts: dict[str, int]) -> str:
    """Draw a word of the agent's language."""
    name = draw(st.sampled_from(sorted(acts)))
    return f"{name}:{draw(st.integers(0, acts[name]))}" if acts[name] else name


STEPS = st.lists(words(STEP_ACTS), min_size=1, max_size=3).map("+".join)
OTHERS = words({name: most for name, most in TURN_ACTS.items() if name not in LAST})
ENDS = st.sampled_from([[], [], [], ["raise"], ["fail"]])


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """Draw what the agent is to do."""
    return " ".join([*draw(st.lists(STEPS | OTHERS, min_size=1, max_size=4)), *draw(ENDS)])


DELIVERIES: st.SearchStrategy[Delivery] = st.sampled_from(["auto", "queue", "reject", "interrupt"])


class Story(RuleBasedStateMachine):
    """One world. What people are told is kept in the dictionaries of `oracle.py`, and judged at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._running = AsyncExitStack()
        self._failure: BaseException | None = None
        self.loop: SimLoop
        self.world: World | None = None

    @initialize(seed=st.integers(1, 2**16), knobs=CHANCES, wishes=st.lists(CHANCES, min_size=1, max_size=3))
    def begin(self, seed: int, knobs: int, wishes: list[int]) -> None:
        """Draw the settings, and let people come. Zeros stand for what is ordinary."""
        directory = self._stack.enter_context(scratch())
        self.loop = self._stack.enter_context(simulation(seed))
        self.world = self._run(self._make(Knobs.drawn(Random(knobs)) if knobs else Knobs(), directory))
        for name, wish in zip(NAMES, wishes, strict=False):
            self.world.invite(name, _wish(wish)).enter(HOMES[0])
        self.world.invite("stranger", _wish(knobs), stranger=True).enter(HOMES[1])

    @rule(who=st.integers(0, 3), script=scripts(), delivery=DELIVERIES)
    def prompt(self, who: int, script: str, delivery: Delivery) -> None:
        """Somebody sends a prompt with a script for the agent."""
        if self.world is not None:
            visitors = list(self.world.visitors.values())
            visitor = visitors[who % len(visitors)]
            for session_id in list(visitor.entered)[:1]:
                visitor.prompt(session_id, script, delivery)

    @rule(kind=st.sampled_from(sorted(EVENTS)), chance=CHANCES)
    def happen(self, kind: str, chance: int) -> None:
        """Something happens, as in the schedules."""
        if self.world is not None:
            EVENTS[kind][1](self.world, Random(chance))

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        """Time passes, and what was promised so far is judged."""
        if self.world is not None:
            self._run(self._pass(self.world, seconds))

    def teardown(self) -> None:
        """Come to rest, and be judged; or, after a failure, only clean up."""
        if self.world is None:
            return
        try:
            if self._failure is None:
                self._run(self._running.aclose())
        finally:
            error = self._failure
            if error is None:
                self._stack.close()
            else:
                details = (type(error), error, error.__traceback__)
                self.loop.run_until_complete(self._running.__aexit__(*details))
                self._stack.__exit__(*details)

    async def _make(self, knobs: Knobs, directory: Path) -> World:
        world = World(self.loop, directory, knobs)
        await self._running.enter_async_context(world.running())
        return world

    async def _pass(self, world: World, seconds: float) -> None:
        await asyncio.sleep(seconds)
        world.judge()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            return self.loop.run_until_complete(coroutine)
        except BaseException as error:
            self._failure = error
            raise


def _wish(chance: int) -> Wish:
    return Wish.drawn(Random(chance)) if chance else Wish()


@pytest.mark.timeout(900)  # a failure is made shorter for up to five minutes
def test_no_story_breaks_a_promise() -> None:
    """Whatever happens in whatever order, all replicas end equal and what was acknowledged is there."""
    run_state_machine_as_test(
        Story,
        settings=settings(
            max_examples=150,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
