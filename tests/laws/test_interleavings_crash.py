"""Races with crashes, backups, reloads and failing commits (SPEC 12), made to happen for certain."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Literal

import pytest

from midstream.protocol.calls import Page, SessionResult
from midstream.protocol.errors import Unavailable
from midstream.protocol.model import ErrorPart, TextPart
from tests.disk import Fault, broken_disk
from tests.laws.cases_texts import step_of, text_of
from tests.laws.cases_turns import busy_turn_of
from tests.laws.gate import Gate, When
from tests.laws.reader import Reader
from tests.laws.scene import Scene
from tests.laws.world import World, in_world, pause, play


def texts_of(reader: Reader) -> list[str]:
    """Return the texts of the newest message."""
    return [part.text for part in reader.replica.messages()[-1].parts if isinstance(part, TextPart)]


def interruptions_of(reader: Reader) -> list[str]:
    """Return the codes of all error parts."""
    parts = [part for message in reader.replica.messages() for part in message.parts]
    return [part.code for part in parts if isinstance(part, ErrorPart)]


@in_world()
async def test_r5_a_part_existed_only_before_the_crash(world: World) -> None:
    """It leaves every replica with the next sync, and what was stored stays."""
    scene = await Scene.begin(world)
    step = await step_of(scene)
    await (await text_of(step, "stored")).done()
    await step.tool("search", input={})
    await text_of(step, "only shown")
    reader = await scene.reader()
    assert texts_of(reader) == ["stored", "only shown"]
    await scene.crash()
    await reader.rejoin(await world.line())
    assert reader.tags[-1] == "catchup"
    assert texts_of(reader) == ["stored"]
    assert interruptions_of(reader) == ["runtime_interrupted"]
    await scene.proves(reader)


@pytest.mark.parametrize("when", ["before", "after"])
@in_world()
async def test_r6_two_crashes_in_a_row_the_second_during_the_repair(world: World, when: When) -> None:
    """The repair happened once or not yet; the next load starts above all that either could have shown."""
    scene = await Scene.begin(world)
    await busy_turn_of(scene)
    reader = await scene.reader()
    seen = reader.replica.version
    await world.kill()
    gates: list[Gate] = []
    world.on_open = lambda database: gates.append(database.hold("write", when))
    starting = asyncio.create_task(world.start())
    while not gates:
        await pause(0.01)
    await gates[0].reached()
    await world.kill()
    await asyncio.wait([starting])
    assert starting.cancelled()
    world.on_open = None
    await world.start()
    scene.user = await world.line()
    await reader.rejoin(await world.line())
    assert reader.tags[-1] == "catchup"
    assert reader.replica.version > seen
    assert interruptions_of(reader) == ["runtime_interrupted"]
    await scene.proves(reader)


@pytest.mark.parametrize("author", ["user", "agent"])
@in_world()
async def test_r7_the_server_is_killed_right_after_a_message_was_announced(
    world: World, author: Literal["user", "agent"]
) -> None:
    """The message is there: it was on disk before anybody heard of it."""
    scene = await Scene.begin(world)
    turn = await scene.turn() if author == "agent" else None
    reader = await scene.reader()
    count = len(reader.replica.messages())
    if turn is None:
        scene.in_background(scene.prompt(message_id="announced"))
    else:
        step = await turn.step().__aenter__()
        scene.in_background(step.text().__aenter__())
    await reader.line.until(lambda: len(reader.replica.messages()) > count)
    announced = reader.replica.messages()[-1]
    assert announced.role == author
    await scene.crash()
    await reader.rejoin(await world.line())
    assert announced.message_id in [message.message_id for message in reader.replica.messages()]
    await scene.proves(reader)


@pytest.mark.parametrize("restarts", [False, True], ids=["same server", "killed"])
@in_world()
async def test_r9_turn_1_ends_while_the_client_is_away_and_turn_2_runs(
    world: World, *, restarts: bool
) -> None:
    """The sync has the end of turn 1, its message done, and turn 2 as it is."""
    scene = await Scene.begin(world)
    first = await scene.turn()
    text = await text_of(await first.step().__aenter__())
    reader = await scene.reader()
    await reader.leave()
    await text.append("upon a time")
    await scene.finish(first)
    if restarts:
        await scene.crash()
    second = await scene.turn()
    await text_of(await second.step().__aenter__(), "And then")
    await reader.rejoin(await world.line())
    assert reader.replica.turns[first.turn_id].state == "completed"
    assert reader.replica.running_turn is not None
    assert reader.replica.running_turn.turn_id == second.turn_id
    states = {message.turn_id: message.state for message in reader.replica.messages() if message.state}
    assert (states[first.turn_id], states[second.turn_id]) == ("done", "streaming")
    await scene.proves(reader)


def copy_database(path: Path, directory: Path) -> None:
    """Copy a database as a backup does: the file, and its log where there is one."""
    directory.mkdir(exist_ok=True)
    for name in (path.name, f"{path.name}-wal"):
        if (path.parent / name).exists():
            shutil.copy(path.parent / name, directory / name)


def restore_database(path: Path, directory: Path) -> None:
    """Put a backup in the place of the database."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        (path.parent / name).unlink(missing_ok=True)
    copy_database(directory / path.name, path.parent)


@pytest.mark.parametrize("grows", [0, 1, 30], ids=lambda grows: f"grows by {grows}")
@pytest.mark.parametrize("backup", ["of a stopped server", "of a running server", "of an unloaded session"])
@in_world(idle_seconds=5)
async def test_r10_a_backup_is_restored_and_grows_again(world: World, backup: str, grows: int) -> None:
    """The old cursor is noticed, whether its version has been reached again or not: never wrong data."""
    scene = await Scene.begin(world)
    kept = world.path.parent / "backup"
    if backup == "of a stopped server":
        await world.stop()
        copy_database(world.path, kept)
        await world.start()
        scene.user = await world.line()
    else:
        await pause(6.0 if backup == "of an unloaded session" else 0.0)
        copy_database(world.path, kept)
    for number in range(10):
        await scene.ask(SessionResult, "sessions.update", title=f"Lost {number}")
    turn = await scene.turn("A lost prompt")
    await scene.finish(turn)
    reader = await scene.reader()
    await world.stop()
    restore_database(world.path, kept)
    await world.start()
    scene.user = await world.line()
    for number in range(grows):
        await scene.ask(SessionResult, "sessions.update", title=f"Grown {number}")
    await reader.rejoin(await world.line())
    assert reader.tags[-1] == "reset"
    assert "lost" not in str(reader.content()).lower()
    await scene.proves(reader)


@in_world()
async def test_r10_a_backup_is_restored_under_a_cursor_that_saw_only_streamed_text_more(world: World) -> None:
    """Its version may lie in the epoch, but all that was streamed is given anew: never wrong data."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene), "in both ")
    kept = world.path.parent / "backup"
    copy_database(world.path, kept)
    await text.append("lost")
    await pause()
    reader = await scene.reader()
    await world.kill()
    restore_database(world.path, kept)
    await world.start()
    scene.user = await world.line()
    await text_of(await step_of(scene), "another ")
    await reader.rejoin(await world.line())
    assert "lost" not in str(reader.content())
    await scene.proves(reader)


@in_world(idle_seconds=5)
async def test_r12_the_session_is_loaded_anew_within_the_process(world: World) -> None:
    """The channel is a new one, versions go on in the same epoch, and the cursor holds."""
    scene = await Scene.begin(world)
    reader = await scene.reader()
    channel, epoch, version = reader.channel, reader.replica.epoch, reader.replica.version
    await reader.leave()
    await scene.unload()
    await text_of(await step_of(scene))
    await reader.rejoin(await world.line())
    assert reader.tags[-1] in {"replay", "catchup"}
    assert reader.channel != channel
    assert reader.replica.epoch == epoch
    assert reader.replica.version > version
    await scene.proves(reader)


@in_world()
async def test_r12_a_frame_of_the_load_before_is_ignored(world: World) -> None:
    """After a reload the old channel means nothing: a reader does not even know it."""
    scene = await Scene.begin(world)
    await text_of(await step_of(scene))
    reader = await scene.reader()
    channel = reader.channel
    assert channel is not None
    world.database.fail("before")
    with pytest.raises(Unavailable):
        await scene.ask(SessionResult, "sessions.update", title="Not done")
    await reader.line.until(lambda: reader.closed == ["reload"] and reader.channel is not None)
    assert reader.channel != channel
    assert channel not in reader.line.routes
    await scene.proves(reader)


@pytest.mark.parametrize("when", ["before", "after"])
@in_world()
async def test_r16_a_commit_fails_and_the_data_is_there_or_not(world: World, when: When) -> None:
    """The epoch ends, readers get what is on disk, and the call that is repeated finds it done or does it."""
    scene = await Scene.begin(world)
    await scene.ask(SessionResult, "sessions.update", title="Before")
    reader = await scene.reader()
    epoch, version = reader.replica.epoch, reader.replica.version
    world.database.fail(when)
    with pytest.raises(Unavailable) as refused:
        await scene.prompt(message_id="again")
    assert refused.value.retryable
    await reader.line.until(lambda: reader.closed == ["reload"] and reader.channel is not None)
    answer = await scene.prompt(message_id="again")
    assert answer.state == "started"
    page = await scene.ask(Page, "messages")
    assert [item.message_id for item in page.items].count("again") == 1
    await scene.proves(reader)
    assert reader.replica.version > version
    assert reader.replica.epoch != epoch


@pytest.mark.parametrize(
    "fault", [Fault.FSYNC_ERROR, Fault.WRITE_ERROR, Fault.DISK_FULL], ids=lambda one: one.name
)
@pytest.mark.parametrize("killed", [False, True], ids=["lives", "killed"])
def test_r16_a_commit_fails_on_a_broken_disk(fault: Fault, tmp_path: Path, *, killed: bool) -> None:
    """Whatever the disk kept of the commit, the retried prompt is one message, and every reader is equal."""

    async def story(world: World) -> None:
        scene = await Scene.begin(world)
        text = await text_of(await step_of(scene))
        reader = await scene.reader()
        await text.append("upon a time")
        await pause()
        if killed:
            await reader.leave()  # else it would have the session loaded, and the log written over
        disk.fail(fault, times=1)
        with pytest.raises(Unavailable):
            await scene.prompt(message_id="again")
        disk.repair()
        if killed:
            await scene.crash()
            await reader.rejoin(await world.line())
        else:
            await reader.line.until(lambda: bool(reader.closed) and reader.channel is not None)
        before = await scene.ask(Page, "messages")  # the queued prompt starts the next turn by itself
        is_there = "again" in [item.message_id for item in before.items]
        assert is_there == (killed and fault is Fault.FSYNC_ERROR)
        await scene.prompt(message_id="again")
        page = await scene.ask(Page, "messages")
        assert [item.message_id for item in page.items].count("again") == 1
        await scene.proves(reader)

    with broken_disk() as disk:
        play(story, tmp_path, vfs=disk.name, synchronous="FULL")
