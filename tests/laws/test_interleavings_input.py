"""Races of input, stops, answers, clears and owners (SPEC 12), made to happen for certain."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import UNSET

from midstream.protocol.calls import (
    EmptyResult,
    InteractionsResult,
    Page,
    PromptResult,
    RespondResult,
    SessionResult,
    StopResult,
    TurnResult,
)
from midstream.protocol.errors import IdempotencyConflict, InteractionClosed, NotFound, Unavailable
from midstream.protocol.frames import Change
from midstream.protocol.transitions import state_of
from midstream.protocol.values import Value
from midstream.server.storage.errors import DatabaseLocked
from tests.laws.cases_texts import step_of, text_of
from tests.laws.cases_tools import waiting_call_of
from tests.laws.line import LineLost
from tests.laws.reader import Reader
from tests.laws.scene import Scene
from tests.laws.world import World, in_world, pause

PARTS: Value = [{"type": "text", "text": "Once only"}]
APPROVED: Value = {"kind": "approval", "decision": "approved"}


async def say(scene: Scene, **params: Value) -> PromptResult:
    """Send the one prompt of these tests."""
    return await scene.ask(PromptResult, "prompt", **{"message_id": "once", "parts": PARTS, **params})


async def count_of(scene: Scene) -> int:
    """Return how many messages have the prompt's id."""
    page = await scene.ask(Page, "messages", limit=200)
    return [item.message_id for item in page.items].count("once")


@pytest.mark.parametrize("restarts", [False, True], ids=["same server", "killed"])
@in_world()
async def test_r18_a_prompt_is_repeated_after_its_turn(world: World, *, restarts: bool) -> None:
    """The answer is the same as ever, and nothing happens."""
    scene = await Scene.begin(world)
    first = await say(scene)
    await scene.finish(await world.puppet.next())
    if restarts:
        await scene.crash()
    before = await scene.ask(SessionResult, "sessions.get")
    assert await say(scene) == first
    assert await say(scene, delivery="queue") == first
    assert (await scene.ask(SessionResult, "sessions.get")).version == before.version
    assert await count_of(scene) == 1


@pytest.mark.parametrize("restarts", [False, True], ids=["same server", "killed"])
@in_world()
async def test_r18_a_prompt_is_repeated_after_a_clear(world: World, *, restarts: bool) -> None:
    """It is remembered though its message is gone: no message, no turn; other content is a conflict."""
    scene = await Scene.begin(world)
    first = await say(scene)
    await scene.finish(await world.puppet.next())
    await scene.ask(SessionResult, "sessions.clear")
    await pause()  # the rows are gone
    if restarts:
        await scene.crash()
    assert await say(scene) == first
    with pytest.raises(IdempotencyConflict):
        await say(scene, parts=[{"type": "text", "text": "Something else"}])
    assert (await scene.ask(TurnResult, "turn")).turn is None
    assert await count_of(scene) == 0


@in_world()
async def test_r18_a_prompt_is_repeated_in_a_fork(world: World) -> None:
    """A fork remembers no inputs: there it is a new one."""
    scene = await Scene.begin(world)
    first = await say(scene)
    await scene.finish(await world.puppet.next())
    await scene.ask(SessionResult, "sessions.fork", new_session_id="copy")
    again = await say(scene, session_id="copy")
    assert again.state == "started"
    assert again.turn_id != first.turn_id
    assert (await say(scene)).turn_id == first.turn_id
    scene.session_id = "copy"
    await scene.proves(await scene.reader())


@in_world()
async def test_r21_the_answer_is_lost_and_the_prompt_is_sent_again_in_every_way(world: World) -> None:
    """From the same and from another connection, twice at once, and after a crash: one message, one turn."""
    scene = await Scene.begin(world)
    lost = await world.line()
    lost.link.half_open("down")
    unanswered = await lost.begin("prompt", {"session_id": "s", "message_id": "once", "parts": PARTS})
    turn = await world.puppet.next()
    lost.cut()
    await asyncio.wait([unanswered])
    assert isinstance(unanswered.exception(), LineLost)
    first = await say(scene)
    assert (first.state, first.turn_id) == ("started", turn.turn_id)
    other = await world.line()
    call: dict[str, Value] = {"session_id": "s", "message_id": "once", "parts": PARTS}
    answers = [await line.begin("prompt", call) for line in (scene.user, other, scene.user, other)]
    assert [await answer for answer in answers] == [first] * 4
    await scene.crash()
    assert (await say(scene)).turn_id == turn.turn_id
    assert await count_of(scene) == 1
    await scene.proves(await scene.reader())


@in_world()
async def test_r21_a_new_prompt_is_sent_twice_at_once_from_two_connections(world: World) -> None:
    """One of the two starts the turn, and both get the same answer."""
    scene = await Scene.begin(world)
    other = await world.line()
    gate = world.database.hold("write", "before")
    call: dict[str, Value] = {"session_id": "s", "message_id": "once", "parts": PARTS}
    answers = [await line.begin("prompt", call) for line in (scene.user, other)]
    await gate.reached()
    await pause()
    gate.open()
    first, second = [await answer for answer in answers]
    assert first == second
    assert await count_of(scene) == 1


# Turns


@in_world()
async def test_r22_an_input_is_accepted_behind_the_end_of_the_turn(world: World) -> None:
    """While the end is being stored, the input waits; then it starts the next turn."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    reader = await scene.reader()
    gate = world.database.hold("write", "before")
    world.puppet.end(turn)
    await gate.reached()
    answer = await scene.user.begin("prompt", {"session_id": "s", "message_id": "once", "parts": PARTS})
    await pause()
    gate.open()
    result = await answer
    assert isinstance(result, PromptResult)
    assert result.state == "started"
    assert result.turn_id != turn.turn_id
    await scene.proves(reader)
    assert await count_of(scene) == 1


@in_world()
async def test_r22_an_input_is_accepted_ahead_of_the_end_of_the_turn(world: World) -> None:
    """While the input is being stored, the agent returns: one change ends this turn and starts the next."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    reader = await scene.reader()
    gate = world.database.hold("write", "before")
    answer = await scene.user.begin("prompt", {"session_id": "s", "message_id": "once", "parts": PARTS})
    await gate.reached()
    world.puppet.end(turn)
    await pause()
    gate.open()
    result = await answer
    assert isinstance(result, PromptResult)
    assert result.state == "queued"
    following = await world.puppet.next()
    await scene.proves(reader)
    changes = [frame for frame in reader.line.of(Change) if frame.content.turns]
    assert [[(one.turn_id, one.state) for one in frame.content.turns] for frame in changes] == [
        [(turn.turn_id, "completed"), (following.turn_id, "running")]
    ]
    assert [entry.message_id for entry in changes[0].content.messages] == ["once"]
    session = changes[0].content.session
    assert session is not UNSET
    assert session.queue == []
    await scene.proves(reader)


@in_world()
async def test_r22_an_input_is_accepted_while_the_agent_reads_its_input(world: World) -> None:
    """It was first, so the running turn takes it in."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    gate = world.database.hold("write", "before")
    answer = await scene.user.begin("prompt", {"session_id": "s", "message_id": "once", "parts": PARTS})
    await gate.reached()
    taking = asyncio.create_task(turn.take_inputs())
    await pause()
    gate.open()
    assert [message.message_id for message in await taking] == ["once"]
    await answer
    assert (await say(scene)).state == "absorbed"
    assert await count_of(scene) == 1


@in_world()
async def test_r24_a_stop_names_a_turn_that_has_ended_while_the_next_one_runs(world: World) -> None:
    """Nothing happens, and nothing that waits is cancelled."""
    scene = await Scene.begin(world)
    first = await scene.turn()
    await scene.finish(first)
    await scene.turn()
    await scene.prompt(message_id="waits")
    before = await scene.ask(SessionResult, "sessions.get")
    stopped = await scene.stop(turn_id=first.turn_id, cancel_queue="all")
    assert stopped == StopResult(stopped=False, cancelled=[], reason="idle")
    assert await scene.ask(SessionResult, "sessions.get") == before


# Answers


@in_world()
async def test_r19_the_time_comes_while_an_answer_is_stored(world: World) -> None:
    """The answer was first, so it wins, and nothing expires."""
    scene = await Scene.begin(world)
    await waiting_call_of(scene, expires_in=1.0)
    asked = await scene.asked()
    gate = world.database.hold("write", "before")
    call: dict[str, Value] = {"session_id": "s", "interaction_id": asked.interaction_id, "response": APPROVED}
    answer = await scene.user.begin("respond", call)
    await gate.reached()
    await pause(2.0)
    gate.open()
    result = await answer
    assert isinstance(result, RespondResult)
    assert (result.interaction.status, result.interaction.resolved_by) == ("resolved", "local")
    assert "expired" not in str((await scene.fresh()).content())
    await scene.proves(await scene.reader())


@in_world()
async def test_r19_an_answer_comes_while_the_expiry_is_stored(world: World) -> None:
    """The expiry was first, so the answer learns of it, and the tool is ready all the same."""
    scene = await Scene.begin(world)
    await waiting_call_of(scene, expires_in=1.0)
    asked = await scene.asked()
    reader = await scene.reader()
    gate = world.database.hold("write", "before")
    await gate.reached()
    call: dict[str, Value] = {"session_id": "s", "interaction_id": asked.interaction_id, "response": APPROVED}
    answer = await scene.user.begin("respond", call)
    await pause()
    gate.open()
    with pytest.raises(InteractionClosed) as closed:
        await answer
    assert closed.value.details["status"] == "expired"
    assert closed.value.details["response"] is None
    await scene.proves(reader)
    parts = reader.replica.messages()[-1].parts
    assert [(state_of(part) or ("", "", ""))[2] for part in parts] == ["ready", "expired"]


@in_world()
async def test_r19_an_answer_waits_behind_a_call_until_the_time_has_come(world: World) -> None:
    """An answer that the session could not look at in time is late, though it waited."""
    scene = await Scene.begin(world)
    await waiting_call_of(scene, expires_in=1.0)
    asked = await scene.asked()
    gate = world.database.hold("write", "before")
    blocking = await scene.user.begin("sessions.update", {"session_id": "s", "title": "Long"})
    await gate.reached()
    call: dict[str, Value] = {"session_id": "s", "interaction_id": asked.interaction_id, "response": APPROVED}
    answer = await scene.user.begin("respond", call)
    await pause(2.0)
    gate.open()
    await blocking
    with pytest.raises(InteractionClosed) as closed:
        await answer
    assert closed.value.details["status"] == "expired"
    await scene.proves(await scene.reader())


@in_world()
async def test_r19_what_was_answered_does_not_expire_with_what_was_not(world: World) -> None:
    """Of two questions with a time, one is answered: when the time comes, only the other one expires."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    await scene.approval(turn, expires_in=1.0)
    await scene.approve()
    await scene.approval(turn, expires_in=1.0)
    reader = await scene.reader()
    await pause(1.1)
    await scene.proves(reader)
    states = [state_of(part) for part in reader.replica.messages()[-1].parts]
    assert [state[2] for state in states if state] == ["resolved", "expired"]


@in_world()
async def test_r27_two_clients_answer_at_once(world: World) -> None:
    """One answer wins, the other learns which; both replicas show the same outcome."""
    scene = await Scene.begin(world)
    await waiting_call_of(scene)
    asked = await scene.asked()
    readers = [await scene.reader(), await scene.reader()]
    call: dict[str, Value] = {"session_id": "s", "interaction_id": asked.interaction_id}
    gate = world.database.hold("write", "before")
    denied: Value = {"kind": "approval", "decision": "denied"}
    first = await readers[0].line.begin("respond", {**call, "response": APPROVED})
    await gate.reached()
    second = await readers[1].line.begin("respond", {**call, "response": denied})
    again = await readers[0].line.begin("respond", {**call, "response": APPROVED})
    await pause()
    gate.open()
    won = await first
    with pytest.raises(InteractionClosed) as closed:
        await second
    assert closed.value.details["response"] == APPROVED
    assert await again == won
    assert (await scene.ask(InteractionsResult, "interactions")).items == []
    for reader in readers:
        await scene.proves(reader)


# Owners


@in_world()
async def test_r17_a_second_process_does_not_start_on_the_same_database(world: World) -> None:
    """It is refused by the lock, and the first one goes on."""
    scene = await Scene.begin(world)
    second = World(world.loop, world.path, {}, port=8_788)
    with pytest.raises(DatabaseLocked):
        await second.start()
    await scene.ask(SessionResult, "sessions.update", title="Still here")
    await scene.proves(await scene.reader())


@in_world()
async def test_r17_an_old_and_a_new_process_overlap_past_the_lock(world: World) -> None:
    """The old one's commits are refused before they change anything, and it learns that it must stop."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader()
    world.path.with_name(world.path.name + ".lock").unlink()
    new = World(world.loop, world.path, {}, port=8_788)
    await new.start()
    try:
        await text.append("lost with the old one")
        await pause()
        with pytest.raises(Unavailable):
            await scene.prompt(message_id="refused")
        async with asyncio.timeout(10):
            await world.running.closed()
        scene.user = await new.line()
        with pytest.raises(NotFound):
            await scene.ask(PromptResult, "cancel_input", message_id="refused")
        await reader.rejoin(await new.line())
        assert "lost with the old one" not in str(reader.content())
        fresh = await new.fresh("s")
        assert reader.content() == fresh.content()
        await reader.prove()
    finally:
        await new.close()


@in_world()
async def test_a_session_is_deleted_under_its_readers(world: World) -> None:
    """They see the turn's end, then that it is closed for good; the session is not found, by any call."""
    scene = await Scene.begin(world)
    await waiting_call_of(scene)
    reader = await scene.reader()
    await scene.ask(EmptyResult, "sessions.delete")
    await reader.line.until(lambda: reader.closed == ["deleted"])
    assert "session_disposed" in str(reader.content())
    assert reader.replica.running_turn is None
    for method in ("messages", "sessions.get", "verify", "interactions", "sessions.clear"):
        span: dict[str, Value] = {"from_sequence": 1, "to_sequence": 1} if method == "verify" else {}
        with pytest.raises(NotFound):
            await (await scene.user.begin(method, {"session_id": "s", **span}))
    lost = Reader(await world.line(), "s")
    with pytest.raises(NotFound):
        await lost.join(cursor=reader.replica.cursor())
