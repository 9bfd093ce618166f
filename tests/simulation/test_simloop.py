"""The simulated event loop: virtual time, a seeded order, and nothing from outside."""

import asyncio
import threading
from itertools import permutations

import pytest

from tests.clock import WALL_START_MS, SimClock
from tests.simulation.failures import Deadlock, LimitPassed
from tests.simulation.host import Host
from tests.simulation.run import run
from tests.simulation.simloop import START, SimLoop


def test_hours_pass_without_waiting() -> None:
    """A sleep of ten hours is two steps, and every clock of the simulation shows it."""

    async def scenario(loop: SimLoop) -> tuple[float, int, int]:
        clock = SimClock(loop)
        steps = loop.steps
        await asyncio.sleep(36_000)
        return clock.now() - START, clock.wall_ms() - WALL_START_MS, loop.steps - steps

    assert run(scenario, 1) == (36_000.0, 36_000_000, 2)


def test_time_stands_still_while_anything_is_ready() -> None:
    """A thousand turns of the loop take no virtual time."""

    async def scenario(loop: SimLoop) -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return loop.time()

    assert run(scenario, 1) == START


def test_timers_fire_at_their_time_in_order() -> None:
    """Each timer sees its own time, whatever the order in which they were set; cancelled ones never fire."""

    async def scenario(loop: SimLoop) -> list[float]:
        fired: list[float] = []
        delays = [loop.random.uniform(0, 100) for _ in range(500)]
        timers = [loop.call_later(delay, lambda: fired.append(loop.time())) for delay in delays]
        for timer in timers[::3] + timers[1::3]:
            timer.cancel()
        await asyncio.sleep(100)
        assert fired == pytest.approx(sorted(START + delay for delay in delays[2::3]))
        return fired

    assert len(run(scenario, 1)) == 166


async def race(_loop: SimLoop) -> str:
    """Let three tasks that are ready in the same turn write their names."""
    written: list[str] = []
    gate = asyncio.Event()

    async def writer(name: str) -> None:
        await gate.wait()
        written.append(name)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(writer(name))
        await asyncio.sleep(1)
        gate.set()
    return "".join(written)


def test_seeds_try_every_order_of_what_is_ready() -> None:
    """Over a hundred seeds, three tasks that wake together run in all six orders."""
    assert {run(race, seed) for seed in range(1, 101)} == {"".join(order) for order in permutations("abc")}


def test_seed_zero_keeps_the_order_of_asyncio() -> None:
    """Seed 0 runs what is ready in the order in which it was scheduled."""
    assert run(race, 0) == "abc"


def test_a_deadlock_fails_at_once_and_says_who_waits_where() -> None:
    """With nothing ready and no timer the run fails, naming each task and the line it waits at."""

    async def wait_for_nobody() -> None:
        await asyncio.Event().wait()

    async def scenario(loop: SimLoop) -> None:
        waiting = loop.create_task(wait_for_nobody(), name="lonely")
        await waiting

    with pytest.raises(
        Deadlock, match=r"nothing scheduled \(seed 7, time 1000.*\n(.*\n)*.*lonely: .*wait_for_nobody"
    ):
        run(scenario, 7)


def test_too_much_time_is_a_failure() -> None:
    """A scenario that would pass its virtual time fails there, and not one step later."""

    async def scenario(loop: SimLoop) -> None:
        for _ in range(1000):
            await asyncio.sleep(1)
        raise AssertionError(loop.time())

    with pytest.raises(LimitPassed, match=r"virtual time would pass 1010\.0"):
        run(scenario, 1, max_virtual_seconds=10)


def test_too_many_steps_are_a_failure() -> None:
    """A loop that never ends is stopped by its number of steps."""

    async def scenario(loop: SimLoop) -> None:
        def again() -> None:
            loop.call_soon(again)

        again()
        await asyncio.sleep(1)

    with pytest.raises(LimitPassed, match="more than 1000 steps"):
        run(scenario, 1, max_steps=1000)


def test_there_are_no_threads() -> None:
    """An executor is refused with a reason, and so is a call from another thread."""

    async def scenario(loop: SimLoop) -> None:
        with pytest.raises(RuntimeError, match="no threads"):
            await asyncio.to_thread(print)
        refusals: list[str] = []

        def intrude() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except RuntimeError as error:
                refusals.append(str(error))

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        assert "has one thread" in refusals[0]

    run(scenario, 1)


def test_there_is_no_real_input_or_output() -> None:
    """Sockets, descriptors, name look-ups and TLS are refused."""

    async def scenario(loop: SimLoop) -> None:
        with pytest.raises(NotImplementedError):
            loop.add_reader(0, print)
        with pytest.raises(RuntimeError, match="no threads"):
            await loop.getaddrinfo("localhost", 80)
        with pytest.raises(NotImplementedError, match="ssl"):
            await loop.create_connection(asyncio.Protocol, "localhost", 443, ssl=True)
        with pytest.raises(ValueError, match="needs a host and a port"):
            await loop.create_connection(asyncio.Protocol)

    run(scenario, 1)


def test_a_set_of_tasks_is_walked_in_the_order_of_their_creation() -> None:
    """What iterates over a set of tasks does so in the same order in every run and process."""

    async def scenario(loop: SimLoop) -> None:
        tasks = [loop.create_task(asyncio.sleep(1)) for _ in range(100)]
        shuffled = loop.random.sample(tasks, len(tasks))
        assert list(set(shuffled)) == tasks
        assert [task.get_name() for task in tasks[:2]] == ["task-2", "task-3"]
        await asyncio.wait(tasks)

    for seed in range(10):
        run(scenario, seed)


def test_a_killed_host_does_nothing_more() -> None:
    """After `kill`, no step, no timer and no `finally` of the host runs while the simulation lasts."""

    async def scenario(loop: SimLoop) -> list[str]:
        happened: list[str] = []

        async def program() -> None:
            loop.call_later(2, happened.append, "timer")
            child = asyncio.create_task(asyncio.sleep(2))
            child.add_done_callback(lambda _: happened.append("child"))
            try:
                happened.append("started")
                await asyncio.sleep(2)
            finally:
                happened.append("finally")
                await asyncio.sleep(0)
                happened.append("never")

        victim, bystander = Host("victim"), Host("bystander")
        with victim:
            loop.create_task(program())
        with bystander:
            other = loop.create_task(program())
        await asyncio.sleep(1)
        loop.kill(victim)
        await other
        assert sorted(happened) == ["child", "finally", "never", "started", "started", "timer"]
        return happened

    for seed in range(20):
        happened = run(scenario, seed)
        assert happened.count("finally") == 2  # the victim's ran when all was over, up to its first await
        assert happened.count("never") == 1


def test_what_a_killed_host_did_not_look_at_is_nobodys_fault() -> None:
    """Seed 40349: of two tasks that a program waited for one had failed, when it was killed."""

    async def fail() -> None:
        raise LookupError

    async def program() -> None:
        await asyncio.gather(fail(), asyncio.sleep(2), return_exceptions=True)

    async def scenario(loop: SimLoop) -> None:
        victim = Host("victim")
        with victim:
            loop.create_task(program())
        await asyncio.sleep(1)
        loop.kill(victim)

    run(scenario, 1)
