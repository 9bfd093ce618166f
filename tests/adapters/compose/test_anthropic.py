"""What is composed for Anthropic: legal whatever happened, and true to the conversation."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from anthropic.types import MessageParam
from hypothesis import given
from msgspec import UNSET, structs

from midstream.adapters.compose import compose
from midstream.protocol.model import FilePart, Message, ReasoningPart, TextPart, ToolPart
from tests.adapters.compose.histories import CITATION, histories, said
from tests.adapters.compose.real_types import exact

TYPE = exact(list[MessageParam])


@given(histories())
def test_every_history_becomes_legal_messages(history: list[Message]) -> None:
    """The library's types take them, roles alternate, and a step's results begin the message behind it."""
    messages: list[dict[str, Any]] = [dict(message) for message in compose(history, "anthropic")]
    TYPE.validate_python(messages)
    roles = [message["role"] for message in messages]
    assert roles == [("user", "assistant")[number % 2] for number in range(len(roles))]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        assert blocks
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert results == waiting
        assert all(block["type"] == "tool_result" for block in blocks[: len(waiting)])
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        ids = [block["id"] for block in blocks if block["type"] in {"server_tool_use", "tool_use"}]
        assert all(re.fullmatch("[a-zA-Z0-9_-]+", one) for one in ids)
        assert len({*ids, *seen}) == len(ids) + len(seen)
        seen.update(ids)
    assert not waiting


@given(histories())
def test_no_block_is_one_that_the_api_refuses(history: list[Message]) -> None:
    """No blank text, no thinking at an end, no tool of the provider's own without its result."""
    messages: list[dict[str, Any]] = [dict(message) for message in compose(history, "anthropic")]
    for message in messages:
        blocks = message["content"]
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        if message["role"] == "assistant":
            assert blocks[-1]["type"] not in {"redacted_thinking", "thinking"}
        ends = [*blocks, {"type": "end"}] if message is messages[-1] else [*blocks, {"type": "more"}]
        open_call = False
        for block, following in pairwise(ends):
            assert not open_call or block["type"] == "server_tool_use"
            if block["type"] == "server_tool_use":
                open_call = following.get("tool_use_id") != block["id"]
                assert not open_call or following["type"] in {"end", "server_tool_use"}
    if messages and messages[-1]["role"] == "assistant":
        assert not messages[-1]["content"][-1].get("text", "").endswith((" ", "\n"))


def test_thinking_goes_back_unchanged_before_the_call_it_led_to() -> None:
    """Its signature covers it; what was cut before the signature came cannot go back."""
    cut = ReasoningPart(text="Ho", state="done")
    whole = ReasoningPart(text=" Hm.\n", state="done", provider_metadata={"anthropic": {"signature": "sig"}})
    hidden = ReasoningPart(text="", state="done", provider_metadata={"anthropic": {"redacted_data": "Em"}})
    call = ToolPart(tool_call_id="toolu_1", tool_name="t", state="completed", input={"a": 1}, output={"b": 2})
    messages = compose(
        [said("user", TextPart(text="Go.")), said("agent", cut, whole, hidden, call)], "anthropic"
    )
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": " Hm.\n", "signature": "sig"},
                {"type": "redacted_thinking", "data": "Em"},
                {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"b":2}'}],
        },
    ]


def test_citations_of_searched_pages_go_back_and_a_blank_text_joins_its_neighbour() -> None:
    """The index of a page is wanted again; a text of white space alone would be refused."""
    cited = TextPart(
        text="So it is.", state="done", provider_metadata={"anthropic": {"citations": [CITATION]}}
    )
    parts = (cited, TextPart(text="\n", state="done"), TextPart(text="Indeed. ", state="done"))
    _, message = compose([said("user", TextPart(text="?")), said("agent", *parts)], "anthropic")
    citation = {
        "type": "web_search_result_location",
        "cited_text": "so it is",
        "encrypted_index": "Eo8B",
        "title": None,
        "url": "https://example.com/",
    }
    assert message["content"] == [
        {"type": "text", "text": "So it is.\n", "citations": [citation]},
        {"type": "text", "text": "Indeed."},
    ]


def test_a_tool_of_the_provider_that_paused_goes_back_open_and_one_that_was_stopped_does_not() -> None:
    """An open call at the end is what ``pause_turn`` wants; anywhere else it has a result."""
    search = ToolPart(
        tool_call_id="srvtoolu_1",
        tool_name="web_search",
        state="ready",
        input={"query": "q"},
        call_provider_metadata={"anthropic": {"type": "server_tool_use"}},
        provider_executed=True,
    )
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    error = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": error}
    asked, more = said("user", TextPart(text="?")), said("user", TextPart(text="And?"), sequence=3)
    assert compose([asked, said("agent", search)], "anthropic")[1]["content"] == [use]
    words = TextPart(text="Well.", state="done")
    followed = compose([asked, said("agent", search, words)], "anthropic")[1]["content"]
    assert followed == [use, result, {"type": "text", "text": "Well."}]
    assert compose([asked, said("agent", search), more], "anthropic")[1]["content"] == [use, result]


def test_pictures_and_documents_have_their_own_blocks() -> None:
    """What the API takes no file of is said in words."""
    files = (
        FilePart(url="data:image/png;base64,AAEC", media_type="image/png"),
        FilePart(url="https://h/a.jpg", media_type="image/jpg"),
        FilePart(url="https://h/a.pdf", media_type="application/pdf", filename="a.pdf"),
        FilePart(url="data:text/csv,a%2Cb", media_type="text/csv", filename="a.csv"),
        FilePart(url="data:application/zip;base64,AAEC", media_type="application/zip", filename="a.zip"),
    )
    (message,) = compose([said("user", *files)], "anthropic")
    assert message["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
        {"type": "image", "source": {"type": "url", "url": "https://h/a.jpg"}},
        {"type": "document", "source": {"type": "url", "url": "https://h/a.pdf"}, "title": "a.pdf"},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "a,b"},
            "title": "a.csv",
        },
        {"type": "text", "text": "[Attached file, whose content is not shown: a.zip, application/zip]"},
    ]


def test_a_tool_of_a_server_of_tools_goes_back_with_its_result_or_its_failure() -> None:
    """In the forms of the beta API, which has them."""
    call = ToolPart(
        tool_call_id="mcptoolu_1",
        tool_name="echo",
        state="completed",
        input={"a": 1},
        output=[{"type": "text", "text": "1"}],
        call_provider_metadata={"anthropic": {"type": "mcp_tool_use", "server_name": "files"}},
        provider_executed=True,
    )
    failed = structs.replace(call, state="failed", output=UNSET, error="No.")
    asked = said("user", TextPart(text="?"))
    use = {
        "type": "mcp_tool_use",
        "id": "mcptoolu_1",
        "name": "echo",
        "server_name": "files",
        "input": {"a": 1},
    }
    for part, is_error, words in ((call, False, "1"), (failed, True, "No.")):
        content = [{"type": "text", "text": words}]
        result = {
            "type": "mcp_tool_result",
            "is_error": is_error,
            "content": content,
            "tool_use_id": "mcptoolu_1",
        }
        assert compose([asked, said("agent", part)], "anthropic")[1]["content"] == [use, result]
