"""Playing many schedules: in how many processes, how far it got, and which seed to look at."""

import argparse
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from tests.simulation.run import simulate
from tests.simulation.schedule import MAX_VIRTUAL_SECONDS, REMOTE_SEEDS, Played, play

MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, where there is one; only a directory is made
BATCH = 20
"""Schedules that a process plays between two reports."""
BATCHES_A_PROCESS = 50
"""Batches after which a process is replaced, so that nothing grows over a hundred thousand schedules."""
REPORT_SECONDS = 10.0


def play_seed(seed: int, *, traced: bool = False) -> Played:
    """Play the schedule of a seed.

    Raises:
        SimulationFailure: Something was not as promised. The diary stands in the notes.
    """
    with scratch() as directory:
        return simulate(
            lambda loop: play(loop, directory, traced=traced),
            seed,
            max_virtual_seconds=MAX_VIRTUAL_SECONDS,
        ).result


@contextmanager
def scratch() -> Generator[Path]:
    """Give a directory for one world's file, in memory if possible."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="midstream-", dir=place) as directory:
        yield Path(directory)


def first_failure(seeds: Sequence[int]) -> tuple[int, str] | None:
    """Play schedules one after another; return the first seed that failed, and how."""
    for seed in seeds:
        try:
            play_seed(seed)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
            return seed, "".join(traceback.format_exception_only(error))
    return None


def play_many(seeds: Sequence[range], jobs: int) -> int | None:
    """Play the schedules of these seeds, and say how it goes; return the lowest seed that failed."""
    batches = _batches(seeds)
    count = sum(map(len, seeds))
    started = reported = time.monotonic()
    failures: dict[int, str] = {}
    done = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=BATCHES_A_PROCESS) as pool:
        running: dict[Future[tuple[int, str] | None], range] = {}
        while True:
            for batch in itertools.islice(batches if not failures else (), 2 * jobs - len(running)):
                running[pool.submit(first_failure, batch)] = batch
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                failure, batch = future.result(), running.pop(future)
                done += len(batch)
                if failure is not None:
                    failures[failure[0]] = failure[1]
            if time.monotonic() - reported > REPORT_SECONDS:
                reported = time.monotonic()
                _say(f"{done} of {count} schedules, {done / (reported - started):.0f} a second")
    seconds = time.monotonic() - started
    if not failures:
        firsts = " and ".join(str(some.start) for some in seeds if some)
        _say(f"{done} schedules from seed {firsts} on, no divergence, {seconds:.0f} s in {jobs} processes")
        return None
    seed = min(failures)
    _say(failures[seed])
    _say(f"Seed {seed} failed. To see all of it: python -m tests.simulation.run --seed {seed} --trace")
    return seed


def main(arguments: Sequence[str] | None = None) -> int:
    """Play schedules as the command line says; return 1 if one failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.run", description="Play seeded schedules of the whole system."
    )
    parser.add_argument("--schedules", type=int, default=2_000, metavar="N", help="how many (2000)")
    parser.add_argument(
        "--remote", type=int, default=500, metavar="N", help="how many with agents in workers, besides (500)"
    )
    parser.add_argument(
        "--first-seed",
        type=int,
        default=1,
        metavar="N",
        help=f"the first seed (1); with agents in workers {REMOTE_SEEDS} higher",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--seed", type=int, metavar="N", help="play this seed alone, and print its diary")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every frame too")
    asked = parser.parse_args(arguments)
    if asked.seed is None:
        first = asked.first_seed
        seeds = [
            range(start, start + count)
            for start, count in ((first, asked.schedules), (REMOTE_SEEDS + first, asked.remote))
        ]
        return 0 if play_many(seeds, asked.jobs) is None else 1
    try:
        lines = play_seed(asked.seed, traced=asked.trace).lines
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
        _say("".join(traceback.format_exception(error)))
        return 1
    _say("\n".join(lines))
    return 0


def _batches(seeds: Sequence[range]) -> Iterator[range]:
    for some in seeds:
        for start in range(some.start, some.stop, BATCH):
            yield range(start, min(start + BATCH, some.stop))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
