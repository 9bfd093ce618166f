"""Anthropic's own client: its objects are read like the plain events, and go back as they came."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from anthropic import APIStatusError, AsyncAnthropic

from midstream.adapters import Fed, feed
from midstream.adapters.compose import compose
from midstream.adapters.kept import KeptParts
from midstream.adapters.plain import items, mapping, text
from midstream.agents import Turn
from midstream.protocol.model import ErrorPart, ReasoningPart, TextPart, ToolPart
from tests.adapters import anthropic_events as events
from tests.adapters.canned import Provider, sse
from tests.adapters.compose.histories import said
from tests.adapters.conversation import conversation
from tests.adapters.memory import fed_in_memory, plain_parts
from tests.adapters.recordings import lines_of, recordings

ASK: Any = {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
WHOLE = [path for path in recordings("anthropic") if "spliced" not in str(path)]
"""The recordings that the helper takes: it refuses a message that begins anew."""
USER = said("user", TextPart(text="Hi"))


def client_of(provider: Provider) -> AsyncAnthropic:
    """The real client, which reaches nobody but this provider."""
    return AsyncAnthropic(api_key="none", http_client=provider.client, max_retries=0)


def raw(client: AsyncAnthropic) -> object:
    """Ask for the raw events: what ``create`` returns, not awaited."""
    return client.messages.create(**ASK, stream=True)


def helper(client: AsyncAnthropic) -> object:
    """Ask with the library's helper, which adds events of its own."""
    return client.messages.stream(**ASK)


async def through_the_client(
    lines: list[str], ask: Callable[[AsyncAnthropic], object]
) -> tuple[Fed, KeptParts]:
    """Feed what the real client makes of these lines."""
    kept = KeptParts()
    async with client_of(Provider(sse(lines, end=""))) as client:
        return await feed(kept.step(), ask(client)), kept


@pytest.mark.parametrize("path", recordings("anthropic"))
async def test_recorded_messages_are_the_same_through_the_client(path: Path) -> None:
    """Every part, the reason, the usage; fields that the library does not know included."""
    await same(lines_of(path), raw)


@pytest.mark.parametrize("path", WHOLE)
async def test_recorded_messages_are_the_same_through_the_helper(path: Path) -> None:
    """Whose events repeat what came before them."""
    await same(lines_of(path), helper)


async def same(lines: list[str], ask: Callable[[AsyncAnthropic], object]) -> None:
    """Hold what comes through the client against what comes of the plain events."""
    fed, parts = await fed_in_memory(lines)
    by_client, kept = await through_the_client(lines, ask)
    assert plain_parts(kept) == parts
    assert (by_client.reason, by_client.raw_reason) == (fed.reason, fed.raw_reason)
    assert (by_client.usage, by_client.unknown) == (fed.usage, fed.unknown)


@pytest.mark.parametrize("path", WHOLE)
async def test_a_recorded_message_goes_back_as_the_client_itself_has_it(path: Path) -> None:
    """The message that the library put together, against what is composed of the parts."""
    async with (
        client_of(Provider(sse(lines_of(path), end=""))) as client,
        client.messages.stream(**ASK) as stream,
    ):
        whole = await stream.get_final_message()
    _, kept = await through_the_client(lines_of(path), raw)
    composed = [dict(one) for one in compose([USER, said("agent", *kept.parts)], "anthropic")]
    content = [block for one in composed[1:2] for block in cast("list[dict[str, object]]", one["content"])]
    assert _comparable(content) == _comparable([block.model_dump(mode="json") for block in whole.content])


def _comparable(blocks: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the blocks without fields that say nothing, each run of texts that cite nothing as one."""
    joined: list[dict[str, object]] = []
    for block in blocks:
        kept = {name: value for name, value in block.items() if value is not None and value != []}
        before = joined[-1] if joined else {"type": ""}
        if kept["type"] == before["type"] == "text" and not str(kept["text"]).strip():
            before["text"] = f"{before['text']}{kept['text']}"
        else:
            joined.append(kept)
    return joined


async def test_an_error_in_mid_stream_is_raised_by_the_client_and_told_with_the_text_before_it() -> None:
    """The provider's code and words, and that asking again may help."""
    error: events.Plain = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    lines = [
        events.begun(),
        events.start(0, "text", text=""),
        events.delta(0, "text_delta", text="so far"),
        error,
    ]
    kept = KeptParts()
    async with client_of(Provider(sse(lines, end=""))) as client:
        with pytest.raises(APIStatusError):
            await feed(kept.step(), raw(client))
    (words,) = [part for part in kept.parts if isinstance(part, TextPart)]
    (told,) = [part for part in kept.parts if isinstance(part, ErrorPart)]
    assert (words.text, words.state) == ("so far", "done")
    assert (told.code, told.message, told.recoverable) == ("overloaded_error", "Overloaded", True)


THINK = events.message(
    events.start(0, "thinking", thinking="", signature=""),
    events.delta(0, "thinking_delta", thinking="I must add."),
    events.delta(0, "signature_delta", signature="sig"),
    events.stop(0),
    *events.text(1, "Let me see."),
    *events.call(2, "tool_use", '{"a": 1,', ' "b": 2}', id="toolu_1", name="add"),
    *events.call(3, "tool_use", '{"a": 3', id="toolu_2", name="add"),
    reason="tool_use",
)
ANSWER = events.message(*events.text(0, "It is ", "3."))


async def test_an_agent_thinks_calls_tools_and_answers_through_server_and_client(tmp_path: Path) -> None:
    """The second request has thinking with its signature, both calls, and a result for each."""
    provider = Provider(sse(THINK, end=""), sse(ANSWER, end=""))

    async def agent(turn: Turn) -> None:
        async with client_of(provider) as client:
            wants_results = True
            while wants_results:
                messages = compose(await turn.context(), "anthropic")
                async with turn.step() as step:
                    fed = await step.feed(
                        client.messages.create(model="claude", max_tokens=100, messages=messages, stream=True)
                    )
                fed.raise_for_error()
                for call in fed.calls:
                    await call.run()
                    given = cast("dict[str, int]", call.input)
                    await call.complete({"sum": given["a"] + given["b"]})
                wants_results = fed.wants_results

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.say("What is 1 + 2?")
        assert turn.state == "completed"
        texts = [part.text for part in talk.parts() if isinstance(part, TextPart)]
        thoughts = [part.text for part in talk.parts() if isinstance(part, ReasoningPart)]
        assert (thoughts, texts) == (["I must add."], ["Let me see.", "It is 3."])
        tools = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert [(tool.state, tool.output) for tool in tools][:1] == [("completed", {"sum": 3})]
    sent = mapping(provider.asked[1])
    assert [text(message, "role") for message in items(sent, "messages")] == ["user", "assistant", "user"]
    assert items(sent, "messages", 1, "content")[:3] == [
        {"type": "thinking", "thinking": "I must add.", "signature": "sig"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}},
    ]
    results = items(sent, "messages", 2, "content")
    assert [(text(one, "tool_use_id"), mapping(one).get("is_error")) for one in results] == [
        ("toolu_1", None),
        ("toolu_2", True),
    ]
    assert json.loads(text(results[0], "content")) == {"sum": 3}
