"""The table of cases is complete, and the harness refuses what proves nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from midstream.protocol import model
from midstream.protocol.calls import SessionResult
from midstream.protocol.frames import SessionFrame, SyncPayload
from midstream.protocol.model import Session, TurnPhase
from midstream.protocol.transitions import TABLES
from tests.laws.case import Case, Playing
from tests.laws.line import tag_of
from tests.laws.mutations import MUTATIONS
from tests.laws.reach import all_reached, reached
from tests.laws.scene import Scene
from tests.laws.test_every_mutation import hold
from tests.laws.ways import WAYS, Way
from tests.laws.world import World, pause, play

NEVER_CHANGES = {"session_id", "created_at"}


def test_every_part_type_is_changed_by_some_case() -> None:
    """A part type that is new to the model needs a case."""
    types = {str(kind.__struct_config__.tag) for kind in get_args(model.Part)}
    assert all_reached().parts == types


@pytest.mark.parametrize("machine", TABLES)
def test_every_move_of_every_state_table_is_made_by_some_case(machine: str) -> None:
    """Every pair of states that a table allows is passed by something that a reader watches."""
    moves = {(before, after) for kind, before, after in all_reached().moves if kind == machine}
    table = TABLES[machine]  # type: ignore[index]  # the parameter is one of its keys
    allowed = {(before, after) for before, follow in table.items() for after in follow}
    assert allowed - moves == set()


def test_every_field_of_the_session_is_changed_by_some_case() -> None:
    """A field that is new to the session needs a case."""
    assert all_reached().fields == set(Session.__struct_fields__) - NEVER_CHANGES


def test_every_phase_of_a_turn_is_come_to_in_some_case() -> None:
    """A phase that is new to the model needs a case."""
    assert all_reached().phases == set(get_args(TurnPhase))


def test_every_frame_and_every_mode_that_carries_changes_is_used(tmp_path: Path) -> None:
    """Together, the ways bring changes by every frame of the merge law, and by every mode of a sync."""
    used = set(all_reached().tags)

    for name, way in WAYS.items():

        async def story(world: World, way: Way = way) -> None:
            scene = await Scene.begin(world)
            followed = await way.follow(scene, Playing(MUTATIONS["a_text_grows"], scene))
            await pause(20.0)  # a heartbeat, so that marks come
            used.update(followed.reader.tags)
            used.update(map(tag_of, followed.reader.line.frames))

        (tmp_path / name).mkdir()
        play(story, tmp_path / name, **way.settings)
    frames = {tag_of(kind) for kind in get_args(SessionFrame)}
    modes = set(get_args(msgspec.structs.fields(SyncPayload)[0].type))
    assert frames | modes <= used


def test_every_case_is_brought_by_a_frame_of_its_own() -> None:
    """A reader that is there gets something in each case, and no two cases are one."""
    assert [name for name, reach in reached().items() if not reach.tags] == []
    assert len({case.script for case in MUTATIONS.values()}) == len(MUTATIONS)


async def _nothing_changes(scene: Scene) -> AsyncGenerator[None]:
    await scene.ask(SessionResult, "sessions.update", title="The same")
    yield
    await scene.ask(SessionResult, "sessions.update", title="The same")


@pytest.mark.parametrize("way", ["live_from_a_page", "reset", "one_frame_lost"])
def test_a_case_that_changes_nothing_is_refused(way: str, tmp_path: Path) -> None:
    """Else a law would hold because nothing was tried."""
    with pytest.raises(AssertionError, match=r"changes nothing|no gap"):
        hold(Case("nothing", _nothing_changes), WAYS[way], tmp_path)


async def _two_changes(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.prompt()
    yield


def test_a_case_with_two_changes_is_refused(tmp_path: Path) -> None:
    """The second would never be played."""
    with pytest.raises(AssertionError, match="more than one change"):
        hold(Case("two", _two_changes), WAYS["live"], tmp_path)
