"""The law: whatever changes, and however a reader gets it, applying it to the old state gives the fresh one.

For every kind of mutation (the cases) and every way to get it (the ways), a reader that follows the merge law
ends equal to one that has just read everything, page by page, and both are proved by the server's digests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.laws.case import Case, Playing
from tests.laws.mutations import MUTATIONS
from tests.laws.reader import Reader
from tests.laws.scene import Scene
from tests.laws.ways import WAYS, Followed, Way
from tests.laws.world import World, pause, play


def hold(case: Case, way: Way, path: Path) -> None:
    """Play a case in a way, and hold the reader against a fresh one."""

    async def story(world: World) -> None:
        scene = await Scene.begin(world)
        followed = await way.follow(scene, Playing(case, scene))
        await pause()  # what streams is published with the next tick
        if not followed.reader.line.is_open:
            await followed.reader.rejoin(await world.line())
        await judge(scene, case, followed)

    play(story, path, **way.settings)


async def judge(scene: Scene, case: Case, followed: Followed) -> None:
    """Compare the reader with a fresh one, and refuse a case that changed nothing."""
    reader = followed.reader
    full = reader.replica.include_internal
    fresh = await scene.fresh(include_internal=full)
    await reader.until_version(fresh.replica.version)
    assert reader.content() == fresh.content()
    assert (reader.replica.epoch, reader.replica.version) == (fresh.replica.epoch, fresh.replica.version)
    assert reader.replica.durable <= fresh.replica.durable
    await reader.prove()
    changed = followed.old != fresh.content()
    assert changed or (case.hidden and not full), f"{case.name} changes nothing"
    assert_came_by(scene, case, followed, reader)


def assert_came_by(scene: Scene, case: Case, followed: Followed, reader: Reader) -> None:
    """Check that the way was the one that is meant."""
    if not followed.came_by or case.restarts:
        return
    expected = followed.came_by
    if case.resets and not expected & {"d", "sync"}:
        expected = frozenset({"reset"})
    assert set(reader.tags) <= expected, (reader.tags, expected)
    assert reader.tags, f"nothing came in life {scene.world.lives}"


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("case", MUTATIONS.values(), ids=MUTATIONS)
def test_what_changed_applied_to_the_old_state_is_the_fresh_state(
    case: Case, way: Way, tmp_path: Path
) -> None:
    """Apply(mutations, old) == fresh, and no case changes nothing."""
    hold(case, way, tmp_path)
