"""The Pydantic AI example: a real agent with a scripted model, a real server, and a person who decides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from examples import pydantic_ai_agent
from midstream.protocol.model import TextPart, ToolPart
from tests.adapters.conversation import Conversation, conversation

Piece = str | dict[int, DeltaToolCall]
where = pytest.mark.parametrize("remote", [False, True], ids=["in the server", "in a worker"])
STRIKES: list[Piece] = [
    "Both. ",
    {1: DeltaToolCall("strike", '{"item":"Write to Ada."}', tool_call_id="c1")},
    {2: DeltaToolCall("strike", '{"item":"Water the plants."}', tool_call_id="c2")},
]


def model(heard: list[list[ModelMessage]], *answers: list[Piece]) -> FunctionModel:
    """A model that gives these answers, and keeps what it was asked."""

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Piece]:
        assert info.instructions == "You keep a list of things to do."
        heard.append(messages)
        for piece in answers[len(heard) - 1]:
            yield piece

    return FunctionModel(stream_function=stream)


def tools(talk: Conversation) -> list[ToolPart]:
    """The tool calls of the conversation."""
    return [part for part in talk.parts() if isinstance(part, ToolPart)]


@where
async def test_it_does_what_is_allowed_and_tells_what_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, remote: bool
) -> None:
    """Two calls wait side by side; one is allowed and one denied, and each is one part."""
    monkeypatch.setattr(pydantic_ai_agent, "to_do", ["Write to Ada.", "Water the plants."])
    heard: list[list[ModelMessage]] = []
    with pydantic_ai_agent.assistant.override(model=model(heard, STRIKES, ["Struck one."])):
        async with conversation(pydantic_ai_agent.agent, tmp_path, remote=remote) as talk:
            turn = await talk.session.prompt("Strike all.")
            by_call = {asked.tool_call_id: asked.interaction_id for asked in await talk.asked(2)}
            await talk.session.deny(by_call["c2"], reason="They are thirsty.")
            await talk.session.approve(by_call["c1"])
            assert (await turn.finished()).state == "completed"
            assert [(part.state, part.output or part.error) for part in tools(talk)] == [
                ("completed", "Done."),
                ("failed", "They are thirsty."),
            ]
            texts = [part.text for part in talk.parts() if isinstance(part, TextPart)]
            assert texts == ["Both. ", "Struck one."]
    assert pydantic_ai_agent.to_do == ["Water the plants."]


async def test_it_runs_its_own_tools_and_remembers_them(tmp_path: Path) -> None:
    """The next turn is given what was said and done in the first."""
    test_model = TestModel(call_tools=["read_list"], custom_output_text="Two things.")
    with pydantic_ai_agent.assistant.override(model=test_model):
        async with conversation(pydantic_ai_agent.agent, tmp_path) as talk:
            assert (await talk.say("What is there to do?")).state == "completed"
            [first] = tools(talk)
            assert (first.state, first.output) == ("completed", pydantic_ai_agent.to_do)
    heard: list[list[ModelMessage]] = []
    with pydantic_ai_agent.assistant.override(model=model(heard, ["Still two."])):
        async with conversation(pydantic_ai_agent.agent, tmp_path) as talk:
            assert (await talk.say("And now?")).state == "completed"
    kinds = [part.part_kind for message in heard[0] for part in message.parts]
    assert kinds == ["user-prompt", "tool-call", "tool-return", "text", "user-prompt"]


async def test_it_answers_what_was_said_meanwhile(tmp_path: Path) -> None:
    """Input that comes while it waits for a person is in the history of its next run."""
    heard: list[list[ModelMessage]] = []
    answers: list[list[Piece]] = [STRIKES, ["Struck none."], ["Yes."]]
    with pydantic_ai_agent.assistant.override(model=model(heard, *answers)):
        async with conversation(pydantic_ai_agent.agent, tmp_path) as talk:
            turn = await talk.session.prompt("Strike all.")
            waiting = await talk.asked(2)
            await (await talk.session.prompt("Is it done?")).accepted()
            for asked in waiting:
                await talk.session.deny(asked.interaction_id)
            assert (await turn.finished()).state == "completed"
            texts = [part.text for part in talk.parts() if isinstance(part, TextPart)]
            assert texts == ["Both. ", "Struck none.", "Yes."]
    assert [part.part_kind for part in heard[-1][-1].parts] == ["user-prompt"]
