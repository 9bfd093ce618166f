"""Pydantic AI's own agents and events: what becomes of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    AgentStreamEvent,
    BinaryContent,
    Citation,
    CompactionPart,
    FilePart,
    FunctionToolResultEvent,
    ModelRequest,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
    WebCitationSource,
)
from pydantic_ai.models.function import DeltaThinkingPart
from pydantic_ai.models.test import TestModel

from midstream.adapters import feed
from midstream.adapters.events import TextDelta
from midstream.adapters.kept import KeptParts
from midstream.adapters.pydantic_ai import PydanticAIReader
from tests import strategies
from tests.adapters.memory import fed_in_memory, plain_parts, said, words_of
from tests.adapters.pydantic_ai_models import Said, call, model


async def test_a_run_becomes_its_parts_in_order() -> None:
    """Reasoning with its signature, text, calls whose arguments alternate, their results, and the answer."""
    agent = Agent(
        model(
            [
                {0: DeltaThinkingPart(content="hm ")},
                {0: DeltaThinkingPart(content="yes", signature="SIG")},
                "Let me ",
                "look.",
                call(1, "weather", '{"ci', "c1"),
                call(2, "weather", '{"city":"Oslo"}', "c2"),
                call(1, None, 'ty":"Rome"}'),
            ],
            ["Sunny ", "in both."],
        )
    )

    @agent.tool_plain
    async def weather(city: str) -> str:
        return f"sunny in {city}"

    async with agent.run_stream_events("How is it?") as events:
        fed, parts = await fed_in_memory(events)
    assert [part["type"] for part in parts] == [
        "reasoning", "text", "tool", "tool", "step-start", "text", "data",
    ]  # fmt: skip
    assert parts[0]["text"] == "hm yes"
    assert parts[0]["provider_metadata"] == {"pydantic-ai": {"signature": "SIG", "provider_name": "function"}}
    assert words_of(parts) == ["Let me look.", "Sunny in both."]
    tools = [(part["input"], part["output"], part["state"]) for part in parts if part["type"] == "tool"]
    assert tools == [
        ({"city": "Rome"}, "sunny in Rome", "completed"),
        ({"city": "Oslo"}, "sunny in Oslo", "completed"),
    ]
    assert fed.usage is not None
    assert fed.usage["input_tokens"]
    assert not fed.wants_results
    assert fed.unknown == {}


async def test_the_outcomes_of_tools_are_told_in_the_words_that_the_model_hears() -> None:
    """A retry, an unknown tool, arguments that are no JSON, a failure, and an output of objects."""
    agent = Agent(
        model(
            [
                call(0, "picky", "{}", "c1"),
                call(1, "nowhere", "{}", "c2"),
                call(2, "picky", '{"a', "c3"),
                call(3, "broken", "{}", "c4"),
                call(4, "rich", "{}", "c5"),
            ],
            ["done"],
        )
    )

    @agent.tool_plain
    async def picky() -> str:
        raise ModelRetry("try harder")

    @agent.tool_plain
    async def broken() -> str:
        raise ToolFailed("out of order")

    @agent.tool_plain
    async def rich() -> list[object]:
        return [{"a": 1.5}, BinaryContent(b"abc", media_type="image/png")]

    async with agent.run_stream_events("go") as events:
        fed, parts = await fed_in_memory(events)
    tools = {str(part["tool_call_id"]): part for part in parts if part["type"] == "tool"}
    assert [tools[name]["state"] for name in ("c1", "c2", "c3", "c4", "c5")] == [*["failed"] * 4, "completed"]
    assert tools["c1"]["error"] == "try harder"
    assert str(tools["c2"]["error"]).startswith("Unknown tool name: 'nowhere'")
    assert tools["c3"]["raw_input"] == '{"a'
    assert tools["c4"]["error"] == "out of order"
    assert tools["c5"]["output"] == [
        {"a": 1.5},
        {
            "data": "YWJj",
            "media_type": "image/png",
            "vendor_metadata": None,
            "kind": "binary",
            "identifier": "a9993e",
        },
    ]
    assert [one.tool_call_id for one in fed.invalid_calls] == ["c3"]


async def test_a_model_alone_leaves_its_calls_to_the_agent() -> None:
    """A stream of one request: usage and calls are there when it ends."""
    request = ModelRequest.user_text_prompt("hi")
    stream = model_request_stream(model(["a", "b", call(1, "look", '{"at":1}', "c1")]), [request])
    fed, parts = await fed_in_memory(stream)
    assert words_of(parts) == ["ab"]
    assert [(one.tool_name, one.input) for one in fed.calls] == [("look", {"at": 1})]
    assert fed.usage is not None
    assert fed.usage["output_tokens"]


async def test_arguments_that_come_as_a_map_are_the_input() -> None:
    """TestModel and Gemini give no text of the arguments."""
    agent = Agent(TestModel())

    @agent.tool_plain
    async def weather(city: str) -> str:
        return city

    async with agent.run_stream_events("hi") as events:
        _, parts = await fed_in_memory(events)
    assert [part["input"] for part in parts if part["type"] == "tool"] == [{"city": "a"}]


async def test_what_repeats_in_a_later_step_is_another_part() -> None:
    """Indices begin again with every response, and this model's ids of calls too."""
    answers: list[list[Said]] = [
        ["one ", call(1, "look", "{}", "same")],
        ["two ", call(1, "look", "{}", "same")],
        ["three"],
    ]
    agent = Agent(model(*answers))
    seen = iter(range(9))

    @agent.tool_plain
    async def look() -> int:
        return next(seen)

    async with agent.run_stream_events("hi") as events:
        _, parts = await fed_in_memory(events)
    assert words_of(parts) == ["one ", "two ", "three"]
    assert [part["output"] for part in parts if part["type"] == "tool"] == [0, 1]


async def test_runs_beside_each_other_in_one_turn_stay_apart() -> None:
    """Their responses have the same indices; each stream has a reader of its own."""
    turns = [asyncio.Event() for _ in range(5)]

    async def stream(words: str, first_turn: int) -> AsyncIterator[object]:
        yield PartStartEvent(index=0, part=TextPart(""))
        for word, number in zip(words, (first_turn, first_turn + 2), strict=True):
            await turns[number].wait()
            yield PartDeltaEvent(index=0, delta=TextPartDelta(word))
            turns[number + 1].set()

    kept = KeptParts()
    turns[0].set()
    await asyncio.gather(feed(kept.step(), stream("ab", 0)), feed(kept.step(), stream("cd", 1)))
    assert words_of(plain_parts(kept)) == ["ab", "cd"]


def test_what_providers_do_themselves_is_kept_for_them() -> None:
    """A search of the provider's own, a picture, a compaction, citations: with what goes back to it."""
    native = NativeToolCallPart("web_search", {"query": "q"}, "n1", provider_name="anthropic", id="i1")
    back = NativeToolReturnPart("web_search", [{"url": "u"}], "n1", provider_name="anthropic")
    source = WebCitationSource("https://example.com/", title="Example")
    events = [
        PartStartEvent(index=0, part=native),
        PartStartEvent(index=1, part=back),
        PartStartEvent(index=2, part=FilePart(BinaryContent(b"abc", media_type="image/png"))),
        PartStartEvent(index=3, part=CompactionPart("So far.", provider_name="anthropic")),
        PartStartEvent(index=4, part=TextPart("")),
        PartDeltaEvent(index=4, delta=TextPartDelta("It is.")),
        PartEndEvent(index=4, part=TextPart("It is.", citations=[Citation([source, source])])),
        PartDeltaEvent(index=4, delta=TextPartDelta("", citations_delta=[Citation([source])])),
    ]
    names = [type(event).__name__ for event in said(PydanticAIReader(), *events)]
    assert names == [
        "ToolStarted", "ToolInputReady", "ToolOutput", "File", "ReasoningStarted", "ReasoningDelta",
        "ReasoningEnded", "TextDelta", "TextEnded", "UrlSource",
    ]  # fmt: skip


def test_text_that_comes_after_its_part_ended_is_not_lost() -> None:
    """It stands in a part of its own."""
    events = [
        PartStartEvent(index=0, part=TextPart("a")),
        PartEndEvent(index=0, part=TextPart("a"), next_part_kind="text"),
        PartStartEvent(index=1, part=TextPart("b")),
        PartDeltaEvent(index=0, delta=TextPartDelta("c")),
    ]
    deltas = [event for event in said(PydanticAIReader(), *events) if isinstance(event, TextDelta)]
    assert [delta.text for delta in deltas] == ["a", "b", "c"]
    assert len({delta.block for delta in deltas}) == 3


def test_a_result_without_its_call_is_counted_and_harmless() -> None:
    """Of a run whose beginning this reader has not seen."""
    reader = PydanticAIReader()
    assert said(reader, FunctionToolResultEvent(ToolReturnPart("look", "x", "c9"))) == []
    assert reader.unknown == {"tool result: no call": 1}


@given(st.lists(st.text(), min_size=1, max_size=8))
async def test_however_a_text_is_cut_it_is_whole(pieces: list[str]) -> None:
    """The text is the concatenation of what the model gave."""
    async with Agent(model([*pieces, "."])).run_stream_events("x") as events:
        _, parts = await fed_in_memory(events)
    assert words_of(parts) == ["".join(pieces) + "."]


async def test_events_that_were_recorded_read_like_the_objects() -> None:
    """The library's own JSON of its events says the same."""
    adapter = TypeAdapter[AgentStreamEvent](AgentStreamEvent)
    agent = Agent(model(["Look. ", call(1, "look", '{"at":1}', "c1")], ["Done."]))

    @agent.tool_plain
    async def look(at: int) -> int:
        return at

    async with agent.run_stream_events("hi") as events:
        objects = [event async for event in events][:-1]
    lines = [adapter.dump_json(event) for event in objects]  # type: ignore[arg-type]  # all but the result are
    assert said(PydanticAIReader(), *lines) == said(PydanticAIReader(), *objects)


@given(
    st.lists(
        strategies.maps
        | st.fixed_dictionaries(
            {
                "event_kind": st.sampled_from(
                    [
                        "part_start",
                        "part_delta",
                        "part_end",
                        "function_tool_call",
                        "function_tool_result",
                        "custom",
                        "deferred_tool_requests",
                        "agent_run_result",
                        "new",
                    ]
                )
            },
            optional={"index": strategies.values, "part": strategies.values, "delta": strategies.values},
        )
    )
)
def test_odd_events_never_fail(events: list[object]) -> None:
    """Whatever comes is skipped and counted."""
    reader = PydanticAIReader()
    for event in events:
        reader.read(event)
    reader.end()
    assert all(count > 0 for count in reader.unknown.values())
