"""OpenAI's own client: the objects that it streams are read like the plain events that were on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import httpx2
import pytest
from openai import APIConnectionError, APIError, AsyncOpenAI

from midstream.adapters import Fed, feed
from midstream.adapters.compose import compose
from midstream.adapters.kept import KeptParts
from midstream.adapters.plain import items, mapping, text
from midstream.agents import Turn
from midstream.protocol.model import ErrorPart, TextPart, ToolPart
from tests.adapters.canned import Body, Provider, sse
from tests.adapters.conversation import Conversation, conversation
from tests.adapters.memory import fed_in_memory, plain_parts
from tests.adapters.openai_events import Plain, added, call_piece, chunk, done, response, said_text
from tests.adapters.recordings import lines_of, recordings


def client_of(provider: Provider) -> AsyncOpenAI:
    """The real client, which reaches nobody but this provider."""
    return AsyncOpenAI(api_key="none", http_client=provider.client, max_retries=0)


def chat(client: AsyncOpenAI) -> object:
    """Ask for a completion that streams: what `create` returns, not awaited."""
    return client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
    )


def chat_helper(client: AsyncOpenAI) -> object:
    """Ask for a completion with the library's helper, which adds events of its own."""
    return client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "Hi"}])


def responses(client: AsyncOpenAI) -> object:
    """Ask for a response that streams."""
    return client.responses.create(model="m", input="Hi", stream=True)


def responses_helper(client: AsyncOpenAI) -> object:
    """Ask for a response with the library's helper."""
    return client.responses.stream(model="m", input="Hi")


async def through_the_client(
    lines: list[str], ask: Callable[[AsyncOpenAI], object]
) -> tuple[Fed | APIError, list[dict[str, object]]]:
    """Feed what the real client makes of these lines."""
    kept = KeptParts()
    async with client_of(Provider(sse(lines))) as client:
        try:
            fed: Fed | APIError = await feed(kept.step(), ask(client))
        except APIError as error:
            fed = error
    return fed, plain_parts(kept)


async def same(lines: list[str], ask: Callable[[AsyncOpenAI], object]) -> None:
    """Hold what comes through the client against what comes of the plain events."""
    fed, parts = await fed_in_memory(lines)
    by_client, parts_by_client = await through_the_client(lines, ask)
    assert parts_by_client == parts
    if isinstance(by_client, APIError):
        assert fed.error is not None
        return
    assert (by_client.reason, by_client.raw_reason) == (fed.reason, fed.raw_reason)
    assert (by_client.usage, by_client.unknown) == (fed.usage, fed.unknown)


@pytest.mark.parametrize("path", recordings("openai-chat"))
@pytest.mark.parametrize("ask", [chat, chat_helper])
async def test_recorded_completions_are_the_same_through_the_client(
    path: Path, ask: Callable[[AsyncOpenAI], object]
) -> None:
    """Every part, the reason, the usage; fields that the library does not know included."""
    await same(lines_of(path), ask)


@pytest.mark.parametrize("path", recordings("openai-responses"))
async def test_recorded_responses_are_the_same_through_the_client(path: Path) -> None:
    """Also items and events that the library does not know."""
    await same(lines_of(path), responses)


async def test_a_response_is_the_same_through_the_helper() -> None:
    """Whose events carry all that came before as well."""
    message: Plain = {"type": "message", "id": "msg_0", "role": "assistant", "status": "in_progress"}
    part: Plain = {"type": "output_text", "text": "", "annotations": []}
    logs: Plain = {"logprobs": []}
    place: Plain = {"output_index": 0, "content_index": 0, "item_id": "msg_0", "sequence_number": 1}
    stream = response(
        added({**message, "content": []}),
        {"type": "response.content_part.added", **place, "part": part},
        *({**said_text(word), **place, **logs} for word in ("Hel", "lo")),
        {"type": "response.content_part.done", **place, "part": {**part, "text": "Hello"}},
        done({**message, "status": "completed", "content": [{**part, "text": "Hello"}]}),
    )
    await same([json.dumps(event) for event in stream], responses_helper)


async def test_a_connection_that_breaks_keeps_the_text_and_is_told() -> None:
    """By the kind of the error alone: its own text may hold addresses and keys."""
    body = Body(
        sse([chunk(content="so "), chunk(content="far")], end=""), then=httpx2.ReadError("at key=hunter2")
    )
    kept = KeptParts()
    async with client_of(Provider(body)) as client:
        with pytest.raises(APIConnectionError):
            await feed(kept.step(), chat(client))
    text, error = plain_parts(kept)
    assert (text["text"], text["state"]) == ("so far", "done")
    assert (error["code"], error["message"]) == (
        "stream_failed",
        "The model's stream broke off with APIConnectionError.",
    )
    assert body.closed


async def test_a_request_that_is_refused_is_told_in_the_providers_words() -> None:
    """And whether trying again may help."""
    error = {"message": "No such key.", "type": "invalid_request_error", "code": "invalid_api_key"}
    refusal = json.dumps({"error": error}).encode()
    kept = KeptParts()
    async with client_of(Provider([refusal], status=401)) as client:
        with pytest.raises(APIError):
            await feed(kept.step(), chat(client))
    (told,) = plain_parts(kept)
    assert (told["code"], told["message"], told["recoverable"]) == ("invalid_api_key", "No such key.", False)


ADD = [
    chunk(content="Let me see."),
    call_piece('{"a": 1,', id="c1", name="add"),
    call_piece(' "b": 2}'),
    chunk("tool_calls"),
]
SUM = [chunk(content="It is "), chunk(content="3."), chunk("stop")]


async def test_an_agent_runs_the_models_tools_until_it_has_answered(tmp_path: Path) -> None:
    """The real client, a real server, a real reader; the second request has the call and its result."""
    provider = Provider(sse(ADD), sse(SUM))

    async def agent(turn: Turn) -> None:
        async with client_of(provider) as client:
            wants_results = True
            while wants_results:
                messages = compose(await turn.context(), "openai-chat")
                async with turn.step() as step:
                    fed = await step.feed(
                        client.chat.completions.create(model="m", messages=messages, stream=True)
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
        assert [(part.text, part.state) for part in talk.parts() if isinstance(part, TextPart)] == [
            ("Let me see.", "done"),
            ("It is 3.", "done"),
        ]
        (tool,) = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert (tool.state, tool.input, tool.output) == ("completed", {"a": 1, "b": 2}, {"sum": 3})
    sent = mapping(provider.asked[1])
    roles = [text(message, "role") for message in items(sent, "messages")]
    assert roles == ["user", "assistant", "tool"]
    assert text(sent, "messages", 1, "tool_calls", 0, "id") == "c1"
    assert text(sent, "messages", 2, "tool_call_id") == "c1"


async def test_a_stream_that_fails_ends_the_turn_with_its_text_there(tmp_path: Path) -> None:
    """For everybody who reads the session, and told once."""
    broken = sse([chunk(content="so far"), {"error": {"code": "server_error", "message": "Oh."}}])

    async def agent(turn: Turn) -> None:
        async with client_of(Provider(broken)) as client, turn.step() as step:
            await step.feed(chat(client))

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.say("Hi")
        assert turn.state == "failed"
        text_part, error, *_ = talk.parts()
        assert isinstance(text_part, TextPart)
        assert isinstance(error, ErrorPart)
        assert (text_part.text, text_part.state) == ("so far", "done")
        assert (error.code, error.message) == ("server_error", "Oh.")


def words_of_talk(talk: Conversation) -> list[str]:
    """The texts that the agent has said so far."""
    return [part.text for part in talk.parts() if isinstance(part, TextPart)]


class Endless(Body):
    """An answer whose next piece never comes."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__(pieces)
        self.over = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the pieces, and wait."""
        async for piece in super().__aiter__():
            yield piece
        await asyncio.get_running_loop().create_future()

    async def aclose(self) -> None:
        """Close it, and say so."""
        await super().aclose()
        self.over.set()


async def test_a_stop_closes_the_connection_to_the_model(tmp_path: Path) -> None:
    """So that the provider stops too; what came is there."""
    body = Endless(*sse([chunk(content="so far")], end=""))

    async def agent(turn: Turn) -> None:
        async with client_of(Provider(body)) as client, turn.step() as step:
            await step.feed(chat(client))

    async with conversation(agent, tmp_path) as talk:
        prompt = await talk.session.prompt("Hi")
        await talk.session.until(
            lambda: any(isinstance(part, TextPart) and part.text for part in talk.parts())
        )
        await talk.session.stop()
        turn = await prompt.finished()
        await body.over.wait()
        assert (turn.state, body.closed) == ("stopped", True)
        (part,) = talk.parts()
        assert isinstance(part, TextPart)
        assert (part.text, part.state) == ("so far", "done")
