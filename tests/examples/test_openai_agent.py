"""The OpenAI example: its real client on canned answers, a real server, and a person who decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from examples import openai_agent
from midstream.protocol.model import ErrorPart, TextPart, ToolPart
from tests.adapters.canned import Provider, sse
from tests.adapters.conversation import Conversation, conversation
from tests.adapters.openai_events import call_piece, chunk

where = pytest.mark.parametrize("remote", [False, True], ids=["in the server", "in a worker"])
LISTS = [
    chunk(content="Let me look."),
    call_piece("{}", name="list_files", id="c1"),
    chunk("tool_calls"),
]
DELETES = [
    call_piece('{"name":', name="delete_file", id="c2"),
    call_piece('"a.txt"}'),
    call_piece('{"name":"../b.txt"}', index=1, name="delete_file", id="c3"),
    chunk("tool_calls"),
]
ANSWERS = [chunk(content="Done."), chunk("stop")]


def answering(monkeypatch: pytest.MonkeyPatch, folder: Path, *answers: list[dict[str, object]]) -> Provider:
    """Let the example's client get these answers, and let it keep this folder."""
    provider = Provider(*(sse(answer) for answer in answers))
    client = AsyncOpenAI(api_key="none", http_client=provider.client, max_retries=0)
    monkeypatch.setattr(openai_agent, "client", client)
    files = folder / "files"
    files.mkdir()
    (files / "a.txt").write_text("A")
    (folder / "b.txt").write_text("B")
    monkeypatch.setattr(openai_agent, "FOLDER", files)
    return provider


def tools(talk: Conversation) -> list[ToolPart]:
    """The tool calls of the conversation."""
    return [part for part in talk.parts() if isinstance(part, ToolPart)]


@where
async def test_it_acts_when_it_is_allowed_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, remote: bool
) -> None:
    """It looks without asking, asks for both deletions at once, and tells the model what came of them."""
    provider = answering(monkeypatch, tmp_path, LISTS, DELETES, ANSWERS)
    async with conversation(openai_agent.agent, tmp_path, remote=remote) as talk:
        turn = await talk.session.prompt("Clean up.")
        for asked in await talk.asked(2):
            await talk.session.approve(asked.interaction_id)
        assert (await turn.finished()).state == "completed"
        assert [(part.state, part.output) for part in tools(talk)[:2]] == [
            ("completed", ["a.txt"]),
            ("completed", "a.txt is deleted."),
        ]
        assert tools(talk)[2].state == "failed"
        texts = [part.text for part in talk.parts() if isinstance(part, TextPart)]
        assert texts == ["Let me look.", "Done."]
    assert not (tmp_path / "files" / "a.txt").exists()
    assert (tmp_path / "b.txt").exists()
    roles = [message["role"] for message in json.loads(json.dumps(provider.asked[-1]))["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "tool"]


async def test_it_does_nothing_that_was_denied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The model hears that a person said no, and why."""
    provider = answering(monkeypatch, tmp_path, DELETES, ANSWERS)
    async with conversation(openai_agent.agent, tmp_path) as talk:
        turn = await talk.session.prompt("Clean up.")
        for asked in await talk.asked(2):
            await talk.session.deny(asked.interaction_id, reason="Too early.")
        assert (await turn.finished()).state == "completed"
        assert [part.state for part in tools(talk)] == ["failed", "failed"]
    assert (tmp_path / "files" / "a.txt").exists()
    assert "Too early." in json.dumps(provider.asked[-1])


async def test_it_stops_a_model_that_never_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A bound on steps, and an error that says so."""
    answering(monkeypatch, tmp_path, LISTS, LISTS)
    monkeypatch.setattr(openai_agent, "STEPS", 2)
    async with conversation(openai_agent.agent, tmp_path) as talk:
        assert (await talk.say("Go.")).state == "failed"
        assert [part.code for part in talk.parts() if isinstance(part, ErrorPart)] == ["too_many_steps"]
