"""What similar systems get wrong, 14 to 18: what comes late, in between, in halves, at the last moment."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
import pytest

from midstream.protocol.calls import EmptyResult, Page, PromptResult, StopResult, SubscribeResult
from midstream.protocol.codec import JSON
from midstream.protocol.errors import InvalidRequest
from midstream.protocol.frames import Call, Chunk
from midstream.protocol.limits import Limits
from midstream.protocol.model import Message, TextPart
from midstream.protocol.outcomes import Ignored, PageOutcome
from midstream.server import Turn
from tests.end_to_end.stage import OpenStage, Stage, last_text, prompt_params, until_ended, until_text
from tests.laws.line import Line
from tests.laws.reader import Reader

SWITCHES = 30
INPUTS = 1_000
TYPISTS = 4
SMILE = "\U0001f600"


def texts(messages: list[Message]) -> list[str]:
    """Return the texts of all text parts."""
    return [part.text for message in messages for part in message.parts if isinstance(part, TextPart)]


async def test_an_older_snapshot_that_arrives_after_newer_deltas_is_ignored(open_stage: OpenStage) -> None:
    """A page and a sync that were computed before, and came by a slower way."""
    stage = await open_stage()
    reader = await stage.reader()
    start = msgspec.to_builtins(reader.replica.cursor())
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("Early")
        await until_text(reader, "Early")
        slow = await stage.line()
        page = await slow.ask(Page, "messages", session_id="s")
        joined = await slow.ask(SubscribeResult, "subscribe", session_id="s", cursor=start)
        assert texts(page.items)[-1] == "Early"
        assert joined.sync.mode == "replay"
        await text.append(" and late")
        await until_text(reader, "Early and late")
        shown, cursor = reader.content(), reader.replica.cursor()
        assert page.version < reader.replica.version
        assert reader.replica.merge_page(page) is not PageOutcome.MERGED
        assert reader.replica.apply_sync(joined.sync) == Ignored()
        assert (reader.content(), reader.replica.cursor()) == (shown, cursor)
    await stage.finish(turn, reader)
    await stage.proves(reader)


async def test_frames_of_a_never_touch_b_when_one_connection_switches_between_them_in_their_turns(
    open_stage: OpenStage,
) -> None:
    """From A to B to A, at once, while both stream: each replica has its own text only, and all of it."""
    stage = await open_stage()
    await stage.create("a", "b")
    turns = {name: await stage.turn(name, session_id=name) for name in ("a", "b")}
    stop = asyncio.Event()
    streams = [asyncio.create_task(say_until(turns[name], name, stop)) for name in turns]
    line = await stage.line()
    for number in range(SWITCHES):
        name = "ab"[number % 2]
        reader = Reader(line, name, chronicle=stage.chronicle)
        joining = await reader.begin_join()
        if number % 3:
            await joining
            await line.until(lambda reader=reader: reader.tags.count("short") >= 3)  # type: ignore[misc]  # bound
        leaving = await line.begin("unsubscribe", {"session_id": name})
        line.routes.clear()
        assert all(set(text) == {name} for text in texts(reader.replica.messages()))
        if number % 2:
            assert isinstance(await leaving, EmptyResult)
    stop.set()
    await asyncio.gather(*streams)
    for name, turn in turns.items():
        reader = await stage.reader(name, line=line)
        await stage.finish(turn, reader)
        assert set(texts(reader.replica.messages())[-1]) == {name}
        await stage.proves(reader)


async def say_until(turn: Turn, text: str, stop: asyncio.Event) -> None:
    """Stream a text until told to stop."""
    async with turn.step() as step, step.text() as stream:
        while not stop.is_set():
            await stream.append(text)
            await asyncio.sleep(0)


async def test_the_same_with_the_python_client(open_stage: OpenStage) -> None:
    """Sessions that are opened and closed in turn show nothing of each other."""
    stage = await open_stage()
    await stage.create("a", "b")
    turns = {name: await stage.turn(name, session_id=name) for name in ("a", "b")}
    stop = asyncio.Event()
    streams = [asyncio.create_task(say_until(turns[name], name, stop)) for name in turns]
    client = await stage.client()
    for number in range(SWITCHES):
        name = "ab"[number % 2]
        session = await client.session(name)
        version = session.messages[-1].revision
        await session.until(lambda s=session, v=version: s.messages[-1].revision > v)  # type: ignore[misc]  # bound
        assert all(set(text) == {name} for text in texts(session.messages))
        await session.close()
    stop.set()
    await asyncio.gather(*streams)


async def test_an_agent_whose_code_point_is_split_stores_it_whole_and_a_lone_surrogate_never(
    open_stage: OpenStage,
) -> None:
    """Halves that follow each other are joined; one alone fails the turn, and the text before it stays."""
    stage = await open_stage()
    reader = await stage.reader()
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        for half in (SMILE.encode("utf-16-le")[:2], SMILE.encode("utf-16-le")[2:]):
            await text.append(half.decode("utf-16-le", "surrogatepass"))
        await until_text(reader, SMILE)
    await stage.finish(turn, reader)
    broken = await stage.turn()
    with pytest.raises(ValueError, match="surrogate") as failure:
        await say_broken(broken)
    await stage.finish(broken, reader, failure.value)
    assert reader.replica.turns[broken.turn_id].state == "failed"
    assert texts(reader.replica.messages()) == ["Go on", SMILE, "Go on", "whole "]
    await stage.proves(reader)
    await stage.restart()
    assert texts((await stage.reader()).replica.messages()) == ["Go on", SMILE, "Go on", "whole "]


async def say_broken(turn: Turn) -> None:
    """Append half a code point."""
    async with turn.step() as step, step.text() as text:
        await text.append("whole ")
        await text.append("\udc00 half")


async def test_a_clients_code_point_that_is_split_over_chunks_is_joined_and_a_lone_surrogate_is_refused(
    open_stage: OpenStage,
) -> None:
    """In msgpack the bytes are cut in its middle, in JSON its two escaped halves are in two pieces."""
    stage = await open_stage()
    reader = await stage.reader()
    binary, text = await stage.line(), await stage.line(codec=JSON)
    frame = binary.codec.encode(Call(900, "prompt", binary.codec.raw(prompt_params(SMILE, "s", "bytes"))))
    at = frame.index(SMILE.encode()) + 2
    for chunk in (Chunk(1, False, frame[:at]), Chunk(1, True, frame[at:])):  # noqa: FBT003  # the frame's order
        await binary.send(chunk)
    await end_turn(stage, reader)
    whole = JSON.encode(Call(901, "prompt", JSON.raw(prompt_params("SPLIT", "s", "text")))).decode()
    before, after = (part.replace('"', '\\"') for part in whole.split("SPLIT"))
    await text.send_raw(f'["chunk",1,false,"{before}\\ud83d"]')
    await text.send_raw(f'["chunk",1,true,"\\ude00{after}"]')
    await end_turn(stage, reader)
    assert texts(reader.replica.messages()) == [SMILE, SMILE]
    lone = JSON.encode(Call(902, "prompt", JSON.raw(prompt_params("LONE", "s", "lone")))).decode()
    await text.send_raw(lone.replace("LONE", "\\ud83d"))
    await text.until(lambda: bool(text.refusals))
    assert (text.refusals[-1].code, text.refusals[-1].details["field"]) == ("invalid", "parts[0].text")
    with pytest.raises(InvalidRequest):
        text.codec.call(1, "prompt", prompt_params("\ud83d", "s", "lone"))
    await stage.proves(reader)
    assert stage.puppet.idle


async def end_turn(stage: Stage, reader: Reader) -> None:
    """Let the turn that has begun end."""
    await stage.finish(await stage.puppet.next(), reader)


async def steer(turn: Turn) -> None:
    """Say a word, read what came meanwhile, and end; so inputs come before, while and after it looks."""
    async with turn.step() as step, step.text() as text:
        await text.append("word")
    await turn.take_inputs()


def waiting(reader: Reader) -> int:
    """Return how many inputs wait, as far as a reader knows."""
    return 0 if reader.replica.session is None else len(reader.replica.session.queue)


async def test_a_thousand_inputs_accepted_just_before_a_turns_end_are_all_absorbed_or_start_the_next(
    open_stage: OpenStage,
) -> None:
    """None is lost, none becomes two messages, and each says what became of it."""
    stage = await open_stage(limits=Limits(calls_per_second=100_000))
    stage.agent = steer
    await stage.restart()
    watcher = await stage.reader(chronicle=None)
    lines = [await stage.line() for _ in range(TYPISTS)]

    async def type_on(line: Line, typist: int) -> list[str]:
        states: list[str] = []
        for number in range(INPUTS // TYPISTS):
            await watcher.line.until(lambda: waiting(watcher) < TYPISTS)
            params = prompt_params("Now", "s", f"{typist}-{number}")
            states.append((await line.ask(PromptResult, "prompt", **params)).state)
        return states

    states = await asyncio.gather(*(type_on(line, typist) for typist, line in enumerate(lines)))
    assert set[str]().union(*states) == {"started", "queued"}
    await watcher.line.until(lambda: watcher.replica.running_turn is None and not waiting(watcher))
    users = [message for message in watcher.replica.messages() if message.role == "user"]
    sent = {f"{typist}-{number}" for typist in range(TYPISTS) for number in range(INPUTS // TYPISTS)}
    assert Counter(message.message_id for message in users) == Counter(sent)
    became: Counter[str] = Counter()
    for message in users:
        params = prompt_params("Now", "s", message.message_id)
        result = await lines[0].ask(PromptResult, "prompt", **params)
        assert result.turn_id == message.turn_id
        became[result.state] += 1
    assert set(became) == {"started", "absorbed"}
    assert {turn.state for turn in watcher.replica.turns.values()} == {"completed"}
    await watcher.prove()


async def test_a_stop_that_names_a_finished_turn_does_nothing(open_stage: OpenStage) -> None:
    """Not to the turn that runs now, nor to what waits behind it."""
    stage = await open_stage()
    reader = await stage.reader()
    first = await stage.turn()
    await stage.finish(first, reader)
    second = await stage.turn()
    queued = await stage.prompt("And then", message_id="waits")
    assert queued.state == "queued"
    async with second.step() as step, step.text() as text:
        await text.append("It goes on")
        await until_text(reader, "It goes on")
        shown, version = reader.content(), reader.replica.version
        for _ in range(3):
            answer = await reader.line.ask(
                StopResult, "stop", session_id="s", turn_id=first.turn_id, cancel_queue="all"
            )
            assert answer == StopResult(stopped=False, cancelled=[], reason="idle")
        assert (reader.content(), reader.replica.version) == (shown, version)
        await text.append(".")
    assert last_text(reader) == "It goes on."
    await stage.finish(second, reader)
    third = await stage.puppet.next()
    assert third.prompt.message_id == "waits"
    await stage.finish(third, reader)
    await until_ended(reader, third.turn_id)
    await stage.proves(reader)
