"""What the simulation found, each as the shortest story that shows it.

Others stand beside the code that was at fault, where a smaller test shows the same.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.simulation.knobs import MINUTES_10, Knobs, Wish
from tests.simulation.run import run, simulate
from tests.simulation.schedule import MAX_VIRTUAL_SECONDS, play
from tests.simulation.simloop import SimLoop
from tests.simulation.world import World

Story = Callable[[World], Awaitable[None]]
SEEDS = range(1, 6)


def tell(story: Story, directory: Path, knobs: Knobs | None = None) -> None:
    """Let a story happen in a world, in several orders of callbacks; the world's end is judged."""
    for seed in SEEDS:

        async def scenario(loop: SimLoop, seed: int = seed) -> None:
            here = directory / str(seed)
            here.mkdir()
            world = World(loop, here, knobs or Knobs())
            async with world.running():
                await story(world)

        run(scenario, seed)


def test_a_clear_that_is_removed_by_halves_is_a_clear_all_the_same(tmp_path: Path) -> None:
    """Seed 34752: killed behind a clear, and the next server loses its disk while it removes the rows."""
    simulate(lambda loop: play(loop, tmp_path), 34_752, max_virtual_seconds=MAX_VIRTUAL_SECONDS)


def test_times_of_a_fork_do_not_go_back_with_the_clock(tmp_path: Path) -> None:
    """The server's clock is set back, a session is forked, and the fork goes on: later messages are later."""

    async def story(world: World) -> None:
        ann = world.invite("ann", Wish())
        ann.enter("A")
        await asyncio.sleep(1)
        ann.prompt("A", "text:1")
        await asyncio.sleep(1)
        world.clock.skew_wall(-MINUTES_10)
        ann.fork("A", None, "fork-1")
        await asyncio.sleep(1)
        ann.prompt("fork-1", "text:1")
        await asyncio.sleep(1)

    tell(story, tmp_path)


def test_a_server_that_drains_ends_though_its_agent_waits_for_ever(tmp_path: Path) -> None:
    """An approval that nobody gives and that never expires holds it up for `drain_seconds`, no longer."""

    async def story(world: World) -> None:
        ann = world.invite("ann", Wish())
        ann.enter("A")
        await asyncio.sleep(1)
        ann.prompt("A", "approve:0")
        await asyncio.sleep(1)
        world.backend.stop(drain=True)
        async with asyncio.timeout(world.knobs.drain_seconds + 5):
            await world.backend.down.wait()

    tell(story, tmp_path)
