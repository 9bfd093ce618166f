"""Running one scenario in a simulation, and checking that it ended as it must.

`python -m tests.simulation.run` plays many seeded schedules of the whole system: see `volume.py`.
"""

import asyncio
import gc
import logging
import random
import sys
import warnings
from asyncio.events import _set_running_loop  # pyright: ignore[reportPrivateUsage] # what loops are made with
from collections.abc import Callable, Coroutine, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Generic, NoReturn, TypeVar
from unittest.mock import patch

import structlog
from websockets.asyncio.connection import Connection

from midstream.server.connections.subscription import Subscription
from tests.simulation.failures import ErrorUnhandled, SimulationFailure, TasksLeft
from tests.simulation.simloop import START, SimLoop

T = TypeVar("T")
DAY = 86_400.0
CLEANUP_SECONDS = 3600.0
CLEANUP_STEPS = 100_000

NUMBERED: tuple[type, ...] = (Connection, Subscription)
"""Classes whose objects are kept in sets that somebody walks through; in a simulation the order must not come
from where they lie in memory. `websockets` closes a server's connections in the order of such a set, and a
session publishes to its subscribers in the order of one."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What one simulation gave.

    Attributes:
        result: what the scenario returned.
        digest: 16 hex digits; equal for equal traces.
        steps: callbacks that were run.
        seconds: virtual time that passed.
        journal: the trace in words, if it was recorded.
    """

    result: T
    digest: str
    steps: int
    seconds: float
    journal: tuple[str, ...]


def run(
    scenario: Callable[[SimLoop], Coroutine[Any, Any, T]],
    seed: int,
    *,
    max_virtual_seconds: float = DAY,
    max_steps: int = 1_000_000,
    tasks_may_be_left: bool = False,
) -> T:
    """Run a scenario to its end and return its result.

    Args:
        scenario: called with the loop; runs as the first task.
        seed: decides everything that chance decides. 0 keeps asyncio's own order of callbacks.
        max_virtual_seconds: the time that may pass in the simulation.
        max_steps: the number of callbacks that may run.
        tasks_may_be_left: do not fail if tasks are unfinished when the scenario returns; they are cancelled
            either way.

    Raises:
        Deadlock: Nothing could ever happen again.
        LimitPassed: Too much time, or too many steps.
        TasksLeft: Tasks were unfinished at the end.
        ErrorUnhandled: An exception that nobody handled.
    """
    return simulate(
        scenario,
        seed,
        max_virtual_seconds=max_virtual_seconds,
        max_steps=max_steps,
        tasks_may_be_left=tasks_may_be_left,
    ).result


def simulate(
    scenario: Callable[[SimLoop], Coroutine[Any, Any, T]],
    seed: int,
    *,
    max_virtual_seconds: float = DAY,
    max_steps: int = 1_000_000,
    tasks_may_be_left: bool = False,
    record: bool = False,
) -> Outcome[T]:
    """Run a scenario like `run`, and say more about it.

    With `record`, the outcome has the trace in words, and so have the notes of an error.
    """
    with simulation(
        seed,
        max_virtual_seconds=max_virtual_seconds,
        max_steps=max_steps,
        tasks_may_be_left=tasks_may_be_left,
        record=record,
    ) as loop:
        result = loop.run_until_complete(scenario(loop))
        loop.settle()
        return Outcome(
            result, loop.trace_digest(), loop.steps, loop.time() - START, tuple(loop.journal or ())
        )


@contextmanager
def simulation(
    seed: int,
    *,
    max_virtual_seconds: float = DAY,
    max_steps: int = 1_000_000,
    tasks_may_be_left: bool = False,
    record: bool = False,
) -> Generator[SimLoop]:
    """Give the loop of a simulation, to be run as often as wanted; at the end it is checked and closed.

    Raises, when the context is left, what `run` raises.
    """
    with _quiet(seed) as numbers:
        loop = SimLoop(seed, record=record)
        loop.max_steps = max_steps
        loop.max_time = START + max_virtual_seconds
        try:
            yield loop
            loop.settle()
            _check(loop, tasks_may_be_left=tasks_may_be_left)
        except BaseException as error:
            error.add_note(f"simulation: seed {seed}, time {loop.time():.6f}, step {loop.steps}")
            for other in loop.errors:
                error.add_note(f"also unhandled: {other!r}")
            if loop.journal is not None:
                error.add_note("\n".join(loop.journal))
            raise
        finally:
            _dispose(loop, numbers)


def divergence(scenario: Callable[[SimLoop], Coroutine[Any, Any, object]], seed: int) -> str | None:
    """Run a scenario twice with the same seed, and say where the two traces part; nothing if they are equal.

    They part where the code under test depends on what the simulation does not determine (see `simloop.py`).
    """
    first = simulate(scenario, seed, tasks_may_be_left=True, record=True)
    second = simulate(scenario, seed, tasks_may_be_left=True, record=True)
    if first.digest == second.digest:
        return None
    pairs = enumerate(zip_longest(first.journal, second.journal, fillvalue="(ended)"))
    step, (one, other) = next(((step, pair) for step, pair in pairs if pair[0] != pair[1]), (0, ("?", "?")))
    return f"seed {seed}, step {step}: first {one!r}, then {other!r}"


class Numbers:
    """Gives objects the numbers 1, 2, 3… in the order in which they are first asked for."""

    def __init__(self) -> None:
        # the objects are kept with their numbers, so that no other one gets the same id
        self._numbers: dict[int, tuple[int, object]] = {}

    @property
    def hash_of(self) -> Callable[[object], int]:
        """A `__hash__` that gives the object's number."""
        numbers = self._numbers

        def hash_of(thing: object) -> int:
            found = numbers.get(id(thing))
            if found is None:
                found = numbers[id(thing)] = (len(numbers) + 1, thing)
            return found[0]

        return hash_of

    def forget(self) -> None:
        """Let go of the objects."""
        self._numbers.clear()


@contextmanager
def _quiet(seed: int) -> Generator[Numbers]:
    """Keep the garbage collector, the global chances and places in memory from deciding anything."""
    numbers = Numbers()
    state = random.getstate()
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()  # so that a collection at the end looks at what the simulation made, and at nothing else
    random.seed(seed)
    try:
        with ExitStack() as stack:
            for kept_in_sets in NUMBERED:
                stack.enter_context(patch.object(kept_in_sets, "__hash__", numbers.hash_of))
            yield numbers
    finally:
        random.setstate(state)
        gc.unfreeze()
        if collecting:
            gc.enable()


def _check(loop: SimLoop, *, tasks_may_be_left: bool) -> None:
    unseen = [error for task in loop.tasks() if (error := task.failed_unseen()) is not None]
    errors = loop.errors + unseen
    if errors:
        raise ErrorUnhandled(loop.report(f"unhandled: {', '.join(map(repr, errors))}")) from errors[0]
    if loop.unfinished() and not tasks_may_be_left:
        raise TasksLeft(loop.report("the scenario ended, but tasks are left; end them, or allow it"))


def _dispose(loop: SimLoop, numbers: Numbers) -> None:
    """End every task, as well as possible, and close the loop. What goes wrong now is of no interest."""
    loop.max_steps = loop.steps + CLEANUP_STEPS
    loop.max_time = loop.time() + CLEANUP_SECONDS
    with _unheard(loop):
        with suppress(SimulationFailure):
            while tasks := loop.unfinished():
                for task in tasks:
                    task.cancel()
                loop.run_until_complete(asyncio.wait(tasks))
        if not loop.killed:  # generators of a killed program would go on where it was killed
            with suppress(SimulationFailure):
                loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        # while a closed loop counts as running, no `finally` block can make tasks, here or on another loop
        _set_running_loop(loop)
        try:
            for task in loop.tasks():
                task.failed_unseen()
                if not task.done():
                    task.abandon()
            loop.dissolve()
            numbers.forget()
            gc.collect()  # so that what is left, of killed programs too, ends here and not at any time
        finally:
            _set_running_loop(None)


@contextmanager
def _unheard(loop: SimLoop) -> Generator[None]:
    """Let nobody hear of the errors of programs that are dead: their `finally` blocks run only now."""
    loop.set_exception_handler(_overhear)
    hook, before = sys.unraisablehook, structlog.get_config()
    sys.unraisablehook = lambda _: None
    logging.disable()
    structlog.configure(processors=[_drop])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        structlog.configure(**before)
        logging.disable(logging.NOTSET)
        sys.unraisablehook = hook


def _overhear(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Do nothing with what reaches the loop's exception handler."""


def _drop(*_: object) -> NoReturn:
    raise structlog.DropEvent


if __name__ == "__main__":
    from tests.simulation.volume import main

    sys.exit(main())
