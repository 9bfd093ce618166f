"""A remote turn is a turn: what the agent may do, and what becomes of it, is the same as in the server."""

from __future__ import annotations

import asyncio

import pytest

from midstream.agents import Question, Turn, TurnEnded, TurnFailed
from midstream.client.transport import Encoding
from midstream.protocol.errors import IdempotencyConflict, IllegalTransition, InvalidRequest, LimitExceeded
from midstream.protocol.limits import Limits
from midstream.protocol.model import (
    ActionPart,
    DataPart,
    ErrorPart,
    FilePart,
    InteractionPart,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolPart,
)
from midstream.protocol.values import Value
from tests.worker.stage import OpenWorkerStage, parts_of, text_of


async def everything(turn: Turn) -> None:
    """Do all that an agent can do."""
    async with turn.step() as step:
        await step.marker()
        async with step.reasoning() as reasoning:
            await reasoning.append("Hm. ")
        async with step.text() as text:
            await text.append("I look. \ud83d")
            await text.append("\ude00")
        call = await step.tool("look")
        await call.append_input('{"for": ')
        await call.append_input("1}")
        await call.ready({"for": 1})
        await step.source_url("https://example.com", title="Here")
        await step.file("data:,x", "text/plain")
        await step.data("chart", {"a": [1, 2.5, None]})
    approval = await turn.ask_approval(call, title="May I?")
    assert approval.approved
    outcome = await call.execute(lambda given: {"found": given})
    assert outcome.completed
    answers = await turn.ask(Question(question_id="q", question="Which?"), title="Tell me")
    action = await turn.action("tidy", "Tidy up")
    await action.complete(title="Tidied up")
    await turn.internal(TextPart(text=f"They said {answers.values['q']}"))
    await turn.error("hm", "It was not easy.")
    async with turn.step() as step:
        async with step.text() as text:
            await text.append("Never mind")
        assert await step.abandon()
    await turn.phase("waiting-model")
    context = (await turn.context()).messages
    newest = (await turn.context(limit=1)).messages
    assert [message.sequence for message in context] == list(range(1, len(context) + 1))
    assert newest == context[-1:]
    async with turn.step() as step, step.text() as text:
        await text.append(f"{len(context)} messages")


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
async def test_a_remote_agent_may_do_all_that_one_in_the_server_may(
    open_stage: OpenWorkerStage, encoding: Encoding
) -> None:
    """Every kind of part, both kinds of question, and reading what was written before."""
    stage = await open_stage()
    stage.work(everything, encoding=encoding)
    session = await stage.session()
    turn = await session.prompt("Go on")
    await session.until(lambda: parts_of(session.messages, InteractionPart))
    [asked] = parts_of(session.messages, InteractionPart)
    await session.approve(asked.interaction_id)
    await session.until(lambda: len(parts_of(session.messages, InteractionPart)) == 2)
    await session.answer(parts_of(session.messages, InteractionPart)[1].interaction_id, {"q": "this"})
    assert (await turn.finished()).state == "completed"
    assert text_of(session.messages) == "I look. \U0001f6005 messages"
    [tool] = parts_of(session.messages, ToolPart)
    assert (tool.state, tool.output) == ("completed", {"found": {"for": 1}})
    for kind in (ReasoningPart, SourcePart, FilePart, DataPart, ActionPart, ErrorPart):
        assert len(parts_of(session.messages, kind)) == 1
    assert [part.text for part in parts_of(session.messages, TextPart) if "They said" in part.text]
    await stage.proves(await stage.reader(include_internal=True))


async def test_a_stop_reaches_the_agent_and_nothing_enters_after_it(open_stage: OpenWorkerStage) -> None:
    """The task is cancelled at its await, and its writer refuses all that comes later."""
    stage = await open_stage()
    heard = asyncio.Event()
    late: list[type[BaseException]] = []

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            await text.append("So far")
            try:
                await asyncio.Event().wait()
            finally:
                try:
                    await text.append(", and too late")
                except TurnEnded:
                    late.append(TurnEnded)
                heard.set()

    working = stage.work(agent)
    session = await stage.session()
    turn = await session.prompt("Go on")
    await session.until(lambda: text_of(session.messages) == "So far")
    await session.stop()
    assert (await turn.finished()).state == "stopped"
    await heard.wait()
    assert late == [TurnEnded]
    second = await session.prompt("Again")
    await session.until(lambda: second.turn_id is not None and text_of(session.messages) == "So farSo far")
    assert working.worker.turns == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TurnFailed("no_money", "The account is empty.", recoverable=True), "no_money"),
        (ValueError("a secret"), "agent_failed"),
    ],
)
async def test_what_an_agent_raises_ends_its_turn_and_not_the_worker(
    open_stage: OpenWorkerStage, error: Exception, code: str
) -> None:
    """The failure is in the conversation as the agent worded it; any other error only by its type."""
    stage = await open_stage()

    async def agent(turn: Turn) -> None:
        if turn.prompt_text == "Fail":
            raise error

    working = stage.work(agent)
    session = await stage.session()
    assert (await (await session.prompt("Fail")).finished()).state == "failed"
    [part] = parts_of(session.messages, ErrorPart)
    assert (part.code, part.recoverable) == (code, isinstance(error, TurnFailed))
    assert "secret" not in part.message
    assert (await (await session.prompt("Now do")).finished()).state == "completed"
    assert not working.running.done()


async def test_what_is_refused_is_raised_where_it_is_written_or_at_the_next_call(
    open_stage: OpenWorkerStage,
) -> None:
    """A stored write raises at once; a live one, that nobody waits for, at the next call."""
    stage = await open_stage(limits=Limits(part_bytes=2_000))
    working = stage.work()
    session = await stage.session()
    handle = await session.prompt("Go on")
    turn = await working.puppet.next()
    async with turn.step() as step:
        call = await step.tool("look", input=1)
        await call.run()
        with pytest.raises(IllegalTransition):
            await call.run()
        with pytest.raises(InvalidRequest, match="data"):
            await step.data("chart", 2**70)
        async with step.text() as text:
            await text.append("x" * 3_000)
            await text.append("!")
        with pytest.raises(LimitExceeded, match="part_bytes"):
            await turn.context()
        await call.complete("seen")
    working.puppet.end(turn)
    assert (await handle.finished()).state == "completed"


async def test_a_turn_whose_last_write_is_refused_fails_with_the_refusal(open_stage: OpenWorkerStage) -> None:
    """As it would in the server, where the write itself raises."""
    stage = await open_stage(limits=Limits(part_bytes=2_000))

    async def agent(turn: Turn) -> None:
        text = turn.step().text()
        await text.__aenter__()
        await text.append("x" * 3_000)

    stage.work(agent)
    session = await stage.session()
    assert (await (await session.prompt("Go on")).finished()).state == "failed"
    assert [part.code for part in parts_of(session.messages, ErrorPart)] == ["limit_exceeded"]


async def test_input_that_comes_meanwhile_is_read_at_a_step_boundary(open_stage: OpenWorkerStage) -> None:
    """And the answer stands below it."""
    stage = await open_stage()
    working = stage.work()
    session = await stage.session()
    await session.prompt("Go on")
    turn = await working.puppet.next()
    assert await turn.take_inputs() == []
    async with turn.step() as step, step.text() as text:
        await text.append("One")
    second = await session.prompt("And two?")
    await second.accepted()
    [message] = await turn.take_inputs()
    assert message.message_id == second.message_id
    async with turn.step() as step, step.text() as text:
        await text.append("Two")
    working.puppet.end(turn)
    await second.finished()
    assert [message.role for message in session.messages] == ["user", "agent", "user", "agent"]


async def test_a_long_conversation_is_read_whole(open_stage: OpenWorkerStage) -> None:
    """Over as many pages as it takes."""
    stage = await open_stage(limits=Limits(page_messages=5))
    counts: list[int] = []

    async def agent(turn: Turn) -> None:
        counts.append(len((await turn.context()).messages))
        assert [one.sequence for one in (await turn.context(limit=7)).messages] == [
            one.sequence for one in (await turn.context()).messages[-7:]
        ]

    stage.work(agent)
    session = await stage.session()
    for _ in range(12):
        await (await session.prompt("Go on")).finished()
    assert counts == list(range(1, 13))


async def test_a_summary_of_a_remote_agent_is_what_its_next_context_begins_with(
    open_stage: OpenWorkerStage,
) -> None:
    """Over as many pages as it takes, and refused where the same messages are summarized in other words."""
    stage = await open_stage(limits=Limits(page_messages=5))
    seen: list[tuple[str | None, list[int]]] = []

    async def agent(turn: Turn) -> None:
        context = await turn.context()
        numbers = [message.sequence for message in context.messages]
        seen.append((None if context.summary is None else context.summary.text, numbers))
        if len(numbers) == 7:
            made = await turn.compact(numbers[-2], f"up to {numbers[-2]}")
            assert await turn.compact(numbers[-2], f"up to {numbers[-2]}") == made
            with pytest.raises(IdempotencyConflict):
                await turn.compact(numbers[-2], "something else")
            again = await turn.context()
            assert (again.summary, again.messages) == (made, [turn.prompt])
            assert (await turn.context(limit=0)).messages == []

    stage.work(agent)
    session = await stage.session()
    for _ in range(14):
        assert (await (await session.prompt("Go on")).finished()).state == "completed"
    assert seen[6] == (None, list(range(1, 8)))
    assert seen[7] == ("up to 6", [7, 8])
    assert seen[12] == ("up to 6", list(range(7, 14)))
    assert seen[13] == ("up to 12", [13, 14])
    assert session.info.summarized_through == 12


async def test_an_output_longer_than_the_window_and_a_chunk_goes_whole(open_stage: OpenWorkerStage) -> None:
    """A single long frame goes in chunks, alone."""
    stage = await open_stage()
    lines: list[Value] = ["0123456789" * 100] * 1_000
    output: Value = {"lines": lines}

    async def agent(turn: Turn) -> None:
        async with turn.step() as step:
            calls = [await step.tool("look", input=number) for number in range(3)]
        await asyncio.gather(*(call.execute(lambda _: output) for call in calls))

    stage.work(agent)
    session = await stage.session()
    assert (await (await session.prompt("Go on")).finished()).state == "completed"
    assert [part.output for part in parts_of(session.messages, ToolPart)] == [output] * 3
