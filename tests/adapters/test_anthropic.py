"""Anthropic's Messages: what each of its blocks becomes, and what is kept to go back."""

from __future__ import annotations

import pytest

from midstream.adapters.anthropic import AnthropicReader
from midstream.adapters.events import (
    Data,
    DocumentSource,
    Finished,
    Refusal,
    StepBoundary,
    StreamError,
    ToolFailed,
    ToolStarted,
    UrlSource,
)
from tests.adapters.anthropic_events import (
    STOP,
    Plain,
    begun,
    call,
    delta,
    message,
    over,
    start,
    stop,
    text,
)
from tests.adapters.memory import fed_in_memory, said, words_of

SEARCH = call(0, "server_tool_use", '{"query":', '"q"}', id="srvtoolu_1", name="web_search")


def own(**fields: object) -> Plain:
    """What is kept for the next request."""
    return {"anthropic": fields}


async def test_a_text_is_the_concatenation_of_its_deltas() -> None:
    """And what it used is counted with what came from the cache."""
    fed, parts = await fed_in_memory(message(*text(0, "Hel", "", "lo")))
    assert parts[0] == {"type": "text", "text": "Hello", "state": "done"}
    assert (fed.reason, fed.raw_reason, fed.error, fed.unknown) == ("stop", "end_turn", None, {})
    assert fed.usage == {
        "input_tokens": 14,
        "output_tokens": 7,
        "total_tokens": 21,
        "cached_tokens": 4,
        "raw": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 7},
    }


async def test_thinking_keeps_its_signature_and_what_cannot_be_read_is_kept_too() -> None:
    """Both go back in the next request, unchanged."""
    _, parts = await fed_in_memory(
        message(
            start(0, "thinking", thinking="", signature=""),
            delta(0, "thinking_delta", thinking="Hm"),
            delta(0, "thinking_delta", thinking="."),
            delta(0, "signature_delta", signature="sig"),
            stop(0),
            start(1, "redacted_thinking", data="Em"),
            stop(1),
        )
    )
    assert parts[:2] == [
        {"type": "reasoning", "text": "Hm.", "state": "done", "provider_metadata": own(signature="sig")},
        {"type": "reasoning", "text": "", "state": "done", "provider_metadata": own(redacted_data="Em")},
    ]


async def test_the_arguments_of_a_call_stream_and_then_are_parsed() -> None:
    """None are an empty map; those that the block held count where none streamed."""
    calls = [
        call(0, "tool_use", '{"a":', "1}", id="toolu_1", name="t"),
        call(1, "tool_use", "", id="toolu_2", name="t"),
        [start(2, "tool_use", id="toolu_3", name="t", input={"b": 2}), stop(2)],
        [
            start(3, "tool_use", id="toolu_4", name="t", input={"b": 0}),
            delta(3, "input_json_delta", partial_json='{"b": 3}'),
            stop(3),
        ],
    ]
    fed, parts = await fed_in_memory(message(*(event for one in calls for event in one), reason="tool_use"))
    assert [(part["tool_call_id"], part["state"], part["input"]) for part in parts[:4]] == [
        ("toolu_1", "ready", {"a": 1}),
        ("toolu_2", "ready", {}),
        ("toolu_3", "ready", {"b": 2}),
        ("toolu_4", "ready", {"b": 3}),
    ]
    assert (fed.reason, [one.tool_call_id for one in fed.calls]) == (
        "tool-calls",
        ["toolu_1", "toolu_2", "toolu_3", "toolu_4"],
    )


async def test_arguments_that_are_no_json_are_kept_and_the_call_has_failed() -> None:
    """The model is told on the next request."""
    fed, parts = await fed_in_memory(
        message(*call(0, "tool_use", '{"a"', id="toolu_1", name="t"), reason="tool_use")
    )
    assert (parts[0]["state"], parts[0]["raw_input"]) == ("failed", '{"a"')
    assert [one.tool_call_id for one in fed.invalid_calls] == ["toolu_1"]


async def test_a_tool_of_the_provider_has_its_result_in_the_call() -> None:
    """As it came: it goes back so."""
    found = [{"type": "web_search_result", "title": "T", "url": "https://x/", "encrypted_content": "E"}]
    result = start(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=found)
    fed, parts = await fed_in_memory(message(*SEARCH, result, stop(1), reason="pause_turn"))
    assert parts[0] == {
        "type": "tool",
        "tool_call_id": "srvtoolu_1",
        "tool_name": "web_search",
        "state": "completed",
        "input_text": '{"query":"q"}',
        "input": {"query": "q"},
        "output": found,
        "provider_executed": True,
        "call_provider_metadata": own(type="server_tool_use"),
        "result_provider_metadata": own(type="web_search_tool_result"),
    }
    assert (fed.reason, fed.raw_reason, fed.calls) == ("other", "pause_turn", [])


@pytest.mark.parametrize(
    ("kind", "result", "error"),
    [
        ("web_search", {"content": {"type": "some_error", "error_code": "unavailable"}}, "unavailable"),
        ("mcp", {"is_error": True, "content": [{"type": "text", "text": "No."}]}, "No."),
        ("mcp", {"is_error": True, "content": "No."}, "No."),
        ("mcp", {"is_error": True}, "The provider's tool failed."),
    ],
)  # fmt: skip
async def test_a_tool_of_the_provider_that_failed_says_why(kind: str, result: Plain, error: str) -> None:
    """By its code, or in its words."""
    block = start(1, f"{kind}_tool_result", tool_use_id="srvtoolu_1", **result)
    _, parts = await fed_in_memory(message(*SEARCH, block, stop(1)))
    assert (parts[0]["state"], parts[0]["error"]) == ("failed", error)


async def test_a_tool_of_a_server_of_tools_keeps_the_server() -> None:
    """It was not among those that the agent offered by name."""
    use = call(0, "mcp_tool_use", "{}", id="mcptoolu_1", name="echo", server_name="files")
    result = start(1, "mcp_tool_result", tool_use_id="mcptoolu_1", is_error=False, content=[])
    _, parts = await fed_in_memory(message(*use, result, stop(1)))
    assert (parts[0]["dynamic"], parts[0]["output"]) == (True, [])
    assert parts[0]["call_provider_metadata"] == own(type="mcp_tool_use", server_name="files")


def test_each_page_and_document_that_is_cited_is_a_source_once() -> None:
    """However often it is cited; one that is not known is counted."""
    page: Plain = {"type": "web_search_result_location", "url": "https://x/", "title": "X", "cited_text": "a"}
    book: Plain = {"type": "page_location", "document_index": 0, "document_title": None, "cited_text": "b"}
    letter: Plain = {"type": "char_location", "document_index": 1, "document_title": "Letter"}
    found: Plain = {"type": "search_result_location", "source": "kb/7", "title": "Seven"}
    linked: Plain = {"type": "search_result_location", "source": "http://y/", "title": ""}
    reader = AnthropicReader()
    cited = [delta(0, "citations_delta", citation=one) for one in (page, book, letter, found, linked, page)]
    odd = delta(0, "citations_delta", citation={"type": "dream"})
    heard = said(reader, begun(), start(0, "text", text="", citations=[page]), *cited, odd, stop(0), *over())
    sources = [one for one in heard if isinstance(one, (UrlSource, DocumentSource))]
    assert [
        (one.url, one.title) if isinstance(one, UrlSource) else (one.media_type, one.title) for one in sources
    ] == [
        ("https://x/", "X"),
        ("application/pdf", "Document 1"),
        ("text/plain", "Letter"),
        ("text/plain", "Seven"),
        ("http://y/", None),
    ]
    assert reader.unknown == {"citation:dream": 1}


async def test_the_citations_of_a_text_are_kept_with_it() -> None:
    """The index of a searched page is wanted back."""
    page: Plain = {"type": "web_search_result_location", "url": "https://x/", "encrypted_index": "E"}
    cited = delta(0, "citations_delta", citation=page)
    _, parts = await fed_in_memory(
        message(
            start(0, "text", text=""), cited, delta(0, "text_delta", text="So."), stop(0), *text(1, "And.")
        )
    )
    texts = [part for part in parts if part["type"] == "text"]
    assert [part.get("provider_metadata") for part in texts] == [own(citations=[page]), None]


def test_a_refusal_is_told_with_its_explanation() -> None:
    """Not as the model's text: the provider says it."""
    details: Plain = {"type": "refusal", "explanation": "Not this."}
    heard = said(AnthropicReader(), begun(), *over("refusal", stop_details=details))
    assert heard[-2:] == [Refusal("Not this."), Finished("content-filter", "refusal")]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool-calls"),
        ("something_new", "other"),
    ],
)
async def test_the_reason_is_told_in_our_words_and_in_theirs(raw: str, reason: str) -> None:
    """One that is not known is ``other``."""
    fed, _ = await fed_in_memory(message(reason=raw))
    assert (fed.reason, fed.raw_reason) == (reason, raw)


async def test_an_error_in_mid_stream_keeps_the_text() -> None:
    """An overloaded provider may answer when asked again."""
    error: Plain = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    fed, parts = await fed_in_memory(
        [begun(), start(0, "text", text="so"), delta(0, "text_delta", text=" far"), error]
    )
    assert words_of(parts) == ["so far"]
    assert fed.error == StreamError("overloaded_error", "Overloaded", recoverable=True)


async def test_a_stream_that_ends_without_its_end_is_an_error_and_what_is_open_is_closed() -> None:
    """A connection that is lost looks just so."""
    fed, parts = await fed_in_memory(
        [begun(), start(0, "text", text="so"), delta(0, "text_delta", text=" far")]
    )
    assert words_of(parts) == ["so far"]
    assert fed.error is not None
    assert (fed.error.code, fed.error.recoverable) == ("stream_ended_early", True)


def test_a_message_that_begins_anew_ends_the_call_that_was_cut() -> None:
    """Its blocks have the numbers of the one before it, and are others."""
    cut = [
        start(1, "tool_use", id="toolu_1", name="t", input={}),
        delta(1, "input_json_delta", partial_json='{"a'),
    ]
    again = call(1, "tool_use", "{}", id="toolu_2", name="t")
    heard = said(AnthropicReader(), begun(), *cut, begun(), *again, *over("tool_use"))
    first, second = (one for one in heard if isinstance(one, ToolStarted))
    (failed,) = (one for one in heard if isinstance(one, ToolFailed))
    assert failed.block == first.block != second.block
    assert sum(isinstance(one, StepBoundary) for one in heard) == 1
    assert heard.index(failed) < heard.index(StepBoundary())


async def test_what_is_not_known_is_counted_and_the_rest_goes_on() -> None:
    """A block, an event, a delta, a result without its call; what belongs to such a block says nothing."""
    lost = start(1, "web_search_tool_result", tool_use_id="srvtoolu_9", content=[])
    fed, parts = await fed_in_memory(
        message(
            start(0, "hologram"),
            delta(0, "text_delta", text="not shown"),
            stop(0),
            lost,
            {"type": "weather"},
            {"type": "ping"},
            start(2, "text", text=""),
            delta(2, "smell_delta"),
            *text(3, "Hello"),
        )
    )
    assert words_of(parts) == ["Hello"]
    assert fed.unknown == {
        "content_block_start:hologram": 1,
        "web_search_tool_result without its call": 1,
        "weather": 1,
        "content_block_delta:smell_delta": 1,
    }


async def test_a_delta_without_its_start_opens_its_part() -> None:
    """Its words are worth more than the order."""
    _, parts = await fed_in_memory(
        [begun(), delta(0, "text_delta", text="Hi"), delta(1, "thinking_delta", thinking="?"), STOP]
    )
    assert (words_of(parts), words_of(parts, "reasoning")) == (["Hi"], ["?"])


def test_a_container_and_a_file_in_it_are_data() -> None:
    """For the agent, which can name the container in its next request."""
    heard = said(
        AnthropicReader(),
        begun(),
        start(0, "container_upload", file_id="file_1"),
        stop(0),
        *over(container={"id": "c"}),
    )
    assert Data("container_upload", {"file_id": "file_1"}) in heard
    assert Data("container", {"id": "c"}) in heard


async def test_a_message_that_came_whole_is_read_whole() -> None:
    """Some gateways send the content with the start."""
    content = [
        {"type": "text", "text": "All of it."},
        {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"a": 1}},
    ]
    fed, parts = await fed_in_memory([begun(content=content), *over("tool_use")])
    assert words_of(parts) == ["All of it."]
    assert [one.input for one in fed.calls] == [{"a": 1}]
