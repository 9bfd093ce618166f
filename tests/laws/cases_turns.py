"""Cases of input and turns: what is typed, how turns begin, wait, take input in, and end."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from midstream.protocol.calls import PromptResult
from midstream.protocol.model import DataPart, TextPart
from midstream.server import Turn, TurnFailed
from tests.laws.case import Cases
from tests.laws.scene import Scene
from tests.laws.world import pause

TURNS = Cases()


async def busy_turn_of(scene: Scene) -> Turn:
    """Begin a turn that has something open of every kind."""
    turn = await scene.turn()
    async with turn.step() as step:
        call = await step.tool("delete", input={"path": "a.txt"})
        running = await step.tool("index", input={})
        await running.run()
    await turn.action("note", "Noting")
    await scene.approval(turn, call)
    step = await turn.step().__aenter__()
    text = await step.text().__aenter__()
    await text.append("Half a sen")
    await (await step.reasoning().__aenter__()).append("Hm")
    await (await step.tool("search")).append_input('{"q')
    await pause()
    return turn


@TURNS()
async def an_input_starts_a_turn(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.turn()


@TURNS()
async def an_input_has_parts_of_every_type(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.prompt(
        {"type": "text", "text": "Look", "provider_metadata": {"acme": {"a": 1}}},
        {"type": "context", "tag": "open_file", "context": "<b>a & b</b>"},
        {"type": "file", "url": "https://example.com/a.png", "media_type": "image/png", "filename": "a.png"},
        {"type": "data", "data_type": "cursor", "data": {"line": 3, "none": None}, "data_id": "d"},
    )


@TURNS()
async def an_input_waits(scene: Scene) -> AsyncGenerator[None]:
    await scene.turn()
    yield
    assert (await scene.prompt()).state == "queued"


@TURNS()
async def an_input_waits_behind_another(scene: Scene) -> AsyncGenerator[None]:
    await scene.turn()
    await scene.prompt(delivery="queue")
    yield
    assert (await scene.prompt(delivery="queue")).position == 2


@TURNS()
async def an_input_is_cancelled(scene: Scene) -> AsyncGenerator[None]:
    await scene.turn()
    await scene.prompt(message_id="first")
    await scene.prompt(message_id="second")
    yield
    cancelled = await scene.ask(PromptResult, "cancel_input", message_id="first")
    assert cancelled.state == "cancelled"


@TURNS()
async def an_input_is_absorbed(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("Working")
    await scene.prompt()
    yield
    assert len(await turn.take_inputs()) == 1


@TURNS()
async def an_input_is_absorbed_while_things_are_open(scene: Scene) -> AsyncGenerator[None]:
    turn = await busy_turn_of(scene)
    await scene.prompt()
    await scene.prompt(delivery="queue")
    await scene.prompt()
    yield
    assert len(await turn.take_inputs()) == 2


@TURNS()
async def an_answer_opens_below_the_absorbed_input(scene: Scene) -> AsyncGenerator[None]:
    turn = await busy_turn_of(scene)
    await scene.prompt()
    await turn.take_inputs()
    yield
    async with turn.step() as step, step.text() as text:
        await text.append("As you wish")


@TURNS()
async def an_internal_message_is_written(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("Working")
    yield
    await turn.internal(TextPart(text="Mind the budget"), DataPart(data_type="hint", data=1))


@TURNS()
async def a_turn_goes_on_below_an_internal_message(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    await turn.internal(TextPart(text="Mind the budget"))
    yield
    async with turn.step() as step, step.text() as text:
        await text.append("Cheaply")


@TURNS()
async def the_phase_moves(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    await turn.phase("running-tool")


@TURNS()
async def a_step_moves_the_phase(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    await turn.step().__aenter__()


@TURNS()
async def a_turn_completes(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("Done")
    yield
    assert await scene.finish(turn) == "completed"


@TURNS()
async def a_turn_completes_that_said_nothing(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    assert await scene.finish(turn) == "completed"


@TURNS()
async def a_turn_completes_with_things_left_open(scene: Scene) -> AsyncGenerator[None]:
    turn = await busy_turn_of(scene)
    yield
    assert await scene.finish(turn) == "completed"


@TURNS()
async def a_turn_completes_with_things_left_open_in_two_messages(scene: Scene) -> AsyncGenerator[None]:
    turn = await busy_turn_of(scene)
    await scene.prompt()
    await turn.take_inputs()
    await (await (await turn.step().__aenter__()).text().__aenter__()).append("And")
    yield
    assert await scene.finish(turn) == "completed"


@TURNS()
async def a_turn_fails_by_its_agents_word(scene: Scene) -> AsyncGenerator[None]:
    turn = await busy_turn_of(scene)
    yield
    assert await scene.finish(turn, TurnFailed("quota", "Out of quota", recoverable=True)) == "failed"


@TURNS()
async def a_turn_fails_by_an_exception(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    assert await scene.finish(turn, ValueError("a secret")) == "failed"


@TURNS()
async def a_turn_is_stopped(scene: Scene) -> AsyncGenerator[None]:
    await busy_turn_of(scene)
    yield
    assert (await scene.stop()).stopped


@TURNS()
async def a_turn_is_stopped_with_what_waits(scene: Scene) -> AsyncGenerator[None]:
    await scene.turn()
    await scene.prompt()
    yield
    assert len((await scene.stop(cancel_queue="all")).cancelled) == 1


@TURNS()
async def a_turn_is_stopped_and_the_next_begins(scene: Scene) -> AsyncGenerator[None]:
    await busy_turn_of(scene)
    await scene.prompt()
    yield
    await scene.stop(cancel_queue="none")
    await scene.world.puppet.next()


@TURNS()
async def a_turn_completes_and_the_next_begins(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("Done")
    await scene.prompt(delivery="queue")
    await scene.prompt(delivery="queue")
    yield
    assert await scene.finish(turn) == "completed"
    await scene.world.puppet.next()


@TURNS()
async def a_turn_is_interrupted_ahead_of_what_waits(scene: Scene) -> AsyncGenerator[None]:
    await busy_turn_of(scene)
    await scene.prompt(delivery="queue")
    yield
    assert (await scene.prompt(delivery="interrupt")).state == "started"


@TURNS()
async def two_turns_come_and_go(scene: Scene) -> AsyncGenerator[None]:
    first = await busy_turn_of(scene)
    yield
    await scene.finish(first)
    second = await scene.turn()
    async with second.step() as step, step.text() as text:
        await text.append("The second")
    await scene.finish(second)
    third = await scene.turn()
    await (await (await third.step().__aenter__()).text().__aenter__()).append("The third")


@TURNS(restarts=True)
async def the_server_stops_in_the_middle_of_a_turn(scene: Scene) -> AsyncGenerator[None]:
    await busy_turn_of(scene)
    yield
    await scene.restart()


@TURNS(restarts=True)
async def the_server_stops_while_an_input_waits(scene: Scene) -> AsyncGenerator[None]:
    await busy_turn_of(scene)
    await scene.prompt()
    yield
    await scene.restart()
    await scene.world.puppet.next()


@TURNS(restarts=True)
async def the_server_is_killed_in_the_middle_of_a_turn(scene: Scene) -> AsyncGenerator[None]:
    await busy_turn_of(scene)
    yield
    await scene.crash()


@TURNS(restarts=True)
async def the_server_is_killed_with_things_open_in_two_messages(scene: Scene) -> AsyncGenerator[None]:
    turn = await busy_turn_of(scene)
    await scene.prompt()
    await turn.take_inputs()
    await (await (await turn.step().__aenter__()).text().__aenter__()).append("And")
    await pause()
    yield
    await scene.crash()


@TURNS(restarts=True)
async def the_server_is_killed_while_an_input_waits(scene: Scene) -> AsyncGenerator[None]:
    await busy_turn_of(scene)
    await scene.prompt()
    yield
    await scene.crash()
    await scene.world.puppet.next()
