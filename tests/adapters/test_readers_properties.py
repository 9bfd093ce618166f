"""Nothing that a provider sends is fatal, whichever reader reads it."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.adapters.detect import READERS, reader_named
from tests.adapters.memory import fed_in_memory
from tests.adapters.recordings import STREAMS, lines_of

PLAIN = ("openai-chat", "openai-responses", "anthropic", "google")
"""The formats whose events are plain on the wire."""
WORDS = {
    "openai-chat": "choices delta content tool_calls function arguments index id name finish_reason usage"
    " reasoning reasoning_content refusal type text data url citations stop thinking message error",
    "openai-responses": "type response.created response.output_item.added response.output_item.done item id"
    " response.output_text.delta delta output_index content_index message reasoning function_call call_id"
    " response.completed response usage error content summary part annotations response.content_part.done"
    " arguments code response.code_interpreter_call_code.delta code_interpreter_call output_text text",
    "anthropic": "type message_start content_block_start content_block_delta content_block_stop index delta"
    " content_block text text_delta tool_use input_json_delta partial_json id name thinking message_delta"
    " server_tool_use web_search_tool_result content tool_use_id error message stop_reason usage",
    "google": "candidates content parts text thought functionCall name args finishReason usageMetadata"
    " groundingMetadata groundingChunks web uri inlineData data mimeType executableCode code language",
}
"""Words of each format: what is drawn from them gets deep into its reader."""


def events_of(name: str) -> st.SearchStrategy[object]:
    """Any JSON, much of it made of the format's own words."""
    word = st.sampled_from(WORDS[name].split()) | st.text(max_size=3)
    scalar = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | word
    return st.dictionaries(
        word,
        st.recursive(
            scalar,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=4),
            max_leaves=8,
        ),
        max_size=5,
    )


@pytest.mark.parametrize("name", PLAIN)
@given(data=st.data())
@settings(max_examples=50)  # each draws up to four deep events
async def test_no_event_is_fatal(name: str, data: st.DataObject) -> None:
    """Any JSON is skipped and counted, or becomes parts that the protocol has."""
    events = data.draw(st.lists(events_of(name), min_size=1, max_size=4))
    await fed_in_memory(events, reader_named(name))


OTHERS: list[object] = [None, True, -1, 0.5, "", "x", [], {}]


def damaged(value: object, data: st.DataObject) -> object:
    """The same value with one thing in it replaced by another, or left out."""
    if isinstance(value, dict) and value:
        fields = cast("dict[str, object]", value)
        key = data.draw(st.sampled_from(sorted(fields)))
        rest = {name: item for name, item in fields.items() if name != key}
        if data.draw(st.booleans()):
            return {**rest, key: damaged(fields[key], data)}
        return rest
    if isinstance(value, list) and value:
        listed = cast("list[object]", value)
        place = data.draw(st.integers(0, len(listed) - 1))
        return [*listed[:place], damaged(listed[place], data), *listed[place + 1 :]]
    return data.draw(st.sampled_from(OTHERS))


@pytest.mark.skipif(not STREAMS.exists(), reason="the recorded streams (../shared/streams) are not here")
@pytest.mark.parametrize("name", PLAIN)
@given(data=st.data())
async def test_a_real_stream_with_one_event_damaged_is_still_written(name: str, data: st.DataObject) -> None:
    """Whatever is missing or of another type."""
    path = data.draw(st.sampled_from(sorted((STREAMS / name).glob("*.txt"))))
    events = [json.loads(line) for line in lines_of(path)][:60]
    place = data.draw(st.integers(0, len(events) - 1))
    events[place] = damaged(events[place], data)
    await fed_in_memory(events, reader_named(name))


def test_every_reader_can_be_had_by_its_name() -> None:
    """Each a new one."""
    for name in READERS:
        assert reader_named(name) is not reader_named(name)
