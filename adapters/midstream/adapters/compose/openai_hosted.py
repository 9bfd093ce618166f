"""Calls that OpenAI ran itself, as the items that they were (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET

from midstream.adapters.compose import metadata
from midstream.adapters.compose.attachments import attachment_of
from midstream.adapters.compose.openai_calls import PROVIDER
from midstream.adapters.compose.results import as_json

if TYPE_CHECKING:
    from midstream.adapters.compose.dialogue import Call
    from midstream.protocol.model import FilePart
    from midstream.protocol.values import Value

    Item: TypeAlias = dict[str, Value]

WANTED = {
    "code_interpreter_call": {"code", "container_id", "outputs"},
    "file_search_call": {"queries"},
    "image_generation_call": {"result"},
    "mcp_list_tools": {"server_label", "tools"},
    "web_search_call": {"action"},
}
"""What an item must have to go back, by its type: it was whole when it came, but may have been cut since."""


def hosted_items(call: Call, files: list[FilePart]) -> list[Item]:
    """Return the item of a call that OpenAI ran; none where it did not complete, or was another provider's.

    ``files`` are those of the step: a picture that a call made stands there. A call that waits for a
    person goes back with what the person decided.
    """
    part = call.part
    own = metadata.of(part.call_provider_metadata, PROVIDER)
    kind, item_id = metadata.words(own, "type"), metadata.words(own, "item_id")
    if not item_id or part.input is UNSET:
        return []
    if kind == "mcp_approval_request":
        return _approval(call, own, item_id)
    if kind == "mcp_call":
        return _mcp_call(call, own, item_id)
    output = call.result.output
    if part.state != "completed" or not isinstance(output, dict):
        return []
    item: Item = {"type": kind, "id": item_id, **call.arguments, **output}
    if kind == "image_generation_call":
        item["result"] = _picture(files, item_id)
    if kind != "mcp_list_tools":
        item["status"] = "completed"
    wanted = WANTED.get(kind)
    return [] if wanted is None or any(item.get(name) is None for name in wanted) else [item]


def _picture(files: list[FilePart], item_id: str) -> str | None:
    """Return the picture that the call made, in base64."""
    for file in files:
        content = attachment_of(file)
        if content.content and metadata.of(file.provider_metadata, PROVIDER).get("item_id") == item_id:
            return content.base64
    return None


def _approval(call: Call, own: Item, item_id: str) -> list[Item]:
    if call.approved is None:
        return []
    request: Item = {
        "type": "mcp_approval_request",
        "id": item_id,
        "name": call.part.tool_name,
        "server_label": metadata.words(own, "server_label"),
        "arguments": as_json(call.arguments),
    }
    answer: Item = {
        "type": "mcp_approval_response",
        "approval_request_id": item_id,
        "approve": call.approved,
    }
    return [request, answer if call.approved else {**answer, "reason": call.result.text}]


def _mcp_call(call: Call, own: Item, item_id: str) -> list[Item]:
    output = call.result.output
    answered = output.get("output") if isinstance(output, dict) else None
    if call.part.state not in {"completed", "failed"}:
        return []
    item: Item = {
        "type": "mcp_call",
        "id": item_id,
        "name": call.part.tool_name,
        "server_label": metadata.words(own, "server_label"),
        "arguments": as_json(call.arguments),
    }
    if request := metadata.words(own, "approval_request_id"):
        item["approval_request_id"] = request
    if call.result.failed:
        # the form in which MCP itself says that a tool failed: content, as of an output
        said: Item = {"type": "text", "text": call.result.text}
        error: Item = {"type": "mcp_tool_execution_error", "content": [said]}
        return [{**item, "status": "failed", "error": error}]
    return [{**item, "status": "completed", "output": answered if isinstance(answered, str) else None}]
