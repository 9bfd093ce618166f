"""Chat Completions as OpenAI and the others write it: what becomes of each form."""

from __future__ import annotations

from typing import Any

import pytest

from midstream.adapters.events import Refusal, StreamError
from midstream.adapters.openai_chat import OpenAIChatReader
from tests.adapters.memory import fed_in_memory, said, words_of
from tests.adapters.openai_events import Plain, call_piece, chunk

DONE = chunk("stop")


async def test_the_text_is_the_concatenation_of_its_pieces() -> None:
    """One text part, whatever the pieces are, and the reason for its end."""
    pieces = ["", "Hel", "lo", " ", "wörld", "\n", "\U0001f600"]
    fed, parts = await fed_in_memory([*(chunk(content=piece) for piece in pieces), DONE])
    assert parts == [{"type": "text", "text": "".join(pieces), "state": "done"}]
    assert (fed.reason, fed.raw_reason, fed.error, fed.unknown) == ("stop", "stop", None, {})


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_the_end_of_reasoning_and_the_start_of_text_are_two_parts_in_order(field: str) -> None:
    """DeepSeek and Groq name the field differently; which it was is kept for the next request."""
    thoughts: list[Any] = [{field: "I th"}, {field: "ink"}]
    stream = [*(chunk(**thought) for thought in thoughts), chunk(content="So"), DONE]
    _, parts = await fed_in_memory(stream)
    assert parts == [
        {
            "type": "reasoning",
            "text": "I think",
            "state": "done",
            "provider_metadata": {"openai-chat": {"field": field}},
        },
        {"type": "text", "text": "So", "state": "done"},
    ]


async def test_reasoning_that_stands_in_both_fields_is_taken_once() -> None:
    """Some servers send the same words under both names."""
    _, parts = await fed_in_memory([chunk(reasoning="hm", reasoning_content="hm"), DONE])
    assert words_of(parts, "reasoning") == ["hm"]


async def test_reasoning_after_text_is_another_part() -> None:
    """What comes after a text is not joined to what came before it."""
    stream = [chunk(reasoning="a"), chunk(content="b"), chunk(reasoning="c"), chunk(content="d"), DONE]
    _, parts = await fed_in_memory(stream)
    assert [(part["type"], part["text"]) for part in parts] == [
        ("reasoning", "a"),
        ("text", "b"),
        ("reasoning", "c"),
        ("text", "d"),
    ]


async def test_content_may_be_a_list_of_chunks() -> None:
    """Mistral's reasoning models send thoughts and text in lists."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    stream = [
        chunk(content=[thought]),
        chunk(content=[{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}]),
        chunk(content="b"),
        chunk(content=[{"type": "hologram"}]),
        DONE,
    ]
    fed, parts = await fed_in_memory(stream)
    assert [(part["type"], part["text"]) for part in parts] == [("reasoning", "hm"), ("text", "ab")]
    assert fed.unknown == {"content.hologram": 1}


PIECES: dict[str, list[Plain]] = {
    "as OpenAI cuts them": [
        call_piece("", id="c1", name="add"),
        call_piece('{"a":'),
        call_piece("1}"),
        call_piece("", id="c2", name="add", index=1),
        call_piece('{"a":2}', index=1),
    ],
    "interleaved": [
        call_piece('{"a"', id="c1", name="add"),
        call_piece('{"a":2', id="c2", name="add", index=1),
        call_piece(":1}"),
        call_piece("}", index=1),
    ],
    "whole, and all numbered 0": [
        call_piece('{"a":1}', id="c1", name="add"),
        call_piece('{"a":2}', id="c2", name="add"),
    ],
    "without numbers": [
        call_piece('{"a":', id="c1", name="add", index=None),
        call_piece("1}", index=None),
        call_piece('{"a":2}', id="c2", name="add", index=None),
    ],
    "with the id in every piece": [
        call_piece('{"a":', id="c1", name="add"),
        call_piece("1}", id="c1", name="add"),
        call_piece('{"a":2}', id="c2", name="add", index=1),
    ],
    "with an empty name in later pieces, as Mistral": [
        call_piece("", id="c1", name="add"),
        call_piece('{"a":1}', name=""),
        call_piece("", id="c2", name="add", index=1),
        call_piece('{"a":2}', name="", index=1),
    ],
    "with the name after arguments": [
        call_piece('{"a":', id="c1"),
        call_piece("1}", name="add"),
        call_piece('{"a":2}', id="c2", name="add", index=1),
    ],
    "with arguments before the id": [
        call_piece('{"a":1}', id="c1", name="add"),
        call_piece("{", index=1),
        call_piece('"a":2}', id="c2", name="add", index=1),
    ],
    "as objects": [
        call_piece({"a": 1}, id="c1", name="add"),
        call_piece({"a": 2}, id="c2", name="add", index=1),
    ],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES.keys())
async def test_two_calls_are_the_same_calls_however_they_are_numbered_and_cut(pieces: list[Plain]) -> None:
    """Every speaker of this format has its own way to cut a call."""
    fed, parts = await fed_in_memory([*pieces, chunk("tool_calls")])
    assert [(part["tool_call_id"], part["tool_name"], part["state"], part["input"]) for part in parts] == [
        ("c1", "add", "ready", {"a": 1}),
        ("c2", "add", "ready", {"a": 2}),
    ]
    assert [call.tool_call_id for call in fed.calls] == ["c1", "c2"]
    assert (fed.reason, fed.wants_results) == ("tool-calls", True)


async def test_a_call_without_an_id_gets_one() -> None:
    """The form from before there were several calls has no id at all."""
    old = [
        chunk(function_call={"name": "add", "arguments": '{"a"'}),
        chunk(function_call={"arguments": ":1}"}),
    ]
    fed, parts = await fed_in_memory([*old, chunk("function_call")])
    assert [(part["tool_name"], part["input"]) for part in parts] == [("add", {"a": 1})]
    assert fed.calls[0].tool_call_id
    assert fed.reason == "tool-calls"


async def test_a_call_that_never_says_its_name_is_kept_all_the_same() -> None:
    """The model can be told that there is no such tool."""
    _, parts = await fed_in_memory([call_piece('{"a":1}', id="c1"), chunk("tool_calls")])
    assert [(part["tool_name"], part["input"]) for part in parts] == [("unnamed", {"a": 1})]


async def test_a_chunk_may_be_wrapped() -> None:
    """As Mistral's own client gives it."""
    _, parts = await fed_in_memory([{"data": chunk(content="a")}, {"data": DONE}], OpenAIChatReader())
    assert words_of(parts) == ["a"]


async def test_no_arguments_are_an_empty_object() -> None:
    """A tool that takes nothing is called with no text at all."""
    fed, parts = await fed_in_memory([call_piece(id="c1", name="now"), chunk("tool_calls")])
    assert [part["input"] for part in parts] == [{}]
    assert len(fed.calls) == 1


async def test_arguments_that_are_no_json_are_kept_as_they_are_and_the_call_fails() -> None:
    """The model must be told, so the agent is; nothing is to be run."""
    fed, parts = await fed_in_memory([call_piece('{"a":', id="c1", name="add"), chunk("length")])
    (part,) = parts
    assert (part["state"], part["raw_input"], part["input_text"]) == ("failed", '{"a":', '{"a":')
    assert "input" not in part
    assert fed.calls == []
    assert [call.tool_call_id for call in fed.invalid_calls] == ["c1"]
    assert (fed.reason, fed.wants_results) == ("length", True)


async def test_text_between_calls_has_parts_of_its_own() -> None:
    """A call ends the text before it."""
    stream = [
        chunk(content="a"),
        call_piece("{}", id="c1", name="f"),
        chunk(content="b"),
        chunk("tool_calls"),
    ]
    _, parts = await fed_in_memory(stream)
    assert [part["type"] for part in parts] == ["text", "tool", "text"]


async def test_each_choice_has_its_own_text() -> None:
    """Two texts that grow in turns, and end in the same chunk, are not mixed."""
    both: Plain = {"choices": [{"index": i, "delta": {}, "finish_reason": "stop"} for i in (0, 1)]}
    stream = [
        chunk(content="a", index=0),
        chunk(content="x", index=1),
        chunk(content="b", index=0),
        chunk(content="y", index=1),
        both,
    ]
    _, parts = await fed_in_memory(stream)
    assert words_of(parts) == ["ab", "xy"]


async def test_a_completion_that_follows_another_is_another_step() -> None:
    """The same ids, numbers and indices again: separate parts, and a mark between them."""
    once = [chunk(content="a"), call_piece("{}", id="c1", name="f"), chunk("tool_calls")]
    fed, parts = await fed_in_memory([*once, *once])
    assert [part["type"] for part in parts] == ["text", "tool", "step-start", "text", "tool"]
    assert fed.reason == "tool-calls"


async def test_a_refusal_is_a_text_that_says_so() -> None:
    """People see it grow, and the agent learns of it."""
    fed, parts = await fed_in_memory([chunk(refusal="I ca"), chunk(refusal="n't."), DONE])
    assert parts == [
        {
            "type": "text",
            "text": "I can't.",
            "state": "done",
            "provider_metadata": {"openai-chat": {"refusal": True}},
        }
    ]
    assert fed.refusal == "I can't."


async def test_usage_is_one_data_part_at_the_end() -> None:
    """With the same names as for every provider, and the provider's own words."""
    counts = {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "completion_tokens_details": {"reasoning_tokens": 2},
        "prompt_cache_hit_tokens": 1,
    }
    earlier: Plain = {**chunk(content="a"), "usage": {"prompt_tokens": 3, "completion_tokens": 0}}
    last: Plain = {"choices": [], "usage": counts}
    fed, parts = await fed_in_memory([earlier, DONE, last])
    usage = {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "reasoning_tokens": 2,
        "cached_tokens": 1,
        "raw": counts,
    }
    assert parts[1:] == [{"type": "data", "data_type": "usage", "data": usage}]
    assert fed.usage == usage


async def test_what_azure_filtered_is_told() -> None:
    """A filter that found nothing says nothing."""
    calm, angry = {"hate": {"filtered": False}}, {"hate": {"filtered": True, "severity": "high"}}
    first: Plain = {"choices": [], "prompt_filter_results": [{"content_filter_results": calm}]}
    last = chunk("content_filter")
    choices = last["choices"]
    assert isinstance(choices, list)
    choices[0]["content_filter_results"] = {**angry, "violence": {"filtered": False}}
    fed, parts = await fed_in_memory([first, chunk(content="a"), last])
    assert parts[1:] == [{"type": "data", "data_type": "content-filter", "data": angry}]
    assert (fed.reason, fed.unknown) == ("content-filter", {})


async def test_pages_are_sources_each_named_once() -> None:
    """OpenAI cites in annotations; others give a list with every chunk."""
    cited = {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}
    chunks = [
        chunk(content="a", annotations=[cited, cited]),
        {**chunk(content="b"), "citations": ["https://a.example", "https://b.example"]},
        {**DONE, "search_results": [{"url": "https://c.example", "title": "C"}]},
    ]
    _, parts = await fed_in_memory(chunks)
    sources = [(part["url"], part.get("title")) for part in parts if part["type"] == "source"]
    assert sources == [("https://a.example", "A"), ("https://b.example", None), ("https://c.example", "C")]


async def test_images_are_files() -> None:
    """As OpenRouter sends what a model drew."""
    url = "data:image/png;base64,AAAA"
    images = [{"type": "image_url", "image_url": {"url": url}}]
    _, parts = await fed_in_memory([chunk(content="See:"), chunk(images=images), DONE])
    assert parts[1:] == [{"type": "file", "url": url, "media_type": "image/png"}]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"code": "rate_limit_exceeded", "message": "Slow."}, ("rate_limit_exceeded", "Slow.", True)),
        ({"type": "invalid_request_error", "message": "No."}, ("invalid_request_error", "No.", False)),
        ({"code": 502, "message": "Bad gateway"}, ("502", "Bad gateway", True)),
        ({"code": 400, "message": "Bad request"}, ("400", "Bad request", False)),
        ({"code": 429}, ("429", "The provider broke the stream off without a reason.", True)),
        ("overloaded", ("stream_failed", "overloaded", True)),
    ],
)
async def test_an_error_in_mid_stream_keeps_the_text_and_is_told(
    error: object, told: tuple[str, str, bool]
) -> None:
    """The k tokens and the error are both there, with the provider's own code and words."""
    fed, parts = await fed_in_memory([chunk(content="so far"), {"error": error}])
    code, message, recoverable = told
    assert parts == [
        {"type": "text", "text": "so far", "state": "done"},
        {
            "type": "error",
            "scope": "turn",
            "code": code,
            "message": message,
            "recoverable": recoverable,
        },
    ]
    assert fed.error == StreamError(code, message, recoverable)
    assert fed.reason == "error"


async def test_a_stream_that_just_ends_is_told_as_cut() -> None:
    """A connection that broke can look like that; what came is kept, and may be abandoned."""
    fed, parts = await fed_in_memory([chunk(content="so far"), call_piece('{"a', id="c1", name="f")])
    assert [(part["type"], part.get("state")) for part in parts] == [
        ("text", "done"),
        ("tool", "input-streaming"),
        ("error", None),
    ]
    assert fed.error is not None
    assert (fed.error.code, fed.error.recoverable) == ("stream_ended_early", True)
    assert fed.calls == fed.invalid_calls == []


def test_fields_and_events_that_are_not_known_are_counted() -> None:
    """Each by a name that says where it stood."""
    reader = OpenAIChatReader()
    events = [chunk(content="a", executed_tools=[1]), {"object": "chat.poem"}, {"x": 1}, {"type": "news"}]
    said(reader, *events)
    assert reader.unknown == {"delta.executed_tools": 1, "chat.poem": 1, "(no type)": 1, "news": 1}


def test_empty_fields_say_nothing() -> None:
    """Most chunks carry many fields with nothing in them."""
    reader = OpenAIChatReader()
    empty = chunk(role="assistant", content="", refusal=None, reasoning_content=None, tool_calls=[], new=None)
    assert said(reader, empty, DONE)[:-1] == []
    assert reader.unknown == {}


def test_the_audio_of_a_speaking_model_is_read_as_its_transcript() -> None:
    """The sound itself is not kept."""
    reader = OpenAIChatReader()
    events = said(reader, chunk(audio={"transcript": "Hi"}), DONE)
    assert [getattr(event, "text", None) for event in events[1:2]] == ["Hi"]
    assert not any(isinstance(event, Refusal) for event in events)
