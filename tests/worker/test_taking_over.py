"""Workers among each other: each turn has one, and another may go on with what one left."""

from __future__ import annotations

import asyncio

import pytest

from midstream.agents import Agent, Turn
from midstream.client import Session
from midstream.protocol.model import InteractionPart, TextPart, ToolPart
from midstream.worker import ConnectionRejected
from midstream.worker.turns import Turns
from tests.proxy import proxy_to
from tests.worker.stage import OpenWorkerStage, WorkerStage, Working, parts_of, text_of


async def die(working: Working) -> None:
    """End a worker as a lost process ends: without a word."""
    await working.close()


async def begun(stage: WorkerStage, session: Session, concurrency: int = 1) -> tuple[Working, Turn]:
    """Return a worker named ``w`` that goes on with turns, and the turn that it has."""
    working = stage.work(resumes=True, concurrency=concurrency)
    await session.prompt("Go on")
    return working, await working.puppet.next()


async def test_of_two_workers_one_has_each_turn(open_stage: OpenWorkerStage) -> None:
    """Each is offered turns while it has room, and no turn runs twice."""
    stage = await open_stage()
    began: list[tuple[str, str]] = []

    def agent(name: str) -> Agent:
        async def run(turn: Turn) -> None:
            began.append((name, turn.turn_id))
            async with turn.step() as step, step.text() as text:
                await text.append(name)

        return run

    for name in ("one", "two"):
        stage.work(agent(name), name=name, concurrency=2)
    sessions = [f"s{number}" for number in range(12)]
    await stage.create(*sessions)
    client = await stage.client()
    opened = [await client.session(session_id) for session_id in sessions]
    turns = [await session.prompt("Go on") for session in opened]
    ends = await asyncio.gather(*(turn.finished() for turn in turns))
    assert {end.state for end in ends} == {"completed"}
    assert len({turn_id for _, turn_id in began}) == len(began) == 12
    assert {name for name, _ in began} == {"one", "two"}
    assert all(text_of(session.messages) in {"one", "two"} for session in opened)


async def test_a_worker_takes_no_more_turns_than_it_wants(open_stage: OpenWorkerStage) -> None:
    """The next waits until one has ended."""
    stage = await open_stage()
    await stage.create("other")
    working = stage.work()
    await stage.prompt()
    first = await working.puppet.next()
    await stage.prompt(session_id="other")
    async with first.step() as step, step.text() as text:
        await text.append("Here")
    assert working.puppet.idle
    assert working.worker.turns == 1
    working.puppet.end(first)
    second = await working.puppet.next()
    assert (first.session_id, second.session_id) == ("s", "other")
    working.puppet.end(second)


async def test_turns_that_wait_in_a_queue_follow_each_other_without_a_decline(
    open_stage: OpenWorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the server offers the next one while it tells of the end of the one before."""
    stage = await open_stage()
    declined: list[object] = []

    def decline(_: Turns, offer: object) -> None:
        declined.append(offer)

    monkeypatch.setattr(Turns, "_decline", decline)
    stage.work(say_name)
    session = await stage.session()
    turns = [await session.prompt(str(number), delivery="queue") for number in range(8)]
    assert {(await turn.finished()).state for turn in turns} == {"completed"}
    assert text_of(session.messages) == "01234567"
    assert declined == []


async def say_name(turn: Turn) -> None:
    """Say what was prompted."""
    async with turn.step() as step, step.text() as text:
        await text.append(turn.prompt_text)


async def test_another_process_goes_on_with_the_text_where_it_is(open_stage: OpenWorkerStage) -> None:
    """The same part grows on, and the step is one."""
    stage = await open_stage()
    session = await stage.session()
    dying, turn = await begun(stage, session)
    step = await turn.step().__aenter__()
    text = await step.text().__aenter__()
    await text.append("Once upon ")
    await session.until(lambda: text_of(session.messages) == "Once upon ")
    assert not turn.resumed
    assert (turn.open_step(), turn.calls(), step.open_texts(), step.open_tools()) == (None, [], [], [])
    await die(dying)
    working = stage.work(resumes=True)
    turn = await working.puppet.next()
    assert turn.resumed
    left = turn.open_step()
    assert left is not None
    async with left as again:
        assert again.step_id == step.step_id
        [open_text] = again.open_texts()
        assert (open_text.text, open_text.is_reasoning) == ("Once upon ", False)
        async with open_text:
            await open_text.append("a time.")
    async with turn.step() as step, step.text() as text:
        await text.append(" The end.")
    working.puppet.end(turn)
    await session.until(lambda: session.turn is None)
    texts = [part.text for part in parts_of(session.messages, TextPart)]
    assert texts == ["Go on", "Once upon a time.", " The end."]
    await stage.proves(await stage.reader())


async def test_what_another_process_left_open_is_undone_at_the_first_step(
    open_stage: OpenWorkerStage,
) -> None:
    """Unless it is taken over."""
    stage = await open_stage()
    session = await stage.session()
    dying, turn = await begun(stage, session)
    async with turn.step() as step, step.text() as text:
        await text.append("Kept. ")
    step = await turn.step().__aenter__()
    await (await step.text().__aenter__()).append("Lost")
    await (await step.tool("look")).append_input('{"half')
    await session.until(lambda: text_of(session.messages) == "Kept. Lost")
    await die(dying)
    working = stage.work(resumes=True)
    turn = await working.puppet.next()
    async with turn.step() as step, step.text() as text:
        await text.append("New")
    working.puppet.end(turn)
    await session.until(lambda: session.turn is None)
    assert text_of(session.messages) == "Kept. New"
    assert parts_of(session.messages, ToolPart) == []
    await stage.proves(await stage.reader())


async def test_a_step_that_had_an_effect_is_not_undone(open_stage: OpenWorkerStage) -> None:
    """What streams in it ends, and its calls are for the next process to see."""
    stage = await open_stage()
    session = await stage.session()
    dying, turn = await begun(stage, session)
    step = await turn.step().__aenter__()
    await (await step.text().__aenter__()).append("Half")
    ready = await step.tool("look", input=1)
    claimed = await step.tool("look", input=2)
    await claimed.run()
    streaming = await step.tool("look")
    await streaming.append_input("{")
    await turn.context()
    await die(dying)
    working = stage.work(resumes=True)
    turn = await working.puppet.next()
    calls = {call.tool_call_id: call for call in turn.calls()}
    assert [call.state for call in calls.values()] == ["ready", "running", "input-streaming"]
    assert calls[streaming.tool_call_id].input_text == "{"
    await calls[claimed.tool_call_id].fail("Its worker is gone.")
    async with turn.step():
        outcome = await calls[ready.tool_call_id].execute(lambda given: given)
    assert outcome.output == 1
    working.puppet.end(turn)
    await session.until(lambda: session.turn is None)
    assert text_of(session.messages) == "Half"
    assert [part.state for part in parts_of(session.messages, ToolPart)] == ["completed", "failed", "failed"]
    await stage.proves(await stage.reader())


@pytest.mark.parametrize("when", ["before", "between", "after"])
async def test_a_question_is_asked_once_whoever_waits_for_the_answer(
    open_stage: OpenWorkerStage, when: str
) -> None:
    """Another process joins it while it is pending, and gets the answer where there is one."""
    stage = await open_stage()
    session = await stage.session()
    dying, turn = await begun(stage, session)
    async with turn.step() as step:
        call = await step.tool("delete", input="all")
    asking = asyncio.create_task(turn.ask_approval(call, title="May I?"))
    await session.until(lambda: parts_of(session.messages, InteractionPart))
    [asked] = await session.interactions()
    if when == "before":
        await session.approve(asked.interaction.interaction_id, "You may")
        await asking
    await die(dying)
    if when == "between":
        await session.approve(asked.interaction.interaction_id, "You may")
    working = stage.work(resumes=True)
    turn = await working.puppet.next()
    [call] = turn.calls()
    assert call.state == ("waiting-user" if when == "after" else "ready")
    again = asyncio.create_task(turn.ask_approval(call, title="May I?"))
    if when == "after":
        await session.approve(asked.interaction.interaction_id, "You may")
    approval = await again
    assert (approval.approved, approval.reason) == (True, "You may")
    assert call.state == "ready"
    assert (await call.execute(lambda given: given)).completed
    working.puppet.end(turn)
    await session.until(lambda: session.turn is None)
    assert len(parts_of(session.messages, InteractionPart)) == 1
    asking.cancel()


async def test_a_question_about_no_call_is_joined_where_it_asks_the_same(open_stage: OpenWorkerStage) -> None:
    """A pending one, or one whose answer was the last that was written; any other is a new question."""
    stage = await open_stage()
    session = await stage.session()
    dying, turn = await begun(stage, session)
    asking = asyncio.create_task(turn.ask_approval(title="First?"))
    await session.until(lambda: parts_of(session.messages, InteractionPart))
    await die(dying)
    [asked] = await session.interactions()
    await session.deny(asked.interaction.interaction_id)
    dying = stage.work(resumes=True)
    turn = await dying.puppet.next()
    assert not (await turn.ask_approval(title="First?")).approved
    async with turn.step() as step, step.text() as text:
        await text.append("Then not.")
    await die(dying)
    working = stage.work(resumes=True)
    turn = await working.puppet.next()
    again = asyncio.create_task(turn.ask_approval(title="First?"))
    await session.until(lambda: len(parts_of(session.messages, InteractionPart)) == 2)
    [asked] = await session.interactions()
    await session.approve(asked.interaction.interaction_id)
    assert (await again).approved
    asking.cancel()


async def test_a_process_that_does_not_go_on_is_not_given_what_another_began(
    open_stage: OpenWorkerStage,
) -> None:
    """The turn waits for its lease, and fails with all its text."""
    stage = await open_stage(lease_seconds=0.3, takeover_seconds=0.1)
    session = await stage.session()
    dying, turn = await begun(stage, session)
    async with turn.step() as step, step.text() as text:
        await text.append("So far")
    await die(dying)
    working = stage.work(resumes=False)
    await session.until(lambda: session.turn is None)
    ended = session.turns[turn.turn_id]
    assert (ended.state, ended.error and ended.error.code) == ("failed", "agent_lost")
    assert text_of(session.messages) == "So far"
    assert working.puppet.idle


async def test_a_worker_whose_turn_another_took_stops_its_agent(open_stage: OpenWorkerStage) -> None:
    """It stood still for too long; what it wrote meanwhile does not enter."""
    stage = await open_stage(takeover_seconds=0.05, heartbeat_ms=200)
    session = await stage.session()
    cut_off, stopped = asyncio.Event(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            await text.append("One ")
            await cut_off.wait()
            await text.append("and none ")
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

    async with proxy_to(stage.url) as proxy:
        slow = stage.work(agent, url=proxy.url, name="slow", resumes=True)
        await session.prompt("Go on")
        await session.until(lambda: text_of(session.messages) == "One ")
        proxy.blackhole()
        cut_off.set()
        quick = stage.work(name="quick", resumes=True)
        turn = await quick.puppet.next()
        left = turn.open_step()
        assert left is not None
        async with left:
            await left.open_texts()[0].append("two")
        proxy.heal()
        await stopped.wait()
        quick.puppet.end(turn)
        await session.until(lambda: session.turn is None)
        assert text_of(session.messages) == "One two"
        assert not slow.running.done()


async def test_a_worker_whose_name_another_takes_ends(open_stage: OpenWorkerStage) -> None:
    """With the reason; the other one goes on with its turns."""
    stage = await open_stage()
    session = await stage.session()
    old, turn = await begun(stage, session)
    async with turn.step() as step, step.text() as text:
        await text.append("Old ")
    new = stage.work(resumes=True)
    with pytest.raises(ConnectionRejected, match="4506"):
        await old.running
    turn = await new.puppet.next()
    async with turn.step() as step, step.text() as text:
        await text.append("new")
    new.puppet.end(turn)
    await session.until(lambda: session.turn is None)
    assert text_of(session.messages) == "Old new"


async def test_a_worker_that_drains_lets_its_turns_end_and_takes_no_more(open_stage: OpenWorkerStage) -> None:
    """It closes when the last has ended."""
    stage = await open_stage()
    await stage.create("other")
    session = await stage.session()
    working, turn = await begun(stage, session, concurrency=4)
    draining = asyncio.create_task(working.worker.drain(60))
    await stage.prompt(session_id="other")
    async with turn.step() as step, step.text() as text:
        await text.append("To the end")
    assert working.puppet.idle
    working.puppet.end(turn)
    await draining
    await working.running
    await session.until(lambda: session.turn is None)
    assert session.turns[turn.turn_id].state == "completed"
    assert text_of(session.messages) == "To the end"
    other = stage.work(name="other")
    assert (await other.puppet.next()).session_id == "other"


async def test_a_worker_that_may_not_wait_gives_its_turns_up(open_stage: OpenWorkerStage) -> None:
    """Another gets them at once, with all that was written."""
    stage = await open_stage(takeover_seconds=60)
    session = await stage.session()
    other = stage.work(name="other", resumes=True, concurrency=2)
    await session.prompt("Go on")
    turn = await other.puppet.next()
    step = await turn.step().__aenter__()
    await (await step.text().__aenter__()).append("Half of it")
    third = stage.work(name="third", resumes=True)
    await other.worker.drain(0)
    await other.running
    turn = await third.puppet.next()
    left = turn.open_step()
    assert left is not None
    async with left:
        [text] = left.open_texts()
        assert text.text == "Half of it"
        await text.append(", and the rest")
    third.puppet.end(turn)
    await session.until(lambda: session.turn is None)
    assert text_of(session.messages) == "Half of it, and the rest"
