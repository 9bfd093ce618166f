"""What is composed for LangChain: messages that its models take, and their own ones back."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.tools import tool

from midstream.adapters.compose import Context, compose, langchain
from midstream.adapters.compose.dialogue import OPENING
from midstream.adapters.kept import KeptParts
from midstream.protocol import model
from midstream.protocol.model import Message
from tests.adapters.compose.histories import histories, said
from tests.adapters.langchain_models import ScriptedModel, block, call, last, text
from tests.adapters.langgraph_graphs import graph_of

LONGEST_ID = 40


@given(histories())
def test_every_history_is_what_the_library_writes_and_reads(history: list[Message]) -> None:
    """It comes back from the library's own dicts as it was."""
    messages = compose(history, "langchain")
    assert messages_from_dict(messages_to_dict(messages)) == messages


@given(histories())
def test_every_call_has_its_result_directly_behind_its_message(history: list[Message]) -> None:
    """In their order, under ids that no other call has and that every model takes."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in compose(history, "langchain"):
        if isinstance(message, ToolMessage):
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting
        waiting = [one["id"] or "" for one in message.tool_calls] if isinstance(message, AIMessage) else []
        assert all(0 < len(call_id) <= LONGEST_ID and call_id not in seen for call_id in waiting)
        seen.update(waiting)
        assert message.content or waiting
    assert not waiting


@given(histories())
async def test_a_model_takes_every_history(history: list[Message]) -> None:
    """A real model is given all of it, and what turns messages into OpenAI's form can read it."""
    model = ScriptedModel(answers=[[text("fine"), last("stop")]])
    messages = compose(history, "langchain") or [HumanMessage("hi")]
    assert (await model.ainvoke(messages)).text == "fine"
    assert model.asked == [messages]
    own_tools = {"server_tool_call", "server_tool_result", "reasoning"}
    plain = [message for message in messages if not own_tools & {b["type"] for b in message.content_blocks}]
    assert isinstance(convert_to_openai_messages(plain), list)


async def test_what_a_graph_streamed_goes_back_as_it_was() -> None:
    """Read into parts, and composed again: the messages that the graph itself keeps."""

    @tool
    async def look(at: int) -> str | list[dict[str, str]]:
        """Look."""
        picture = {"type": "image", "base64": "AAEC", "mime_type": "image/png"}
        return [picture] if at == 1 else f"seen {at}"

    answers = [
        [
            block(type="reasoning", reasoning="hm", index=0, id="rs_1", extras={"signature": "SIG"}),
            block(type="text", text="Let me ", index=1),
            block(type="text", text="look.", index=1),
            call(2, "look", '{"at":', "c1"),
            call(2, None, "1}"),
            call(3, "look", '{"at":2}', "c2"),
            last("tool_calls"),
        ],
        [text("Done."), last("stop")],
    ]
    kept = KeptParts()
    graph = graph_of(ScriptedModel(answers=answers), look)
    given = {"messages": [HumanMessage("Go.")]}
    own: list[BaseMessage] = []
    async with kept.step() as step:
        items = [item async for item in graph.astream(given, stream_mode=["messages", "tasks", "values"])]
        await step.feed([item for item in cast("list[Any]", items) if item[0] != "values"])
        own = cast("list[Any]", items)[-1][1]["messages"]
    history = [said("user", model.TextPart(text="Go.")), said("agent", *kept.parts, sequence=2)]
    assert [bare(message) for message in compose(history, "langchain")] == [bare(message) for message in own]


def bare(message: BaseMessage) -> list[object]:
    """What a message says, without the places of its blocks."""
    if isinstance(message, ToolMessage):
        return [message.tool_call_id, message.content, message.status]
    blocks: list[Any] = [dict(block) for block in message.content_blocks]
    for one in blocks:
        one.pop("index", None)
    return blocks


def test_files_have_the_library_s_own_blocks() -> None:
    """Those that most models take, and others where the agent says that its model does."""
    picture = model.FilePart(url="data:image/png;base64,AAEC", media_type="image/png")
    far = model.FilePart(url="https://h/a.png", media_type="image/png")
    paper = model.FilePart(
        url="data:application/pdf;base64,AAEC", media_type="application/pdf", filename="a.pdf"
    )
    letter = model.FilePart(url="data:text/plain,Dear%20all", media_type="text/plain", filename="a.txt")
    film = model.FilePart(url="https://h/a.mp4", media_type="video/mp4")
    (message,) = compose([said("user", picture, far, paper, letter, film)], "langchain")
    for_films = langchain.compose(Context(messages=[said("user", film)]), takes={"video/"})
    assert for_films[0].content == [{"type": "video", "mime_type": "video/mp4", "url": "https://h/a.mp4"}]
    assert message.content == [
        {"type": "image", "mime_type": "image/png", "base64": "AAEC"},
        {"type": "image", "mime_type": "image/png", "url": "https://h/a.png"},
        {
            "type": "file",
            "mime_type": "application/pdf",
            "base64": "AAEC",
            "extras": {"filename": "a.pdf"},
        },
        {"type": "text", "text": "[Attached file: a.txt]\nDear all"},
        {
            "type": "text",
            "text": "[Attached file, whose content is not shown: unnamed, video/mp4, https://h/a.mp4]",
        },
    ]


def test_what_a_provider_did_itself_goes_back_to_it() -> None:
    """Its tools with their results, reasoning with its signature, in LangChain's own form."""
    own: model.ProviderMetadata = {"langchain": {"model_provider": "p", "extras": {"x": 1}}}
    search = model.ToolPart(
        tool_call_id="s1",
        tool_name="web_search",
        state="completed",
        input={"query": "q"},
        output=[1],
        provider_executed=True,
        call_provider_metadata=own,
    )
    hidden: model.ProviderMetadata = {"langchain": {"id": "rs_1", "extras": {"encrypted_content": "gAAA"}}}
    thought = model.ReasoningPart(text="", state="done", provider_metadata=hidden)
    answer = model.TextPart(text="So.", state="done")
    (_, message) = compose([said("agent", thought, search, answer)], "langchain")
    assert message.content == [
        {"type": "reasoning", "reasoning": "", "id": "rs_1", "extras": {"encrypted_content": "gAAA"}},
        {
            "type": "server_tool_call",
            "id": "s1",
            "name": "web_search",
            "args": {"query": "q"},
            "extras": {"x": 1},
        },
        {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": [1]},
        {"type": "text", "text": "So."},
    ]
    assert message.response_metadata == {"output_version": "v1", "model_provider": "p"}


@pytest.mark.parametrize("has_call", [True, False])
def test_reasoning_beside_the_content_goes_back_with_calls_alone(*, has_call: bool) -> None:
    """DeepSeek wants it there, and refuses it elsewhere."""
    beside: model.ProviderMetadata = {"langchain": {"field": "reasoning_content"}}
    thought = model.ReasoningPart(text="hm", state="done", provider_metadata=beside)
    answer = model.TextPart(text="So.", state="done")
    look = model.ToolPart(tool_call_id="c1", tool_name="look", state="completed", input={}, output=1)
    message = compose([said("agent", thought, answer, *([look] if has_call else []))], "langchain")[1]
    assert message.content == "So."
    assert message.additional_kwargs == ({"reasoning_content": "hm"} if has_call else {})


def test_signatures_of_calls_stay_beside_the_content() -> None:
    """Where Gemini's integration keeps them."""
    signed: model.ProviderMetadata = {"langchain": {"additional_kwargs": {"signatures": {"c1": "SIG"}}}}
    look = model.ToolPart(
        tool_call_id="c1",
        tool_name="look",
        state="completed",
        input={},
        output=1,
        call_provider_metadata=signed,
    )
    message = compose([said("agent", look)], "langchain")[1]
    assert message.additional_kwargs == {"signatures": {"c1": "SIG"}}


def test_a_history_that_begins_with_the_agent_is_opened() -> None:
    """No provider takes one whose first message is the model's."""
    messages = compose([said("agent", model.TextPart(text="Hello.", state="done"))], "langchain")
    assert [message.text for message in messages] == [OPENING, "Hello."]
