"""Pydantic AI's own agents in turns of a real server: when tools run, who allows it, what a stop does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midstream.adapters.pydantic_ai import PydanticAIReader
from midstream.agents import Turn
from midstream.protocol.model import DataPart, ErrorPart, StepStartPart, ToolPart
from midstream.protocol.model import TextPart as ModelText
from tests.adapters.conversation import Conversation, conversation
from tests.adapters.pydantic_ai_models import Said, call, model


async def test_an_error_in_mid_stream_leaves_what_came(tmp_path: Path) -> None:
    """The text so far stays, and the error is told without what it may give away."""

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        yield "so far"
        raise RuntimeError("secret address")

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, broken.run_stream_events("x") as events:
            with pytest.raises(RuntimeError, match="secret address"):
                await step.feed(events)

    broken = Agent(FunctionModel(stream_function=stream))
    async with conversation(agent, tmp_path) as talk:
        assert (await talk.say("hi")).state == "completed"
        assert [part.text for part in talk.parts() if isinstance(part, ModelText)] == ["so far"]
        [error] = [part for part in talk.parts() if isinstance(part, ErrorPart)]
        assert error.code == "stream_failed"
        assert "secret" not in error.message


async def test_a_stop_ends_the_run_and_leaves_what_came(tmp_path: Path) -> None:
    """The model's own task is cancelled, not only who reads from it."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        try:
            yield "so "
            yield "far"
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def agent(turn: Turn) -> None:
        thinker = Agent(FunctionModel(stream_function=stream))
        async with turn.step() as step, thinker.run_stream_events("x") as events:
            await step.feed(events)

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.session.prompt("hi")
        await begun.wait()
        await talk.session.stop()
        await ended.wait()
        assert (await turn.finished()).state == "stopped"
        assert [part.text for part in talk.parts() if isinstance(part, ModelText)] == ["so far"]


@pytest.mark.parametrize("way", ["iter", "handler"])
async def test_running_is_on_disk_before_the_tool_executes(way: str, tmp_path: Path) -> None:
    """With ``iter`` and a handler Pydantic AI waits for who reads; both tools of a batch were claimed."""
    talk: Conversation
    seen: list[dict[str, str]] = []
    answers: list[list[Said]] = [
        ["Looking. ", call(1, "first", "{}", "c1"), call(2, "second", "{}", "c2")],
        ["Done."],
    ]

    async def agent(turn: Turn) -> None:
        thinker = Agent(model(*answers))

        @thinker.tool_plain
        async def first() -> str:
            seen.append(await talk.stored_tools())
            return "1"

        @thinker.tool_plain
        async def second() -> str:
            seen.append(await talk.stored_tools())
            return "2"

        async def show(_: RunContext[object], events: AsyncIterable[AgentStreamEvent]) -> None:
            async with turn.step() as step:
                await step.feed(events)

        if way == "handler":
            await thinker.run("hi", event_stream_handler=show)
            return
        async with thinker.iter("hi") as run:
            async for node in run:
                if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                    async with turn.step() as step, node.stream(run.ctx) as events:
                        await step.feed(events)

    async with conversation(agent, tmp_path) as talk:
        assert (await talk.say("hi")).state == "completed"
        assert seen == [{"first": "running", "second": "running"}] * 2
        tools = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert [(part.state, part.output) for part in tools] == [("completed", "1"), ("completed", "2")]
        usages = [part for part in talk.parts() if isinstance(part, DataPart)]
        assert [part.data_type for part in usages] == ["usage", "usage"]
        assert not [part for part in talk.parts() if isinstance(part, (ErrorPart, StepStartPart))]


async def test_approvals_go_to_people_and_their_answers_back(tmp_path: Path) -> None:
    """One approved and one denied, over two runs and one reader: each call is one part."""
    executed: list[str] = []
    thinker = Agent(
        model([call(0, "delete", '{"path":"a"}', "c1"), call(1, "delete", '{"path":"b"}', "c2")], ["Done."]),
        output_type=[str, DeferredToolRequests],
    )

    @thinker.tool_plain(requires_approval=True)
    async def delete(path: str) -> str:
        executed.append(path)
        return f"deleted {path}"

    async def agent(turn: Turn) -> None:
        reader = PydanticAIReader()
        async with turn.step() as step, thinker.run_stream_events("hi") as events:
            fed = await step.feed(events, reader=reader)
            history = events.all_messages()
        results = DeferredToolResults()
        for asked, call_id in fed.approvals:
            approval = await turn.ask_approval(asked, title=f"Run {asked.tool_name}?")
            results.approvals[call_id] = True if approval.approved else ToolDenied("no")
        more = thinker.run_stream_events(message_history=history, deferred_tool_results=results)
        async with turn.step() as step, more as events:
            await step.feed(events, reader=reader)

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.session.prompt("hi")
        await talk.session.approve((await talk.asked())[0].interaction_id)
        await talk.session.until(lambda: len([p for p in talk.parts() if p_is_pending(p)]) == 1)
        await talk.session.deny((await talk.asked())[0].interaction_id)
        assert (await turn.finished()).state == "completed"
        tools = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert [part.state for part in tools] == ["completed", "failed"]
        assert tools[1].error == "no"
        assert executed == ["a"]


def p_is_pending(part: object) -> bool:
    """Whether a part is a question that nobody has answered."""
    return getattr(part, "status", "") == "pending"
