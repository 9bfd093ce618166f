"""A run is repeatable, and fails when anything was wrong, whatever the scenario returned."""

import asyncio
import gc
import random
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.simulation.failures import ErrorUnhandled, TasksLeft
from tests.simulation.run import divergence, run, simulate
from tests.simulation.simloop import SimLoop

ROOT = Path(__file__).parents[2]


async def crowd(loop: SimLoop) -> float:
    """Let ten tasks sleep, wait for each other and talk over a link, with chances of their own."""
    lock = asyncio.Lock()
    server = await asyncio.start_server(answer, "localhost", 80)

    async def person() -> None:
        for _ in range(5):
            async with lock:
                await asyncio.sleep(random.random())
        reader, writer = await asyncio.open_connection("localhost", 80)
        writer.write(b"hello\n")
        assert await reader.readline() == b"HELLO\n"
        writer.close()
        await writer.wait_closed()

    async with server, asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(person())
    return loop.time()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one line and close."""
    writer.write((await reader.readline()).upper())
    writer.close()
    await writer.wait_closed()


def digests() -> str:
    """Return the digests of ten seeds, for comparison with another process."""
    return " ".join(simulate(crowd, seed).digest for seed in range(10))


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    """Digest, steps, time and result are equal for equal seeds, and no two of fifty seeds have one trace."""
    assert [simulate(crowd, seed) for seed in range(50)] == [simulate(crowd, seed) for seed in range(50)]
    assert len({simulate(crowd, seed).digest for seed in range(50)}) == 50


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_trace_is_the_same_in_another_process(hash_seed: str) -> None:
    """Neither the hashes of strings nor where objects lie in memory decide anything."""
    program = "from tests.simulation.test_run import digests; print(digests())"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == digests()


def test_a_dependence_on_what_is_not_determined_is_found_and_located() -> None:
    """`divergence` names the first step that differs between two runs of one seed."""
    runs: list[int] = []

    async def fickle(loop: SimLoop) -> None:
        runs.append(1)
        await asyncio.sleep(1)
        if len(runs) == 2:
            await asyncio.sleep(0)

    difference = divergence(fickle, 1)
    assert difference is not None
    assert "fickle" in difference
    assert divergence(crowd, 1) is None


def test_a_task_that_is_left_is_a_failure_unless_it_is_allowed() -> None:
    """The failure names the task; allowed or not, it is cancelled."""
    ended: list[str] = []
    kept: list[object] = []

    async def straggler() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def scenario(loop: SimLoop) -> str:
        kept.append(loop.create_task(straggler(), name="straggler"))
        await asyncio.sleep(1)
        return "done"

    with pytest.raises(TasksLeft, match=r"straggler: .*straggler"):
        run(scenario, 1)
    assert run(scenario, 1, tasks_may_be_left=True) == "done"
    assert ended == ["cancelled", "cancelled"]


def test_what_needs_no_more_time_may_finish() -> None:
    """A task that only has to be scheduled once more when the scenario returns is not left over."""

    async def scenario(loop: SimLoop) -> None:
        async def last_words() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        loop.create_task(last_words())
        await asyncio.sleep(0)

    for seed in range(20):
        run(scenario, seed)


def test_an_exception_that_nobody_asked_for_is_a_failure() -> None:
    """A task that failed counts, also when it is held in a cycle that no garbage collector has looked at."""

    class Keeper:
        task: asyncio.Task[None]

        async def fail(self) -> None:
            raise ZeroDivisionError("unseen")

    async def scenario(loop: SimLoop) -> None:
        keeper = Keeper()
        keeper.task = loop.create_task(keeper.fail())
        await asyncio.sleep(1)

    with pytest.raises(ErrorUnhandled, match="unseen") as failure:
        run(scenario, 1)
    assert isinstance(failure.value.__cause__, ZeroDivisionError)


def test_an_exception_of_a_callback_is_a_failure() -> None:
    """What reaches the loop's exception handler fails the run, though the scenario returned."""

    async def scenario(loop: SimLoop) -> None:
        loop.call_soon(divmod, 1, 0)
        await asyncio.sleep(1)

    with pytest.raises(ErrorUnhandled, match="ZeroDivisionError"):
        run(scenario, 1)


def test_an_exception_of_the_scenario_is_raised_as_it_is_with_the_seed() -> None:
    """The exception comes out unchanged, with a note that says how to get it again."""

    async def scenario(loop: SimLoop) -> None:
        loop.call_soon(divmod, 1, 0)
        await asyncio.sleep(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as failure:
        simulate(scenario, 42, record=True)
    first, second, journal = failure.value.__notes__
    assert "seed 42" in first
    assert "ZeroDivisionError" in second
    assert "scenario" in journal


def test_a_run_leaves_no_trace_in_the_process() -> None:
    """The global chances, the garbage collector and the running loop are as they were."""

    async def scenario(_loop: SimLoop) -> float:
        assert not gc.isenabled()
        return random.random()

    random.seed(5)
    expected = random.random()
    random.seed(5)
    assert run(scenario, 3) == run(scenario, 3) != run(scenario, 4)
    assert random.random() == expected
    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


def test_an_asynchronous_generator_that_was_left_is_closed() -> None:
    """Its `finally` runs before the loop is closed."""
    closed: list[bool] = []
    kept: list[AsyncGenerator[int]] = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    async def scenario(_loop: SimLoop) -> None:
        kept.append(numbers())
        assert await anext(kept[0]) == 1

    run(scenario, 1)
    assert closed == [True]
