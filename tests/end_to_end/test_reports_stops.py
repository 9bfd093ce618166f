"""What similar systems get wrong, of stops: what stops a turn, what does not, and what comes afterwards.

Real connections and a real file.
"""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol.calls import PromptResult, StopResult
from midstream.protocol.frames import Change, Delta, SessionFrame, ShortDelta
from midstream.protocol.model import Message, TextPart, ToolPart
from midstream.server import Turn
from tests.end_to_end.stage import OpenStage, Stage, prompt_params, until_ended, until_text
from tests.laws.line import Line
from tests.laws.reader import Reader

TABS = 12
TOKENS = 400


async def test_the_model_was_cancelled_before_the_stop_is_answered(open_stage: OpenStage) -> None:
    """From a device that did not send the prompt; the model's request is over when the person knows."""
    stage = await open_stage()
    cancelled = asyncio.Event()

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            await text.append("so far")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                cancelled.set()

    stage.agent = agent
    await stage.restart()
    reader, other = await stage.reader(), await stage.line()
    turn_id = str((await stage.prompt()).turn_id)
    await until_text(reader, "so far")
    assert not cancelled.is_set()
    stop = await other.ask(StopResult, "stop", session_id="s", turn_id=turn_id)
    assert (stop.stopped, cancelled.is_set()) == (True, True)
    await until_ended(reader, turn_id)
    assert reader.replica.turns[turn_id].state == "stopped"


async def test_tabs_that_close_and_come_back_never_stop_a_turn(open_stage: OpenStage) -> None:
    """However they close, in the middle of whatever, and where nobody is left."""
    stage = await open_stage()
    tabs = [await stage.reader() for _ in range(TABS)]
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        for number in range(TOKENS):
            await text.append(f"{number} ")
            tab = tabs[number % TABS]
            if number % 3 == 0:
                await tab.leave()
            elif number % 3 == 1 and not tab.line.is_open:
                await tab.rejoin(await stage.line())
            await asyncio.sleep(0)
        for tab in tabs:
            await tab.leave()
        await text.append("and nobody was there")
    stage.puppet.end(turn)
    reader = await stage.reader()
    await until_ended(reader, turn.turn_id)
    assert reader.replica.turns[turn.turn_id].state == "completed"
    said = "".join(f"{number} " for number in range(TOKENS)) + "and nobody was there"
    [part] = reader.replica.messages()[-1].parts
    assert isinstance(part, TextPart)
    assert part.text == said
    await stage.proves(reader)


async def flood(turn: Turn) -> None:
    """Stream for ever, in two parts at once, as fast as can be."""
    async with turn.step() as step, step.text() as text, step.reasoning() as reasoning:
        while True:
            await text.append("word ")
            await reasoning.append("thought ")


def of_the_turn_after_its_end(line: Line, turn_id: str, message_sequence: int) -> list[SessionFrame]:
    """Return what came of a turn's message after the change that ended the turn."""
    ended, last = False, message_sequence
    late: list[SessionFrame] = []
    for frame in line.frames:
        if ended and isinstance(frame, ShortDelta) and last == message_sequence:
            late.append(frame)
        if ended and isinstance(frame, Delta) and frame.message_sequence == message_sequence:
            late.append(frame)
        if isinstance(frame, Change):
            if ended and any(entry.sequence == message_sequence for entry in frame.content.messages):
                late.append(frame)
            last = frame.content.session.message_count if frame.content.session else last
            ended = ended or any(
                turn.turn_id == turn_id and turn.state != "running" for turn in frame.content.turns
            )
    assert ended
    return late


async def end_by(stage: Stage, line: Line, how: str, turn_id: str) -> None:
    """End the turn by a stop, or by the prompt of another one."""
    if how == "a stop":
        await line.ask(StopResult, "stop", session_id="s", turn_id=turn_id)
    else:
        params = prompt_params("Now", "s", f"instead of {turn_id}", "interrupt")
        await line.ask(PromptResult, "prompt", **params)
    assert stage.running.connections


@pytest.mark.parametrize("attaches", [1, 2])
@pytest.mark.parametrize("how", ["a stop", "an interrupt"])
async def test_no_delta_follows_a_turns_end_also_after_two_attaches_that_overlap(
    open_stage: OpenStage, how: str, attaches: int
) -> None:
    """Not on the connection that attached, nor on the others; each shows what the server has."""
    stage = await open_stage(tick_ms=0, tick_limit_ms=0)
    stage.agent = flood
    await stage.restart()
    watcher, user = await stage.reader(chronicle=None), await stage.line()
    for round_number in range(5):
        turn_id = str((await stage.prompt(f"Round {round_number}", delivery="interrupt")).turn_id)
        await watcher.line.until(lambda: length(watcher) > 1_000)
        reader = Reader(await stage.line(), "s")
        joins = [await reader.begin_join() for _ in range(attaches)]
        ending = asyncio.create_task(end_by(stage, user, how, turn_id))
        await asyncio.gather(*joins[:-1], return_exceptions=True)
        await joins[-1]
        await ending
        await until_ended(watcher, turn_id)
        await until_ended(reader, turn_id)
        [message] = answers_of(watcher, turn_id)
        await reader.until_version(watcher.replica.version)
        assert message in reader.replica.messages()
        if how == "a stop":
            await stage.proves(watcher)
        assert of_the_turn_after_its_end(watcher.line, turn_id, message.sequence) == []
        await reader.leave()


def answers_of(reader: Reader, turn_id: str) -> list[Message]:
    """Return the agent's messages of a turn."""
    messages = reader.replica.messages()
    return [message for message in messages if message.turn_id == turn_id and message.role == "agent"]


def length(reader: Reader) -> int:
    """Return how long the texts of the last message are."""
    return sum(len(getattr(part, "text", "")) for part in reader.replica.messages()[-1].parts)


async def test_a_stop_during_tool_input_ends_the_part_as_failed(open_stage: OpenStage) -> None:
    """With what was streamed of its arguments, for whoever comes later too."""
    stage = await open_stage()
    reader = await stage.reader()
    turn = await stage.turn()
    call = await (await turn.step().__aenter__()).tool("search")
    await call.append_input('{"for": "half a wo')
    await reader.line.until(lambda: bool(reader.line.deltas))
    await reader.line.ask(StopResult, "stop", session_id="s", turn_id=turn.turn_id)
    for _ in range(2):
        for one in (reader, await stage.reader()):
            await until_ended(one, turn.turn_id)
            [part] = one.replica.messages()[-1].parts
            assert isinstance(part, ToolPart)
            assert (part.state, part.error, part.input_text) == (
                "failed",
                "turn_stopped",
                '{"for": "half a wo',
            )
        await stage.restart()
        await reader.rejoin(await stage.line())
