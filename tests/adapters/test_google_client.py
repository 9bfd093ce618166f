"""Google's own client: its objects are read like the plain chunks, and what was said goes back as it came."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, cast

import pytest
from google import genai
from google.genai import errors, types

from midstream.adapters import Fed, feed
from midstream.adapters.compose import compose
from midstream.adapters.kept import KeptParts
from midstream.adapters.plain import at, items, mapping, text
from midstream.agents import Turn
from midstream.protocol.model import ErrorPart, ReasoningPart, TextPart, ToolPart
from tests.adapters import google_events as events
from tests.adapters.canned import Provider, sse
from tests.adapters.compose.histories import said
from tests.adapters.conversation import conversation
from tests.adapters.memory import fed_in_memory, plain_parts
from tests.adapters.recordings import lines_of, recordings

USER = said("user", TextPart(text="Hi"))


@asynccontextmanager
async def client_of(provider: Provider) -> AsyncGenerator[genai.Client]:
    """The real client, which reaches nobody but this provider."""
    async with provider.client as http:
        yield genai.Client(api_key="none", http_options=types.HttpOptions(httpx_async_client=http))


def ask(client: genai.Client, contents: object = "Hi") -> object:
    """Ask for an answer that streams: what the client returns, not awaited."""
    models = cast("Asked", client.aio.models)  # typed here: the library leaves parts of its own type open
    return models.generate_content_stream(model="gemini", contents=contents)


class Asked(Protocol):
    """What these tests call of the client."""

    def generate_content_stream(self, *, model: str, contents: object) -> object:
        """Ask."""
        ...


async def through_the_client(lines: list[str]) -> tuple[Fed, KeptParts]:
    """Feed what the real client makes of these lines: what it returns, not awaited."""
    kept = KeptParts()
    async with client_of(Provider(sse(lines, end=""))) as client:
        return await feed(kept.step(), ask(client)), kept


@pytest.mark.parametrize("path", recordings("google"))
async def test_recorded_answers_are_the_same_through_the_client(path: Path) -> None:
    """Every part, its signature, the reason, the usage."""
    fed, parts = await fed_in_memory(lines_of(path))
    by_client, kept = await through_the_client(lines_of(path))
    assert _without_ids(plain_parts(kept)) == _without_ids(parts)
    assert (by_client.reason, by_client.raw_reason) == (fed.reason, fed.raw_reason)
    assert (by_client.usage, by_client.unknown) == (fed.usage, fed.unknown)


def _without_ids(parts: list[dict[str, object]]) -> list[dict[str, object]]:
    """Gemini gave these calls none, so each time another one is made."""
    return [{name: value for name, value in part.items() if name != "tool_call_id"} for part in parts]


@pytest.mark.parametrize("path", recordings("google"))
async def test_a_recorded_answer_goes_back_as_it_came(path: Path) -> None:
    """Its texts joined, each signature in its place, as the library reads both."""
    parts = [
        part
        for line in lines_of(path)
        for part in items(json.loads(line), "candidates", 0, "content", "parts")
    ]
    _, kept = await through_the_client(lines_of(path))
    answer = types.Content.model_validate(dict(compose([USER, said("agent", *kept.parts)], "google")[1]))
    came = types.Content.model_validate({"role": "model", "parts": parts})
    assert _joined(answer) == _joined(came)


def _joined(content: types.Content) -> list[tuple[str, object]]:
    joined: list[tuple[str, object]] = []
    for part in content.parts or []:
        kind: object = part.function_call and part.function_call.name
        if joined and part.text and not joined[-1][1]:
            joined[-1] = (joined[-1][0] + part.text, part.thought_signature)
        elif part.text or part.thought_signature or kind:
            joined.append((part.text or str(kind), part.thought_signature))
    return joined


async def test_an_error_of_the_client_is_told_and_raised() -> None:
    """A request that is refused."""
    refusal = json.dumps(
        {"error": {"code": 400, "message": "No such model.", "status": "NOT_FOUND"}}
    ).encode()
    kept = KeptParts()
    async with client_of(Provider([refusal], status=400)) as client:
        with pytest.raises(errors.APIError):
            await feed(kept.step(), ask(client))
    (told,) = kept.parts
    assert isinstance(told, ErrorPart)
    assert told.scope == "turn"


THINK = [
    events.chunk(events.text("I must add.", thought=True)),
    events.chunk(
        events.call("add", {"a": 1, "b": 2}, signature="c2ln"), events.call("add", {"a": 3, "b": 4})
    ),
    events.chunk(finish="STOP"),
]
ANSWER = [events.chunk(events.text("It is ")), events.chunk(events.text("3 and 7."), finish="STOP")]


async def test_an_agent_thinks_calls_tools_and_answers_through_server_and_client(tmp_path: Path) -> None:
    """The second request has both calls with their signature, and as many answers behind them."""
    provider = Provider(sse(THINK, end=""), sse(ANSWER, end=""))

    async def agent(turn: Turn) -> None:
        async with client_of(provider) as client:
            wants_results = True
            while wants_results:
                contents = compose(await turn.context(), "google")
                async with turn.step() as step:
                    fed = await step.feed(ask(client, contents))
                fed.raise_for_error()
                for call in fed.calls:
                    await call.run()
                    given = cast("dict[str, int]", call.input)
                    await call.complete({"sum": given["a"] + given["b"]})
                wants_results = fed.wants_results

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.say("What are 1 + 2 and 3 + 4?")
        assert turn.state == "completed"
        texts = [part.text for part in talk.parts() if isinstance(part, TextPart)]
        thoughts = [part.text for part in talk.parts() if isinstance(part, ReasoningPart)]
        assert (thoughts, texts) == (["I must add."], ["It is 3 and 7."])
        tools = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert [tool.output for tool in tools] == [{"sum": 3}, {"sum": 7}]
    sent = mapping(provider.asked[1])
    assert [text(content, "role") for content in items(sent, "contents")] == ["user", "model", "user"]
    calls = items(sent, "contents", 1, "parts")
    assert [at(part, "functionCall", "args", "a") for part in calls] == [1, 3]
    assert [mapping(part).get("thoughtSignature") for part in calls] == ["c2ln", None]
    answers = items(sent, "contents", 2, "parts")
    assert [at(part, "functionResponse", "response", "output", "sum") for part in answers] == [3, 7]
