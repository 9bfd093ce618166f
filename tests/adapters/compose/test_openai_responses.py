"""What is composed for the Responses API: legal whatever happened, and true to the conversation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from msgspec import UNSET, structs
from openai.types.responses import ResponseInputItemParam

from midstream.adapters.compose import compose
from midstream.protocol.model import (
    ApprovalResponse,
    FilePart,
    InteractionPart,
    InteractionRequest,
    Message,
    ProviderMetadata,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolState,
)
from tests.adapters.compose.histories import histories, said
from tests.adapters.compose.provider_calls import AGENT_CALLS, OwnCall
from tests.adapters.compose.real_types import exact

TYPE = exact(list[ResponseInputItemParam])
OUTPUTS = {
    "apply_patch_call_output": "apply_patch_call",
    "custom_tool_call_output": "custom_tool_call",
    "function_call_output": "function_call",
    "local_shell_call_output": "local_shell_call",
    "shell_call_output": "shell_call",
}
ENCRYPTED: ProviderMetadata = {"openai": {"item_id": "rs_1", "encrypted_content": "gAAA"}}
SEARCH = ToolPart(
    tool_call_id="ws_1",
    tool_name="web_search",
    state="completed",
    input={"action": {"type": "search", "query": "q"}},
    output={"status": "completed"},
    call_provider_metadata={"openai": {"type": "web_search_call", "item_id": "ws_1"}},
    provider_executed=True,
)


@given(histories())
def test_every_history_becomes_legal_items(history: list[Message]) -> None:
    """The library's types take them; outputs stand behind their step, in the order of its calls."""
    items: list[dict[str, Any]] = [dict(item) for item in compose(history, "openai-responses")]
    TYPE.validate_python(items)
    waiting: list[tuple[str, str]] = []
    seen: set[str] = set()
    answering = False
    for item in items:
        if item["type"] in OUTPUTS:
            call_id = item["id"] if item["type"] == "local_shell_call_output" else item["call_id"]
            assert (OUTPUTS[item["type"]], call_id) == waiting.pop(0)
            answering = True
            continue
        assert not (waiting and (answering or item.get("role") == "user"))
        answering = False
        if item["type"] in OUTPUTS.values():
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            waiting.append((item["type"], item["call_id"]))
    assert not waiting


@given(histories())
def test_reasoning_never_stands_alone(history: list[Message]) -> None:
    """It is followed by what it led to, which is the model's own."""
    items: list[dict[str, Any]] = [dict(item) for item in compose(history, "openai-responses")]
    for item, following in pairwise([*items, {"type": "nothing"}]):
        if item["type"] == "reasoning":
            assert item["encrypted_content"]
            assert following["type"] not in {*OUTPUTS, "nothing"}
            assert following.get("role") != "user"


def test_the_summaries_of_a_reasoning_are_one_item() -> None:
    """Each was a part to be read; the last one has what goes back."""
    first = ReasoningPart(text="One.", state="done", provider_metadata={"openai": {"item_id": "rs_1"}})
    last = ReasoningPart(text="Two.", state="done", provider_metadata=ENCRYPTED)
    items = compose([said("agent", first, last, TextPart(text="So.", state="done"))], "openai-responses")
    assert items == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
            "encrypted_content": "gAAA",
        },
        {"type": "message", "role": "assistant", "content": "So."},
    ]


def test_a_hosted_tool_goes_back_only_where_its_reasoning_does() -> None:
    """The API refuses one that stands without the reasoning it was stored with."""
    whole = ReasoningPart(text="", state="done", provider_metadata=ENCRYPTED)
    bare = ReasoningPart(text="", state="done", provider_metadata={"openai": {"item_id": "rs_1"}})
    kinds = [
        [dict(item)["type"] for item in compose([said("agent", *parts)], "openai-responses")]
        for parts in ((whole, SEARCH), (bare, SEARCH), (SEARCH,))
    ]
    assert kinds == [["reasoning", "web_search_call"], [], ["web_search_call"]]


def test_a_decision_about_a_hosted_call_goes_back_with_the_request() -> None:
    """An undecided request is left out: the API would wait for ever."""
    request = ToolPart(
        tool_call_id="mcpr_1",
        tool_name="shorten",
        state="waiting-user",
        input={"url": "u"},
        call_provider_metadata={
            "openai": {"type": "mcp_approval_request", "item_id": "mcpr_1", "server_label": "zip"}
        },
        provider_executed=True,
    )
    refused = InteractionPart(
        interaction_id="i",
        interaction_type="approval",
        status="resolved",
        request=InteractionRequest(title="Shorten?"),
        response=ApprovalResponse(decision="denied", reason="Not this one."),
        tool_call_id="mcpr_1",
    )
    assert compose([said("agent", request)], "openai-responses") == []
    _, answer = compose([said("agent", request, refused)], "openai-responses")
    assert answer == {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": False,
        "reason": "A person denied this call. Not this one.",
    }


def test_a_picture_goes_back_with_the_call_that_made_it() -> None:
    """It was kept as a file for people to see."""
    call = ToolPart(
        tool_call_id="ig_1",
        tool_name="image_generation",
        state="completed",
        input={},
        output={"status": "completed"},
        call_provider_metadata={"openai": {"type": "image_generation_call", "item_id": "ig_1"}},
        provider_executed=True,
    )
    picture = FilePart(
        url="data:image/png;base64,AAEC",
        media_type="image/png",
        provider_metadata={"openai": {"item_id": "ig_1"}},
    )
    assert compose([said("agent", call, picture)], "openai-responses") == [
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAEC"}
    ]
    assert compose([said("agent", call)], "openai-responses") == []


@pytest.mark.parametrize("known", AGENT_CALLS, ids=lambda known: str(known.own.get("type", known.provider)))
@pytest.mark.parametrize("state", ["completed", "failed", "running"])
def test_a_tool_that_the_api_defines_goes_back_in_its_own_form(known: OwnCall, state: ToolState) -> None:
    """Where its input has that form; else as the call of a function, which any input fits."""
    call = ToolPart(
        tool_call_id="call_1",
        tool_name=known.name,
        state=state,
        input=known.input,
        output=UNSET if state == "failed" else known.output,
        error="No." if state == "failed" else UNSET,
        call_provider_metadata={known.provider: known.own},
    )
    one, two = (dict(item) for item in compose([said("agent", call)], "openai-responses"))
    TYPE.validate_python([one, two])
    kind = known.own.get("type") if known.provider == "openai" else None
    fits = kind in OUTPUTS.values() and known.input != {"type": "rename_file", "path": "a"}
    assert one["type"] == (kind if fits else "function_call")
    assert OUTPUTS[str(two["type"])] == one["type"]


def test_a_call_of_a_server_of_tools_goes_back_with_its_output_or_its_failure() -> None:
    """The provider ran it; nobody else could."""
    own: ProviderMetadata = {"openai": {"type": "mcp_call", "item_id": "mcp_1", "server_label": "zip"}}
    call = ToolPart(
        tool_call_id="mcp_1",
        tool_name="shorten",
        state="completed",
        input={"url": "u"},
        output={"status": "completed", "output": "short"},
        call_provider_metadata=own,
        provider_executed=True,
    )
    failed = structs.replace(call, state="failed", output=UNSET, error="No such server.")
    item = {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "shorten",
        "server_label": "zip",
        "arguments": '{"url":"u"}',
    }
    assert compose([said("agent", call)], "openai-responses") == [
        {**item, "status": "completed", "output": "short"}
    ]
    said_of_it = {
        "type": "mcp_tool_execution_error",
        "content": [{"type": "text", "text": "No such server."}],
    }
    composed = compose([said("agent", failed)], "openai-responses")
    assert composed == [{**item, "status": "failed", "error": said_of_it}]
    TYPE.validate_python(composed)
