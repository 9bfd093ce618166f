"""Races of those who watch the list of sessions (SPEC 12), made to happen for certain."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from msgspec import UNSET

from midstream.protocol.calls import EmptyResult, ListResult, SessionResult
from midstream.protocol.errors import Unavailable
from midstream.protocol.frames import SessionsChanged
from midstream.protocol.model import Session
from tests.laws.gate import When
from tests.laws.scene import Scene
from tests.laws.watcher import Watcher, listed
from tests.laws.world import World, in_world, pause


async def watcher_of(world: World, *, archived: bool = False) -> Watcher:
    """Somebody who watches, on a line of their own."""
    watcher = Watcher(await world.line(), archived=archived)
    await watcher.watch()
    return watcher


async def rename(scene: Scene, title: str) -> int:
    """Change a session; return its revision."""
    return (await scene.ask(SessionResult, "sessions.update", title=title)).session.revision


def items_of(answer: msgspec.Struct) -> list[Session]:
    """The sessions of the answer to a watch."""
    assert isinstance(answer, ListResult)
    return answer.items


@in_world()
async def test_r50_a_session_changes_after_the_list_was_read_and_before_the_answer(world: World) -> None:
    """The answer has it as it was, and the change is told behind it, also where its tick had passed."""
    scene = await Scene.begin(world)
    other = await watcher_of(world)
    watcher = Watcher(await world.line())
    gate = world.database.hold("read", "after")
    answer = await watcher.line.begin("sessions.watch", {"limit": 200})
    await gate.reached()
    await rename(scene, "New")
    await other.until_told(1)
    await pause()
    assert not watcher.line.of(SessionsChanged)
    assert not answer.done()
    gate.open()
    assert [session.title for session in items_of(await answer)] == [UNSET]
    await watcher.line.until(lambda: bool(watcher.line.of(SessionsChanged)))
    (frame,) = watcher.line.of(SessionsChanged)
    assert [session.title for session in frame.changes.changed] == ["New"]


@in_world()
async def test_r51_a_session_is_deleted_after_the_list_was_read_and_before_the_answer(world: World) -> None:
    """It is in the answer, and gone behind it; nothing brings it back."""
    scene = await Scene.begin(world)
    watcher = Watcher(await world.line())
    gate = world.database.hold("read", "after")
    answer = await watcher.line.begin("sessions.watch", {"limit": 200})
    await gate.reached()
    await scene.ask(EmptyResult, "sessions.delete")
    await pause()
    gate.open()
    assert len(items_of(await answer)) == 1
    await watcher.line.until(lambda: bool(watcher.line.of(SessionsChanged)))
    assert [frame.changes.removed for frame in watcher.line.of(SessionsChanged)] == [["s"]]
    await pause(1.0)
    assert [frame.changes.changed for frame in watcher.line.of(SessionsChanged)] == [[]]


@pytest.mark.parametrize("passes", ["while it is read", "later"])
@in_world(watch_ms=1_000)
async def test_r52_somebody_begins_to_watch_while_changes_wait_for_their_tick(
    world: World, passes: Literal["while it is read", "later"]
) -> None:
    """Nothing is told before the answer, and then all that is newer; the others get each state once."""
    scene = await Scene.begin(world)
    other = await watcher_of(world)
    await rename(scene, "First")
    await other.until_told(1)
    revision = await rename(scene, "Second")
    watcher = Watcher(await world.line())
    gate = world.database.hold("read", "before")
    answer = await watcher.line.begin("sessions.watch", {"limit": 200})
    await gate.reached()
    if passes == "while it is read":
        await other.until_told(2)
        await pause()
    assert not watcher.line.of(SessionsChanged)
    gate.open()
    assert [session.revision for session in items_of(await answer)] == [revision]
    third = await rename(scene, "Third")
    await pause(3.0)
    told = [one.revision for frame in watcher.line.of(SessionsChanged) for one in frame.changes.changed]
    assert told[-1] == third
    assert {session.title for changes in other.told for session in changes.changed} >= {"First", "Third"}
    assert other.shown() == await listed(scene.user)


@in_world(watch_ms=1_000)
async def test_r53_a_session_is_changed_archived_and_deleted_in_one_tick(world: World) -> None:
    """Of all that only the end is told."""
    scene = await Scene.begin(world)
    watcher, archive = await watcher_of(world), await watcher_of(world, archived=True)
    await rename(scene, "Old")
    await watcher.until_told(1)
    await rename(scene, "New")
    await scene.ask(SessionResult, "sessions.archive")
    await scene.ask(EmptyResult, "sessions.delete")
    for one in (watcher, archive):
        last = await one.until_told(2)
        assert (last.changed, last.removed) == ([], ["s"])
    await pause(3.0)
    assert len(watcher.told) == len(archive.told) == 2
    assert watcher.shown() == archive.shown() == []


@in_world()
async def test_r54_the_server_is_killed_in_mid_turn_while_the_list_is_watched(world: World) -> None:
    """What comes after the restart does not show the turn as running."""
    scene = await Scene.begin(world)
    watcher = await watcher_of(world)
    turn = await scene.turn()
    await scene.approval(turn)
    await watcher.line.until(lambda: bool((found := watcher.session()) and found.pending_interactions))
    running = watcher.session()
    assert running is not None
    assert running.running_turn_id == turn.turn_id
    await scene.crash()
    watcher = await watcher_of(world)
    found = watcher.session()
    assert found is not None
    assert (found.running_turn_id, found.pending_interactions) == (UNSET, 0)
    assert found.revision > running.revision
    assert watcher.shown() == await listed(scene.user)


@in_world()
async def test_r54_a_turn_whose_repair_failed_is_told_when_it_succeeds(world: World) -> None:
    """Until then it is listed as it is on disk; the server tries again by itself."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    await world.kill()
    world.on_open = lambda database: database.fail("before")
    await world.start()
    world.on_open = None
    watcher = await watcher_of(world)
    assert watcher.answer is not None
    assert [session.running_turn_id for session in watcher.answer.items] == [turn.turn_id]
    changes = await watcher.until_told(1)
    assert [session.running_turn_id for session in changes.changed] == [UNSET]


@in_world(watch_ms=5_000)
async def test_r55_the_server_drains_while_the_list_is_watched(world: World) -> None:
    """The end of the turn is told before the close, tick or no tick, and the next connection asks again."""
    scene = await Scene.begin(world)
    watcher = await watcher_of(world)
    await scene.turn()
    await watcher.until_told(1)
    await world.stop()
    await watcher.line.until(lambda: not watcher.line.is_open)
    assert watcher.line.code == 4_000
    last = watcher.told[-1]
    assert [session.running_turn_id for session in last.changed] == [UNSET]
    await world.start()
    again = await watcher_of(world)
    assert again.shown() == watcher.shown()


@in_world(outbox_bytes=4_096)
async def test_r56_a_watch_does_not_read_while_sessions_change(world: World) -> None:
    """It is told that it missed something when it reads, and nothing else; the others get everything."""
    scene = await Scene.begin(world)
    slow, other = await watcher_of(world), await watcher_of(world)
    slow.line.link.stall("down")
    for number in range(40):
        await scene.ask(
            SessionResult, "sessions.update", title=f"{number}", metadata={"ballast": "x" * 15_000}
        )
        await pause(0.2)
    assert other.shown() == await listed(scene.user)
    slow.line.link.unstall("down")
    await slow.line.until(lambda: bool(slow.told) and slow.told[-1].incomplete)
    assert 0 < len(slow.told) - 1 < len(other.told)
    missed = len(slow.told)
    await rename(scene, "After")
    await pause(1.0)
    assert len(slow.told) == missed
    await slow.watch()
    await rename(scene, "At last")
    await slow.until_told(1)
    await pause(1.0)
    assert slow.shown() == other.shown() == await listed(scene.user)


@pytest.mark.parametrize("when", ["before", "after"])
@in_world()
async def test_r57_a_commit_fails_and_the_data_is_there_or_not(world: World, when: When) -> None:
    """Whoever watches is told what is on disk, without asking, also where nothing has to be repaired."""
    scene = await Scene.begin(world)
    watcher = await watcher_of(world)
    world.database.fail(when)
    with pytest.raises(Unavailable):
        await rename(scene, "New")
    await watcher.until_told(1)
    await pause(1.0)
    assert watcher.shown() == await listed(scene.user)
    found = watcher.session()
    assert found is not None
    assert found.title == ("New" if when == "after" else UNSET)
