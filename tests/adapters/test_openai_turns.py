"""Whole turns with OpenAI's own client on the Responses API: a real server, and a real client that reads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from openai import AsyncOpenAI

from midstream.adapters.compose import compose
from midstream.adapters.plain import at, items, mapping, text
from midstream.agents import Turn
from midstream.protocol.model import ReasoningPart, TextPart, ToolPart
from tests.adapters.canned import Provider, sse
from tests.adapters.conversation import conversation
from tests.adapters.openai_events import Plain, added, done, event, response, said_text

THOUGHT: Plain = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
ADD: Plain = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": ""}
MESSAGE: Plain = {"type": "message", "id": "msg_0", "role": "assistant", "content": []}
REQUEST: Plain = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "name": "shorten",
    "server_label": "zip",
    "arguments": '{"url":"u"}',
}
RAN: Plain = {
    **REQUEST,
    "type": "mcp_call",
    "id": "mcp_1",
    "approval_request_id": "mcpr_1",
    "output": "https://z.example/1",
}


def answers(words: str, index: int) -> list[Plain]:
    """The events of a message."""
    part: Plain = {"type": "output_text", "text": words, "annotations": []}
    return [
        added(MESSAGE, index),
        said_text(words, index),
        done({**MESSAGE, "content": [part]}, index),
    ]


async def run(turn: Turn, client: AsyncOpenAI) -> None:
    """Ask the model until it wants nothing more: run what it calls, and ask a person where it wants that."""
    while True:
        given = compose(await turn.context(), "openai-responses")
        async with turn.step() as step:
            fed = await step.feed(client.responses.create(model="m", input=given, stream=True, store=False))
        fed.raise_for_error()
        for call in fed.calls:
            numbers = cast("dict[str, int]", call.input)
            await call.run()
            await call.complete(numbers["a"] + numbers["b"])
        for call, _ in fed.approvals:
            approval = await turn.ask_approval(call, title="Shorten it?")
            await (call.complete({"approved": True}) if approval.approved else call.fail("denied"))
        if not fed.wants_results:
            return


async def test_a_tool_is_run_and_the_model_gets_its_own_thoughts_back(tmp_path: Path) -> None:
    """Encrypted as they came, before the call that they led to and its result."""
    called = {**ADD, "arguments": '{"a":1,"b":2}'}
    provider = Provider(
        sse(
            response(
                added(THOUGHT),
                done(THOUGHT),
                added(ADD, 1),
                event("function_call_arguments.delta", 1, delta='{"a":1,"b":2}'),
                done(called, 1),
            )
        ),
        sse(response(*answers("It is 3.", 0))),
    )

    async def agent(turn: Turn) -> None:
        async with AsyncOpenAI(api_key="none", http_client=provider.client, max_retries=0) as client:
            await run(turn, client)

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.say("What is 1 + 2?")
        assert turn.state == "completed"
        thought, tool, answer = (
            part for part in talk.parts() if isinstance(part, (ReasoningPart, ToolPart, TextPart))
        )
        assert isinstance(thought, ReasoningPart)
        assert isinstance(tool, ToolPart)
        assert isinstance(answer, TextPart)
        assert (tool.state, tool.input, tool.output) == ("completed", {"a": 1, "b": 2}, 3)
        assert answer.text == "It is 3."
    sent = items(mapping(provider.asked[1]), "input")
    assert [text(item, "type") for item in sent[-3:]] == [
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert text(sent, -3, "encrypted_content") == "sealed"
    assert [text(item, "call_id") for item in sent[-2:]] == ["c1", "c1"]


async def test_a_call_that_the_provider_asks_about_runs_when_a_person_said_yes(tmp_path: Path) -> None:
    """The request, the answer and then the call itself, each a part; the answer goes back once."""
    provider = Provider(
        sse(response(added(REQUEST), done(REQUEST))),
        sse(response(added(RAN), done(RAN), *answers("Here it is.", 1))),
    )

    async def agent(turn: Turn) -> None:
        async with AsyncOpenAI(api_key="none", http_client=provider.client, max_retries=0) as client:
            await run(turn, client)

    async with conversation(agent, tmp_path) as talk:
        saying = asyncio.ensure_future(talk.say("Shorten u."))
        (question,) = await talk.asked()
        assert question.tool_call_id == "mcpr_1"
        await talk.session.approve(question.interaction_id)
        assert (await saying).state == "completed"
        tools = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert [(tool.tool_call_id, tool.tool_name, tool.state) for tool in tools] == [
            ("mcpr_1", "shorten", "completed"),
            ("mcp_1", "shorten", "completed"),
        ]
        assert tools[1].output == {"output": "https://z.example/1"}
    sent = items(mapping(provider.asked[1]), "input")
    assert [text(item, "type") for item in sent[-2:]] == ["mcp_approval_request", "mcp_approval_response"]
    assert (text(sent, -1, "approval_request_id"), at(sent, -1, "approve")) == ("mcpr_1", True)
