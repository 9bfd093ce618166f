"""A stop while a tool's arguments stream: the next request is legal, and says what became of the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from anthropic import AsyncAnthropic
from google import genai
from google.genai import types
from openai import AsyncOpenAI

from midstream.adapters.compose import compose
from midstream.adapters.compose.results import ENDINGS, NOT_RUN
from midstream.agents import Turn
from midstream.protocol.model import Message, ToolPart
from tests.adapters import anthropic_events, google_events, openai_events
from tests.adapters.canned import Body, Provider, sse
from tests.adapters.conversation import conversation


class Waiting(Body):
    """An answer whose next piece never comes."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the pieces, and wait."""
        async for piece in super().__aiter__():
            yield piece
        await asyncio.get_running_loop().create_future()


class Case(NamedTuple):
    """A provider: an answer that is cut within arguments, one that is whole, and how to ask for one."""

    cut: list[Any]
    whole: list[Any]
    ask: Callable[[Provider, list[Message]], object]
    roles: list[str]


def _chat(provider: Provider, messages: list[Message]) -> object:
    client = AsyncOpenAI(api_key="none", http_client=provider.client, max_retries=0)
    return client.chat.completions.create(model="m", messages=compose(messages, "openai-chat"), stream=True)


def _responses(provider: Provider, messages: list[Message]) -> object:
    client = AsyncOpenAI(api_key="none", http_client=provider.client, max_retries=0)
    return client.responses.create(model="m", input=compose(messages, "openai-responses"), stream=True)


def _anthropic(provider: Provider, messages: list[Message]) -> object:
    client = AsyncAnthropic(api_key="none", http_client=provider.client, max_retries=0)
    return client.messages.create(
        model="m", max_tokens=9, messages=compose(messages, "anthropic"), stream=True
    )


def _google(provider: Provider, messages: list[Message]) -> object:
    options = types.HttpOptions(httpx_async_client=provider.client)
    models: Any = genai.Client(api_key="none", http_options=options).aio.models
    return models.generate_content_stream(model="m", contents=compose(messages, "google"))


FUNCTION: dict[str, object] = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "t"}
PIECE: dict[str, object] = {
    "type": "response.function_call_arguments.delta",
    "output_index": 0,
    "item_id": "fc_1",
    "delta": '{"path": "a',
}
CASES = {
    "openai-chat": Case(
        [openai_events.call_piece('{"path": "a', id="call_1", name="t")],
        [openai_events.chunk(content="Well."), openai_events.chunk("stop")],
        _chat,
        ["user", "assistant", "tool", "user"],
    ),
    "openai-responses": Case(
        [*openai_events.response(openai_events.added({**FUNCTION, "arguments": ""}), PIECE)[:-1]],
        openai_events.response(),
        _responses,
        ["message", "function_call", "function_call_output", "message"],
    ),
    "anthropic": Case(
        [
            anthropic_events.begun(),
            *anthropic_events.call(0, "tool_use", '{"path": "a', id="call_1", name="t")[:-1],
        ],
        anthropic_events.message(*anthropic_events.text(0, "Well.")),
        _anthropic,
        ["user", "assistant", "user"],
    ),
    "google": Case(
        [
            google_events.chunk(
                google_events.call("t", willContinue=True), google_events.pieces(("$.path", "a"))
            )
        ],
        [google_events.chunk(google_events.text("Well."), finish="STOP")],
        _google,
        ["user", "model", "user", "user"],
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_stop_during_tool_input_leaves_a_legal_history(name: str, tmp_path: Path) -> None:
    """The part has failed, the provider is told why, and the next turn goes on."""
    case = CASES[name]
    provider = Provider(Waiting(sse(case.cut, end="")), sse(case.whole, end=""))

    async def agent(turn: Turn) -> None:
        async with turn.step() as step:
            await step.feed(case.ask(provider, (await turn.context()).messages))

    async with conversation(agent, tmp_path) as talk:
        prompt = await talk.session.prompt("Delete it.")
        await talk.session.until(lambda: any(isinstance(part, ToolPart) for part in talk.parts()))
        await talk.session.stop()
        assert (await prompt.finished()).state == "stopped"
        (tool,) = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert (tool.state, tool.error) == ("failed", "turn_stopped")
        assert (await talk.say("Never mind.")).state == "completed"
    asked = cast("dict[str, list[dict[str, object]]]", provider.asked[1])
    sent = asked.get("messages") or asked.get("contents") or asked["input"]
    assert [
        one.get("role" if "role" in one and name != "openai-responses" else "type") for one in sent
    ] == case.roles
    assert json.dumps(ENDINGS["turn_stopped"])[1:-1] in json.dumps(sent)
    assert json.dumps(NOT_RUN)[1:-1] in json.dumps(sent)
