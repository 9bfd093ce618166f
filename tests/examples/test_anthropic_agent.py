"""The Anthropic example: its real client on canned answers, a real server, and a person who answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic

from examples import anthropic_agent
from midstream.protocol.model import ReasoningPart, TextPart, ToolPart
from tests.adapters.canned import Provider, sse
from tests.adapters.conversation import conversation

where = pytest.mark.parametrize("remote", [False, True], ids=["in the server", "in a worker"])


def answer(stop_reason: str, *blocks: tuple[dict[str, Any], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A message of the model: its blocks, each with its deltas, and why it stopped."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    usage = {"input_tokens": 3, "output_tokens": 4}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "usage": usage}}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": usage})
    return [*events, {"type": "message_stop"}]


THINKS = (
    {"type": "thinking", "thinking": "", "signature": ""},
    [{"type": "thinking_delta", "thinking": "Which one?"}, {"type": "signature_delta", "signature": "SIG"}],
)
ASKS: tuple[dict[str, Any], list[dict[str, Any]]] = (
    {"type": "tool_use", "id": "toolu_1", "name": "ask_user", "input": {}},
    [
        {"type": "input_json_delta", "partial_json": '{"question":"Which?",'},
        {"type": "input_json_delta", "partial_json": '"options":["red","blue"]}'},
    ],
)
SAYS = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Blue it is."}])


def answering(monkeypatch: pytest.MonkeyPatch, *answers: list[dict[str, Any]]) -> Provider:
    """Let the example's client get these answers."""
    provider = Provider(*(sse(one, end="") for one in answers))
    client = AsyncAnthropic(api_key="none", http_client=provider.client, max_retries=0)
    monkeypatch.setattr(anthropic_agent, "client", client)
    return provider


@where
async def test_it_asks_a_person_and_goes_on_with_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, remote: bool
) -> None:
    """The thinking goes back with its signature, the answer as the call's result."""
    provider = answering(monkeypatch, answer("tool_use", THINKS, ASKS), answer("end_turn", SAYS))
    async with conversation(anthropic_agent.agent, tmp_path, remote=remote) as talk:
        turn = await talk.session.prompt("Paint it.")
        [asked] = await talk.asked()
        await talk.session.answer(asked.interaction_id, {"answer": "blue"})
        assert (await turn.finished()).state == "completed"
        [thought] = [part for part in talk.parts() if isinstance(part, ReasoningPart)]
        [call] = [part for part in talk.parts() if isinstance(part, ToolPart)]
        [text] = [part for part in talk.parts() if isinstance(part, TextPart)]
        assert (thought.text, call.output, text.text) == ("Which one?", "blue", "Blue it is.")
    asked_again = json.loads(json.dumps(provider.asked[-1]))["messages"]
    assert asked_again[1]["content"][0] == {"type": "thinking", "thinking": "Which one?", "signature": "SIG"}
    assert asked_again[2]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "blue"}]


async def test_it_goes_on_where_a_long_search_paused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The provider's pause is no end of the turn."""
    provider = answering(monkeypatch, answer("pause_turn", SAYS), answer("end_turn", SAYS))
    async with conversation(anthropic_agent.agent, tmp_path) as talk:
        assert (await talk.say("Search.")).state == "completed"
        assert len([part for part in talk.parts() if isinstance(part, TextPart)]) == len(provider.asked)
    assert len(provider.asked) == 2


@where
async def test_it_answers_what_was_said_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, remote: bool
) -> None:
    """Steering is absorbed between two steps, and the model is asked again."""
    provider = answering(monkeypatch, answer("tool_use", ASKS), answer("end_turn", SAYS))
    async with conversation(anthropic_agent.agent, tmp_path, remote=remote) as talk:
        turn = await talk.session.prompt("Paint it.")
        [asked] = await talk.asked()
        await (await talk.session.prompt("And be quick.")).accepted()
        await talk.session.answer(asked.interaction_id, {"answer": "red"})
        assert (await turn.finished()).state == "completed"
        assert [message.role for message in talk.messages] == ["user", "agent", "user", "agent"]
    assert "And be quick." in json.dumps(provider.asked[-1])
