"""LangGraph's own graphs: what becomes of each form of their streams, and when their tools run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool

from midstream.adapters.langchain import LangChainReader
from midstream.agents import Turn
from midstream.protocol.model import TextPart, ToolPart
from tests.adapters.conversation import Conversation, conversation
from tests.adapters.langchain_models import ANSWERS, LOOKS, ScriptedModel, call, last, text
from tests.adapters.langgraph_graphs import answered, approving_graph, asking_graph, graph_of
from tests.adapters.memory import fed_in_memory, said, words_of

# version 3 of the events, says the library
pytestmark = pytest.mark.filterwarnings("ignore:.*(is in beta|is experimental)")
GIVEN: Any = {"messages": [HumanMessage("How is it in Rome?")]}
FORMS: dict[str, Any] = {
    "messages": {"stream_mode": "messages"},
    "updates": {"stream_mode": "updates"},
    "messages and updates": {"stream_mode": ["messages", "updates"]},
    "messages and tasks": {"stream_mode": ["messages", "tasks"]},
    "messages and tools": {"stream_mode": ["messages", "tools"]},
    "all": {"stream_mode": ["messages", "updates", "tasks", "tools", "custom"]},
    "subgraphs": {"stream_mode": ["messages", "updates"], "subgraphs": True},
    "subgraphs, one mode": {"stream_mode": "messages", "subgraphs": True},
    "version 2": {"stream_mode": ["messages", "tasks"], "version": "v2"},
    "values": {"stream_mode": ["values"]},
    "messages and values": {"stream_mode": ["messages", "values"]},
}


@tool
async def weather(city: str) -> str:
    """Look at the sky."""
    return f"sunny in {city}"


@tool
async def broken() -> str:
    """Fail."""
    raise ValueError("out of order")


@pytest.mark.parametrize("form", [*FORMS, "events 2", "events 3"])
async def test_a_graph_becomes_the_same_parts_in_every_form(form: str) -> None:
    """Each message, its tools with what came of them, and the next step; nothing twice."""
    graph = graph_of(ScriptedModel(answers=[LOOKS, ANSWERS]), weather, broken)
    stream = (
        graph.astream(GIVEN, **FORMS[form])
        if form in FORMS
        else graph.astream_events(GIVEN, version=f"v{form[-1]}")
    )
    fed, parts = await fed_in_memory(stream)
    assert [part["type"] for part in parts] == [
        "reasoning", "text", "tool", "tool", "data", "step-start", "text", "data",
    ]  # fmt: skip
    assert words_of(parts) == ["Let me look.", "Sunny there."]
    sunny, failed = [part for part in parts if part["type"] == "tool"]
    assert (sunny["state"], sunny["input"], sunny["output"]) == (
        "completed",
        {"city": "Rome"},
        "sunny in Rome",
    )
    assert failed["state"] == "failed"
    assert "out of order" in str(failed["error"])
    assert fed.usage == {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
    assert (fed.reason, fed.calls, fed.unknown) == ("stop", [], {})


async def test_running_is_on_disk_before_the_tool_executes(tmp_path: Path) -> None:
    """With the graph's tasks in the stream, which waits for who reads it."""
    talk: Conversation
    seen: list[dict[str, str]] = []

    @tool
    async def look(city: str) -> str:
        """Look."""
        seen.append(await talk.stored_tools())
        return city

    async def agent(turn: Turn) -> None:
        answers = [[call(0, "look", '{"city":"Rome"}', "c1"), last("tool_calls")], ANSWERS]
        graph = graph_of(ScriptedModel(answers=answers), look)
        async with turn.step() as step:
            await step.feed(graph.astream(GIVEN, stream_mode=["messages", "tasks"]))

    async with conversation(agent, tmp_path) as talk:
        assert (await talk.say("hi")).state == "completed"
        assert seen == [{"look": "running"}]
        [part] = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert (part.state, part.output) == ("completed", "Rome")


async def test_a_stop_ends_the_graph_and_leaves_what_came(tmp_path: Path) -> None:
    """The tool that runs is cancelled, its call and the turn end."""
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def look() -> str:
        """Look for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async def agent(turn: Turn) -> None:
        answers = [[text("Let me look."), call(0, "look", "{}", "c1"), last("tool_calls")]]
        graph = graph_of(ScriptedModel(answers=answers), look)
        async with turn.step() as step:
            await step.feed(graph.astream(GIVEN, stream_mode=["messages", "tasks"]))

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.session.prompt("hi")
        await begun.wait()
        await talk.session.stop()
        await ended.wait()
        assert (await turn.finished()).state == "stopped"
        said, looked = [part for part in talk.parts() if isinstance(part, (TextPart, ToolPart))]
        assert isinstance(said, TextPart)
        assert isinstance(looked, ToolPart)
        assert (said.text, looked.state) == ("Let me look.", "failed")


async def test_a_node_that_runs_all_calls_of_the_state_is_told_before_it_does() -> None:
    """A tool node of the older form is given the whole state."""
    reader = LangChainReader()
    answer = AIMessage(
        "", id="m1", tool_calls=[{"name": "look", "args": {}, "id": "c1", "type": "tool_call"}]
    )
    task = {"id": "t", "name": "tools", "input": {"messages": [answer]}, "triggers": ("x",)}
    names = [
        type(event).__name__
        for event in said(reader, ("updates", {"think": {"messages": [answer]}}), ("tasks", task))
    ]
    assert names == ["ToolStarted", "ToolInputReady", "ToolRunning"]


async def test_what_interrupts_a_graph_is_data_for_people() -> None:
    """A node asks, and the stream ends with what it asks."""
    graph, config = asking_graph(), {"configurable": {"thread_id": "t"}}
    _, parts = await fed_in_memory(graph.astream(GIVEN, config, stream_mode=["messages", "updates"]))
    [part] = parts
    [asked] = cast("list[dict[str, object]]", part["data"])
    assert (part["data_type"], asked["value"], bool(asked["id"])) == ("interrupt", {"allow": 1}, True)


async def test_calls_that_a_graph_interrupts_go_to_people_and_their_answers_back(tmp_path: Path) -> None:
    """Two wait side by side; each is one part, in the graph's first stream and in its second."""
    deleted: list[str] = []
    answers = [
        [
            call(0, "delete", '{"path":"a"}', "c1"),
            call(1, "delete", '{"path":"b"}', "c2"),
            last("tool_calls"),
        ],
        ANSWERS,
    ]

    async def agent(turn: Turn) -> None:
        graph, config = (
            approving_graph(ScriptedModel(answers=answers), deleted),
            {"configurable": {"thread_id": "t"}},
        )
        modes = ["messages", "tasks"]
        async with turn.step() as step:
            fed = await step.feed(graph.astream(GIVEN, config, stream_mode=modes))
        said = {
            interrupt_id: (await turn.ask_approval(asked, title="Delete it?")).approved
            for asked, interrupt_id in fed.approvals
        }
        async with turn.step() as step:
            await step.feed(graph.astream(answered(said), config, stream_mode=modes))

    async with conversation(agent, tmp_path) as talk:
        turn = await talk.session.prompt("hi")
        await talk.session.approve((await talk.asked())[0].interaction_id)
        await talk.session.until(lambda: talk.session.info.pending_interactions == 0)
        await talk.session.deny((await talk.asked())[0].interaction_id)
        assert (await turn.finished()).state == "completed"
        tools = [part for part in talk.parts() if isinstance(part, ToolPart)]
        assert [(part.state, part.output) for part in tools] == [
            ("completed", "a is deleted."),
            ("completed", "A person said no."),
        ]
        assert [part.text for part in talk.parts() if isinstance(part, TextPart)] == ["Sunny there."]
    assert deleted == ["a"]


async def test_messages_of_nodes_that_run_beside_each_other_stay_apart() -> None:
    """Two models stream at once: each has its own text, and neither is another step."""
    chunks: list[object] = []
    for letter in "abc":
        for node in ("left", "right"):
            message = AIMessageChunk(content=letter, id=f"lc_run--{node}")
            chunks.append((message, {"langgraph_checkpoint_ns": f"{node}:1"}))
    _, parts = await fed_in_memory(chunks)
    assert [(part["type"], part["text"]) for part in parts] == [("text", "abc"), ("text", "abc")]


async def test_ids_of_calls_that_repeat_are_other_calls() -> None:
    """In a later message, and within one where the index repeats instead."""
    first = [call(0, "look", "{}", "same"), call(0, "look", '{"a":1}', "other"), last("tool_calls")]
    graph = graph_of(
        ScriptedModel(answers=[first, [call(0, "weather", '{"city":"x"}', "same"), last("x")], ANSWERS]),
        weather,
    )
    _, parts = await fed_in_memory(graph.astream(GIVEN, stream_mode="messages"))
    tools = [
        (part["tool_call_id"], part["tool_name"], part["state"]) for part in parts if part["type"] == "tool"
    ]
    assert tools == [
        ("same", "look", "failed"),
        ("other", "look", "failed"),
        ("same", "weather", "completed"),
    ]


async def test_a_preliminary_output_grows_in_linear_work() -> None:
    """Every tenth of a long output would be written again with all before it; it is shown as it doubles."""
    reader = LangChainReader()
    reader.read(call(0, "look", "{}", "c1"))
    shown = 0
    for _ in range(5_000):
        for event in reader.read(
            ("tools", {"event": "tool-output-delta", "tool_call_id": "c1", "delta": "0123456789"})
        ):
            shown += len(getattr(event, "output", ""))
    assert 50_000 <= shown <= 6 * 50_000


async def test_custom_data_is_for_people() -> None:
    """What a node writes of its own is a data part."""
    _, parts = await fed_in_memory([("custom", {"done": 1})])
    assert parts == [{"type": "data", "data_type": "custom", "data": {"done": 1}}]


async def test_modes_that_repeat_others_are_counted() -> None:
    """They say nothing of their own, and a stream of them alone shows it."""
    graph = graph_of(ScriptedModel(answers=[ANSWERS]))
    fed, parts = await fed_in_memory(graph.astream(GIVEN, stream_mode=["debug"]))
    assert (parts, [*fed.unknown]) == ([], ["debug"])


async def test_what_was_said_before_the_run_is_not_said_again() -> None:
    """The first values of a graph are what it was given, also calls whose ids come again."""
    old = AIMessage(
        "Before.", id="old", tool_calls=[{"name": "weather", "args": {}, "id": "c1", "type": "tool_call"}]
    )
    before = [
        HumanMessage("Hi."),
        old,
        ToolMessage("rainy", tool_call_id="c1", id="result"),
        HumanMessage("Now?"),
    ]
    graph = graph_of(ScriptedModel(answers=[LOOKS, ANSWERS]), weather, broken)
    _, parts = await fed_in_memory(
        graph.astream({"messages": before}, stream_mode="values"), LangChainReader()
    )
    assert words_of(parts) == ["Let me look.", "Sunny there."]
    assert [part["output"] for part in parts if part["type"] == "tool" and "output" in part] == [
        "sunny in Rome"
    ]
