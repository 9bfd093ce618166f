"""LangChain's own models: what becomes of their messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from midstream.adapters.events import TextDelta
from midstream.adapters.langchain import LangChainReader
from tests import strategies
from tests.adapters.langchain_models import LOOKS, ScriptedModel, call, text
from tests.adapters.memory import fed_in_memory, said, words_of

# version 3 of the events, says the library
pytestmark = pytest.mark.filterwarnings("ignore:.*(is in beta|is experimental)")


async def test_a_model_alone_leaves_its_calls_to_the_agent() -> None:
    """Reasoning and text in order, arguments that alternate, usage and the reason for the end."""
    fed, parts = await fed_in_memory(ScriptedModel(answers=[LOOKS]).astream("hi"))
    assert [part["type"] for part in parts] == ["reasoning", "text", "tool", "tool", "data"]
    assert words_of(parts, "reasoning") == ["hm yes"]
    assert words_of(parts) == ["Let me look."]
    assert [(one.tool_call_id, one.input) for one in fed.calls] == [("c1", {"city": "Rome"}), ("c2", {})]
    assert (fed.reason, fed.raw_reason, fed.unknown) == ("tool-calls", "tool_calls", {})
    assert fed.usage == {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


async def test_a_message_that_is_given_two_ids_is_one() -> None:
    """The first chunk has the model's own id, the others the run's."""
    chunks = [
        AIMessageChunk(content=letter, id=name)
        for letter, name in [("a", "msg_1"), ("b", "lc_run--1"), ("c", "lc_run--1")]
    ]
    _, parts = await fed_in_memory(chunks)
    assert [(part["type"], part["text"]) for part in parts] == [("text", "abc")]


async def test_blocks_of_every_kind_become_parts() -> None:
    """Citations once each, a tool of the provider's, a picture, a refusal, and what belongs to a provider."""
    cited = {"type": "citation", "url": "https://example.com/", "title": "Example"}
    blocks: list[dict[str, object]] = [
        {"type": "reasoning", "reasoning": "", "id": "rs_1", "extras": {"signature": "SIG"}, "index": 0},
        {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"query": "q"}, "index": 1},
        {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": [1], "index": 2},
        {"type": "text", "text": "It is.", "annotations": [cited, cited], "index": 3},
        {"type": "image", "base64": "YWJj", "mime_type": "image/png", "index": 4},
        {"type": "refusal", "refusal": "No.", "index": 5},
        {"type": "non_standard", "value": {"type": "theirs"}, "index": 6},
    ]
    chunks = [
        AIMessageChunk(content=[block], response_metadata={"output_version": "v1", "model_provider": "p"})
        for block in blocks
    ]
    fed, parts = await fed_in_memory(chunks)
    assert [part["type"] for part in parts] == ["reasoning", "tool", "text", "source", "file", "text"]
    assert parts[0]["provider_metadata"] == {
        "langchain": {"id": "rs_1", "extras": {"signature": "SIG"}, "model_provider": "p"}
    }
    assert parts[1]["call_provider_metadata"] == {"langchain": {"model_provider": "p"}}
    assert (parts[1]["provider_executed"], parts[1]["output"]) == (True, [1])
    assert parts[4]["url"] == "data:image/png;base64,YWJj"
    assert fed.refusal == "No."
    assert fed.unknown == {"non_standard: theirs": 1}


async def test_reasoning_beside_the_content_is_reasoning() -> None:
    """DeepSeek and Ollama put it into a field of its own, and want it back there."""
    chunks = [AIMessageChunk(content="", additional_kwargs={"reasoning_content": "hm "}), text("So.")]
    _, parts = await fed_in_memory(chunks)
    assert parts[0] == {
        "type": "reasoning",
        "text": "hm ",
        "state": "done",
        "provider_metadata": {"langchain": {"field": "reasoning_content"}},
    }
    assert words_of(parts) == ["So."]


async def test_calls_that_are_no_json_have_failed() -> None:
    """As a whole message says it, and as chunks do; the model can be told."""
    wrong = {"name": "look", "args": '{"a', "id": "c1", "error": None, "type": "invalid_tool_call"}
    whole: list[object] = [
        ("updates", {"think": {"messages": [AIMessage("", id="m1", invalid_tool_calls=[wrong])]}})
    ]
    for stream in (whole, [call(0, "look", '{"a', "c1")]):
        fed, parts = await fed_in_memory(stream)
        assert [(part["state"], part["raw_input"]) for part in parts] == [("failed", '{"a')]
        assert [one.tool_call_id for one in fed.invalid_calls] == ["c1"]


async def test_a_model_s_own_events_of_version_3_become_its_parts() -> None:
    """A stream that is awaited for, and says when each block ends."""
    fed, parts = await fed_in_memory(ScriptedModel(answers=[LOOKS]).astream_events("hi", version="v3"))
    assert [part["type"] for part in parts] == ["reasoning", "text", "tool", "tool", "data"]
    assert (words_of(parts, "reasoning"), words_of(parts)) == (["hm yes"], ["Let me look."])
    assert [(one.tool_call_id, one.input) for one in fed.calls] == [("c1", {"city": "Rome"}), ("c2", {})]
    assert (fed.reason, fed.unknown) == ("tool-calls", {})


async def test_blocks_of_version_3_end_with_what_is_kept_of_them() -> None:
    """Whatever began before they ended; and what comes whole is read at its end."""
    cited = {"type": "citation", "url": "https://example.com/"}
    signed = {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "SIG"}}
    events: list[dict[str, object]] = [
        {"event": "message-start", "role": "ai", "id": "m1"},
        {"event": "content-block-start", "index": 0, "content": {"type": "reasoning", "reasoning": "hm"}},
        {"event": "content-block-start", "index": 1, "content": {"type": "text", "text": ""}},
        {"event": "content-block-delta", "index": 1, "delta": {"type": "text-delta", "text": "So."}},
        {"event": "content-block-finish", "index": 0, "content": signed},
        {
            "event": "content-block-finish",
            "index": 1,
            "content": {"type": "text", "text": "So.", "annotations": [cited]},
        },
        {"event": "content-block-finish", "index": 2, "content": {"type": "image", "url": "https://h/a.png"}},
        {
            "event": "content-block-finish",
            "index": 3,
            "content": {"type": "tool_call", "id": "c1", "name": "look", "args": {"a": 1}},
        },
        {"event": "content-block-delta", "index": 9, "delta": {"type": "text-delta", "text": "lost"}},
    ]
    fed, parts = await fed_in_memory(events)
    assert [part["type"] for part in parts] == ["reasoning", "text", "source", "file", "tool"]
    assert parts[0]["provider_metadata"] == {"langchain": {"extras": {"signature": "SIG"}}}
    assert [(one.tool_name, one.input) for one in fed.calls] == [("look", {"a": 1})]


@given(st.lists(st.text(), min_size=1, max_size=8))
async def test_however_a_text_is_cut_it_is_whole(pieces: list[str]) -> None:
    """The text is the concatenation of what the model gave."""
    chunks = [text(piece) for piece in pieces]
    deltas = [event.text for event in said(LangChainReader(), *chunks) if isinstance(event, TextDelta)]
    assert "".join(deltas) == "".join(pieces)


async def test_messages_that_were_recorded_read_like_the_objects() -> None:
    """The library's own JSON of its messages says the same."""
    chunks = [chunk async for chunk in ScriptedModel(answers=[LOOKS]).astream("hi")]
    lines: list[object] = [json.loads(chunk.model_dump_json()) for chunk in chunks]
    assert said(LangChainReader(), *lines) == said(LangChainReader(), *chunks)


@given(
    st.lists(
        strategies.maps
        | st.lists(strategies.values, max_size=3)
        | st.tuples(
            st.sampled_from(["messages", "updates", "tasks", "tools", "custom", "new"]), strategies.values
        )
        | st.fixed_dictionaries(
            {
                "event": st.sampled_from(
                    ["on_tool_start", "on_tool_end", "on_tool_error", "on_chain_stream", "on_x"]
                ),
                "data": strategies.values,
                "run_id": st.just("r"),
            }
        )
        | st.builds(ToolMessage, content=st.text(), tool_call_id=st.sampled_from(["c1", "c2"]))
        | st.builds(
            call,
            st.sampled_from([0, 1, None]),
            st.sampled_from(["look", None]),
            st.text(),
            st.sampled_from(["c1", None]),
        )
    )
)
def test_odd_items_never_fail(items: list[object]) -> None:
    """Whatever comes is skipped and counted."""
    reader = LangChainReader()
    for item in items:
        reader.read(item)
    reader.end()
    assert all(count > 0 for count in reader.unknown.values())
