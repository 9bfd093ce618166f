"""Recorded provider streams are read as they were meant, and wrong ones are named by file and line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from midstream.server.agents.recordings import (
    FLOOR_S,
    LONGEST_PAUSE_S,
    Called,
    Chunk,
    Event,
    Finished,
    RecordingError,
    Said,
    Thought,
    Used,
    choose,
    delays,
    openai_chunks,
    read_recording,
    recordings_in,
    segments,
)

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "streams" / "openai-chat"


def line(delta: Mapping[str, object], **fields: object) -> str:
    """Build one recorded line with one choice."""
    choice = {
        "index": 0,
        "delta": delta,
        "finish_reason": fields.pop("finish_reason", None),
        "logprobs": None,
    }
    return json.dumps({"id": "c", "created": 5, "choices": [choice], "x_groq": {"any": [1]}, **fields})


def test_each_field_of_a_delta_becomes_its_event() -> None:
    """Thoughts come before words, words before tool calls, and all that is unknown or empty is skipped."""
    call = {"index": 1, "id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a'}}
    delta = {
        "role": "assistant",
        "content": "Hi",
        "reasoning_content": "Hm",
        "refusal": None,
        "tool_calls": [call],
    }
    assert openai_chunks(line(delta, finish_reason="stop", usage={"total_tokens": 3})) == Chunk(
        5,
        [
            Thought("Hm"),
            Said("Hi"),
            Called(1, "c1", "add", '{"a'),
            Finished("stop"),
            Used({"total_tokens": 3}),
        ],
    )


def test_a_chunk_that_says_nothing_has_no_events() -> None:
    """Azure sends filters before the first choice, others send empty deltas."""
    assert openai_chunks('{"choices":[],"created":0,"prompt_filter_results":[{}]}') == Chunk(0, [])
    assert openai_chunks(line({"role": "assistant", "content": ""}, usage=None)) == Chunk(5, [])


def test_the_later_pieces_of_a_tool_call_need_no_name() -> None:
    """Mistral repeats the call with an empty name, others with none."""
    piece = {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}
    assert openai_chunks(line(piece)).events == [Called(0, "", "", "}")]


@pytest.mark.parametrize(
    "broken", ["", "data: {}", "[DONE]", '{"choices": 3}', '{"choices": [{"delta": {"content": 1}}]}']
)
def test_a_line_of_another_form_is_refused(broken: str) -> None:
    """What cannot be understood is not skipped in silence."""
    with pytest.raises(RecordingError, match="no chat completion chunk"):
        openai_chunks(broken)


def test_a_broken_recording_is_named_by_file_and_line(tmp_path: Path) -> None:
    """Empty lines count but are skipped."""
    path = tmp_path / "bad.chunks.txt"
    path.write_text(f"{line({'content': 'a'})}\n\nnonsense\n")
    with pytest.raises(RecordingError, match=r"bad\.chunks\.txt, line 3, is no chat"):
        read_recording(path)


def test_the_chunks_of_a_second_are_spread_over_it() -> None:
    """Four chunks until the next second are a quarter of a second apart; the last second lasts one."""
    assert delays([10, 10, 10, 10, 11, 11]) == [0.25] * 4 + [0.5] * 2


def test_pauses_have_a_floor_and_a_ceiling() -> None:
    """A thousand chunks in a second are still seen one by one, and an hour is not waited for."""
    assert delays([1] * 1000) == [FLOOR_S] * 1000
    assert delays([1, 3601]) == [LONGEST_PAUSE_S, 1.0]


def test_a_chunk_without_a_time_belongs_to_the_next() -> None:
    """Azure's first chunk has the time 0, which is not fifty years before the second."""
    assert delays([0, 100, 100, 0]) == delays([100, 100, 100, 0])
    assert delays([]) == []
    assert max(delays([0, 1_762_317_021])) <= LONGEST_PAUSE_S


def test_events_are_grouped_by_the_part_that_they_go_to() -> None:
    """Two calls in parallel are two parts, and the pause of a chunk stands before its first event."""
    chunks = [
        Chunk(1, [Thought("a")]),
        Chunk(1, []),
        Chunk(1, [Thought("b"), Said("c")]),
        Chunk(1, [Called(0, "x", "f", ""), Called(1, "y", "g", "")]),
    ]
    grouped = segments(chunks)
    assert [[event for _, event in segment.events] for segment in grouped] == [
        [Thought("a"), Thought("b")],
        [Said("c")],
        [Called(0, "x", "f", "")],
        [Called(1, "y", "g", "")],
    ]
    assert [wait for segment in grouped for wait, _ in segment.events] == [0.25, 0.5, 0.0, 0.25, 0.0]


def test_the_prompt_names_a_recording_or_the_next_one_is_played() -> None:
    """After the last comes the first; of two names that fit, the longer one is meant."""
    names = ["deep", "deep-tool", "text"]
    assert choose(names, "play deep-tool please", None) == "deep-tool"
    assert [choose(names, "next", played) for played in (None, "deep", "deep-tool", "text")] == [
        "deep",
        "deep-tool",
        "text",
        "deep",
    ]


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    """A wrong folder is noticed when the server starts, not when somebody asks."""
    with pytest.raises(RecordingError, match="holds no"):
        recordings_in(tmp_path)
    with pytest.raises(RecordingError, match="is no folder"):
        recordings_in(tmp_path / "missing")


def recorded(name: str) -> list[Chunk]:
    """Read a shared recording."""
    if not RECORDED.is_dir():
        pytest.skip("the recorded provider streams are not part of the repository")
    return read_recording(RECORDED / f"{name}.chunks.txt")


def joined(events: Sequence[Event], kind: type[Thought] | type[Said]) -> str:
    """Return all text of one kind."""
    return "".join(event.text for event in events if isinstance(event, kind))


@pytest.mark.parametrize(
    ("name", "thinks", "says", "calls", "reason"),
    [
        ("azure-model-router", False, True, set[str](), "stop"),
        ("deepseek-reasoning", True, True, set[str](), "stop"),
        ("deepseek-tool-call", True, False, {"weather"}, "tool_calls"),
        ("groq-text", False, True, set[str](), "stop"),
        ("groq-tool-call", False, False, {"weather"}, "tool_calls"),
        ("mistral-incremental-tool-call", False, False, {"webSearchTool"}, "tool_calls"),
        ("text", False, True, set[str](), "stop"),
    ],
)
def test_real_recordings_are_read_whole(
    name: str, *, thinks: bool, says: bool, calls: set[str], reason: str
) -> None:
    """Each provider's stream has the parts that it is known to have, and its arguments are JSON."""
    events = [event for chunk in recorded(name) for event in chunk.events]
    assert bool(joined(events, Thought)) is thinks
    assert bool(joined(events, Said)) is says
    assert {event.name for event in events if isinstance(event, Called) and event.name} == calls
    arguments = "".join(event.arguments for event in events if isinstance(event, Called))
    assert not calls or isinstance(json.loads(arguments), dict)
    assert [event.reason for event in events if isinstance(event, Finished)] == [reason]
    assert any(isinstance(event, Used) for event in events)
