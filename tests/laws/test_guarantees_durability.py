"""What is promised of the disk and of turns (SPEC 1.3: G1, G2, G4, G9, G11 to G13, G17)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from midstream.protocol.calls import InteractionsResult, Page, SessionResult, TurnResult
from midstream.protocol.errors import IdempotencyConflict
from midstream.protocol.frames import Change
from midstream.protocol.model import ToolPart
from midstream.protocol.transitions import is_open
from midstream.server import TurnEnded
from tests.disk import broken_disk
from tests.laws.cases_texts import end_of, step_of, text_of
from tests.laws.cases_tools import call_of, waiting_call_of
from tests.laws.cases_turns import busy_turn_of
from tests.laws.line import DELTAS
from tests.laws.scene import Scene
from tests.laws.world import World, in_world, pause, play

Acknowledged = Callable[[Scene], Coroutine[Any, Any, str]]


async def a_prompt(scene: Scene) -> str:
    """Have a prompt answered, and say what must be found afterwards."""
    await scene.prompt({"type": "text", "text": "Kept prompt"})
    return "Kept prompt"


async def a_queued_prompt(scene: Scene) -> str:
    """Have a prompt answered that waits."""
    await scene.turn()
    await scene.prompt({"type": "text", "text": "Kept prompt"})
    return "Kept prompt"


async def an_answer(scene: Scene) -> str:
    """Have an answer to an approval taken."""
    await waiting_call_of(scene)
    await scene.approve("denied")
    return "denied"


async def a_title(scene: Scene) -> str:
    """Have the title changed."""
    await scene.ask(SessionResult, "sessions.update", title="Kept title")
    return "Kept title"


async def a_step(scene: Scene) -> str:
    """Have a step committed."""
    step = await step_of(scene)
    await text_of(step, "Kept step")
    await end_of(step)
    return "Kept step"


ACKNOWLEDGED = [a_prompt, a_queued_prompt, an_answer, a_title, a_step]


@pytest.mark.parametrize("thing", ACKNOWLEDGED, ids=lambda thing: thing.__name__)
def test_g1_what_was_acknowledged_survives_power_loss(thing: Acknowledged, tmp_path: Path) -> None:
    """Of the disk only what was synced remains, and it is there."""
    left = tmp_path / "left"
    left.mkdir()

    async def story(world: World) -> None:
        scene = await Scene.begin(world)
        kept = await thing(scene)
        disk.after_power_loss(left)
        after = World(world.loop, left / world.path.name, {}, port=8_788)
        await after.start()
        fresh = await after.fresh("s")
        await after.close()
        assert kept in str(fresh.content())

    with broken_disk(remember=True) as disk:
        play(story, tmp_path, vfs=disk.name, synchronous="FULL")


@pytest.mark.parametrize("thing", ACKNOWLEDGED, ids=lambda thing: thing.__name__)
@in_world()
async def test_g1_what_was_acknowledged_survives_kill_9(world: World, thing: Acknowledged) -> None:
    """The server is killed at the moment of the answer."""
    scene = await Scene.begin(world)
    kept = await thing(scene)
    await scene.crash()
    await pause()
    assert kept in str((await scene.fresh()).content())


@pytest.mark.parametrize("thing", ACKNOWLEDGED, ids=lambda thing: thing.__name__)
@in_world()
async def test_g1_nothing_is_acknowledged_before_it_is_stored(world: World, thing: Acknowledged) -> None:
    """While any commit of it is held open, whoever asked for it waits."""
    scene = await Scene.begin(world)
    asked = asyncio.create_task(thing(scene))
    held = 0
    while not asked.done():
        gate = world.database.hold("write", "before")
        standing = asyncio.create_task(gate.reached())
        await asyncio.wait([standing, asked], return_when=asyncio.FIRST_COMPLETED)
        if standing.done():
            held += 1
            await pause()
            assert not asked.done()
        standing.cancel()
        gate.open()
        await pause(0.0)
    assert held >= 1


@in_world()
async def test_g2_an_input_that_started_a_turn_never_starts_another(world: World) -> None:
    """After crashes and restarts its turn is failed, and no agent is begun for it again."""
    scene = await Scene.begin(world)
    turn = await scene.turn("Once")
    for end in (scene.crash, scene.restart, scene.crash):
        await end()
        await pause(1.0)
    assert world.puppet.idle
    found = (await scene.ask(TurnResult, "turn", turn_id=turn.turn_id)).turn
    assert found is not None
    assert (found.state, found.error.code if found.error else None) == ("failed", "runtime_interrupted")


@in_world()
async def test_g2_inputs_that_wait_start_their_turns_in_order_over_crashes(world: World) -> None:
    """Three inputs wait while the server is killed again and again: each starts one turn, in their order."""
    scene = await Scene.begin(world)
    await scene.turn("first")
    for word in ("second", "third", "fourth"):
        await scene.prompt({"type": "text", "text": word}, delivery="queue")
    ran: list[str] = []
    for _ in range(3):
        await scene.crash()
        ran.append((await world.puppet.next()).prompt_text)
    assert ran == ["second", "third", "fourth"]
    assert world.puppet.idle
    await scene.proves(await scene.reader())


@in_world()
async def test_g4_no_version_is_used_twice_over_crashes_and_restarts(world: World) -> None:
    """What a reader was sent above the last commit is never sent again as something else."""
    scene = await Scene.begin(world)
    used: dict[int, bytes] = {}
    highest = 0
    for number, end in enumerate((scene.crash, scene.restart, scene.crash, scene.crash)):
        step = await step_of(scene)
        reader = await scene.reader()
        assert reader.replica.version > highest
        text = await text_of(step, f"life {number} ")
        for word in ("never ", "stored"):
            await text.append(word)
            await pause()
        for frame, data in zip(reader.line.frames, reader.line.heard, strict=True):
            if isinstance(frame, (*DELTAS, Change)):
                assert used.setdefault(frame.version, data) == data
        highest = max(used)
        await end()


async def _complete(scene: Scene) -> None:
    del scene


async def _stop(scene: Scene) -> None:
    await scene.stop()


async def _interrupt(scene: Scene) -> None:
    await scene.prompt(delivery="interrupt")


@pytest.mark.parametrize("end", [_complete, _stop, _interrupt], ids=["completed", "stopped", "interrupted"])
@in_world()
async def test_g9_nothing_of_a_turn_is_published_after_its_end(
    world: World, end: Callable[[Scene], Awaitable[None]]
) -> None:
    """Every part has an end state, and whatever the agent still tries is refused and changes nothing."""
    scene = await Scene.begin(world)
    turn = await busy_turn_of(scene)
    step = await turn.step().__aenter__()
    text = await text_of(step, "Half ")
    call = await step.tool("late", input={})
    action = await turn.action("late", "Late")
    if end is _complete:
        await scene.finish(turn)
    else:
        await end(scene)
    await pause()
    reader = await scene.reader()
    of_turn = [message for message in reader.replica.messages() if message.turn_id == turn.turn_id]
    assert not [part for message in of_turn for part in message.parts if is_open(part)]
    assert "streaming" not in {message.state for message in of_turn}
    version = reader.replica.version
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: text.append("late"),
        lambda: step.data("late", 1),
        call.run,
        action.complete,
        turn.take_inputs,
        lambda: turn.error("late", "Late"),
        lambda: turn.ask_approval(title="Late?"),
        lambda: end_of(step),
    ]
    for attempt in attempts:
        with pytest.raises(TurnEnded):
            await attempt()
    await pause()
    assert (await scene.fresh()).replica.version == version


@in_world()
async def test_g11_a_tool_runs_only_after_that_was_committed_and_never_again(world: World) -> None:
    """Run does not return before the commit; after a crash the tool is failed, and nobody begins it again."""
    scene = await Scene.begin(world)
    _, call = await call_of(scene)
    gate = world.database.hold("write", "before")
    returned: list[str] = []

    async def run() -> None:
        await call.run()
        returned.append("it runs")

    scene.in_background(run())
    await gate.reached()
    await pause()
    assert returned == []
    gate.open()
    while not returned:
        await pause(0.01)
    await scene.crash()
    await pause(1.0)
    assert world.puppet.idle
    tools = [
        part
        for message in (await scene.fresh()).replica.messages()
        for part in message.parts
        if isinstance(part, ToolPart)
    ]
    assert [(tool.state, tool.error) for tool in tools] == [("failed", "runtime_interrupted")]


@in_world()
async def test_g12_a_change_that_is_marked_durable_was_committed_before(world: World) -> None:
    """While a commit is open nothing of it is sent; what was sent as durable is there after a kill."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    reader = await scene.reader()
    version = reader.replica.version
    gate = world.database.hold("write", "before")
    scene.in_background(turn.action("note", "Noted"))
    await gate.reached()
    await pause()
    assert reader.replica.version == version
    gate.open()
    await reader.until_version(version + 1)
    (change,) = [frame for frame in reader.line.of(Change) if frame.version == version + 1]
    assert change.durable
    assert reader.replica.durable == version + 1
    await scene.crash()
    assert "Noted" in str((await scene.fresh()).content())


@in_world()
async def test_g12_what_was_only_streamed_is_never_marked_durable(world: World) -> None:
    """A part that opens and closes between two commits comes in changes that say so."""
    scene = await Scene.begin(world)
    step = await step_of(scene)
    await text_of(step)
    reader = await scene.reader()
    durable = reader.replica.durable
    await (await text_of(step, "second")).done()
    await pause()
    assert [frame.durable for frame in reader.line.of(Change)] == [False, False]
    assert reader.replica.durable == durable
    await end_of(step)
    await pause()
    assert reader.replica.durable == reader.replica.version


@in_world()
async def test_g13_sequences_go_on_over_clears_and_crashes(world: World) -> None:
    """No message gets the sequence or the id of one that was."""
    scene = await Scene.begin(world)
    seen: dict[int, str] = {}

    async def look() -> None:
        for item in (await scene.ask(Page, "messages", limit=200, include_internal=True)).items:
            assert seen.setdefault(item.sequence, item.message_id) == item.message_id

    for end in (scene.crash, scene.restart, scene.crash):
        turn = await scene.turn()
        async with turn.step() as step:
            await text_of(step)
        await look()
        await end()
        await look()
        await scene.ask(SessionResult, "sessions.clear")
    assert list(seen) == list(range(1, max(seen) + 1))
    assert len(set(seen.values())) == len(seen)


@in_world()
async def test_g13_the_id_of_another_message_is_refused_as_an_inputs(world: World) -> None:
    """The agent's message has it, so a prompt cannot; an input's own stays its own over a clear."""
    scene = await Scene.begin(world)
    theirs = (await scene.ask(Page, "messages")).items[-1].message_id
    with pytest.raises(IdempotencyConflict):
        await scene.prompt(message_id=theirs)
    await scene.ask(SessionResult, "sessions.clear")
    await pause()
    with pytest.raises(IdempotencyConflict):
        await scene.prompt({"type": "text", "text": "Another"}, message_id="input_1")


@in_world()
async def test_g17_disconnecting_stops_nothing(world: World) -> None:
    """Everybody leaves in the middle of a turn; it goes on, asks, and ends when its agent returns."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    step = await turn.step().__aenter__()
    text = await text_of(step)
    readers = [await scene.reader(), await scene.reader()]
    readers[0].line.cut()
    await readers[1].leave()
    await scene.user.close()
    await pause(60.0)
    await text.append("upon a time")
    await end_of(step)
    scene.user = await world.line()
    assert (await scene.ask(InteractionsResult, "interactions")).items == []
    assert await scene.finish(turn) == "completed"
    assert "Once upon a time" in str((await scene.fresh()).content())
