"""What a step is in Anthropic's form: its blocks, and the results of the calls that the agent ran (pure)."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.adapters.compose import metadata
from midstream.adapters.compose.dialogue import AgentSaid, Call
from midstream.adapters.compose.identifiers import CallIds, legal_name
from midstream.protocol.model import ReasoningPart, TextPart

if TYPE_CHECKING:
    from midstream.adapters.compose.dialogue import Spoken
    from midstream.protocol.values import Value

    Block = dict[str, Value]

PROVIDER = "anthropic"
ILLEGAL = r"[^a-zA-Z0-9_-]"
LONGEST_ID = 256
LONGEST_NAME = 128
THINKING = {"redacted_thinking", "thinking"}
CITATION = ("type", "cited_text", "encrypted_index", "title", "url")
"""Fields of a citation of a searched page. Only these go back: others count documents of an older request."""
RESULTS = {
    "bash_code_execution": "bash_code_execution_tool_result",
    "code_execution": "code_execution_tool_result",
    "text_editor_code_execution": "text_editor_code_execution_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "web_fetch": "web_fetch_tool_result",
    "web_search": "web_search_tool_result",
}
"""The provider's own tools, and the kind of block that each one's result is."""
COMMON_ERRORS = {"invalid_tool_input", "too_many_requests", "unavailable"}
ERRORS = {
    "bash_code_execution": {"execution_time_exceeded", "output_file_too_large"},
    "code_execution": {"execution_time_exceeded"},
    "text_editor_code_execution": {"execution_time_exceeded", "file_not_found"},
    "tool_search_tool_bm25": {"execution_time_exceeded"},
    "tool_search_tool_regex": {"execution_time_exceeded"},
    "web_fetch": {"max_uses_exceeded", "unsupported_content_type", "url_not_accessible", "url_not_allowed"},
    "web_search": {"max_uses_exceeded", "query_too_long", "request_too_large"},
}
"""Codes that a tool's error may have beside the common ones; any other error becomes ``unavailable``."""


def agent_blocks(
    said: AgentSaid, ids: CallIds, *, pauses: bool
) -> tuple[list[Block], list[tuple[str, Call]]]:
    """Return the blocks of a step, and its calls that want a result, each with its id.

    ``pauses`` says that nothing follows the step: calls of the provider's own at its end that are still
    open then stay so, for the provider to go on with (its ``pause_turn``).
    """
    blocks: list[Block] = []
    calls: list[tuple[str, Call]] = []
    last = (
        len(said.parts) - len(list(takewhile(_is_open, reversed(said.parts)))) if pauses else len(said.parts)
    )
    for place, part in enumerate(said.parts):
        if isinstance(part, TextPart):
            _text(blocks, part)
        elif isinstance(part, ReasoningPart):
            blocks += _thinking(part)
        elif isinstance(part, Call) and part.part.provider_executed:
            blocks += _own_call(part, ids, pauses=place >= last)
        elif isinstance(part, Call):
            call_id = ids.of(part.part)
            blocks.append(_tool_use(call_id, part))
            calls.append((call_id, part))
    while blocks and blocks[-1]["type"] in THINKING:
        blocks.pop()  # no answer may end with thinking
    return blocks, calls


def _is_open(part: Spoken) -> bool:
    ended = {"completed", "failed"}
    return isinstance(part, Call) and bool(part.part.provider_executed) and part.part.state not in ended


def result_block(call_id: str, call: Call) -> Block:
    """Return the result of a call that the agent ran."""
    failed: Block = {"is_error": True} if call.result.failed else {}
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": call.result.text,
        **failed,
        **_toolset(call),
    }


def _text(blocks: list[Block], part: TextPart) -> None:
    if not part.text.strip():
        if blocks and blocks[-1]["type"] == "text":  # a blank block is refused, but it keeps sentences apart
            blocks[-1] = {**blocks[-1], "text": f"{blocks[-1]['text']}{part.text}"}
        return
    block: Block = {"type": "text", "text": part.text}
    given = metadata.of(part.provider_metadata, PROVIDER).get("citations")
    citations: list[Value] = [
        {name: citation.get(name) for name in CITATION}
        for citation in (given if isinstance(given, list) else [])
        if isinstance(citation, dict) and citation.get("type") == "web_search_result_location"
    ]
    blocks.append({**block, "citations": citations} if citations else block)


def _thinking(part: ReasoningPart) -> list[Block]:
    own = metadata.of(part.provider_metadata, PROVIDER)
    redacted, signature = metadata.words(own, "redacted_data"), metadata.words(own, "signature")
    if redacted:
        return [{"type": "redacted_thinking", "data": redacted}]
    return [{"type": "thinking", "thinking": part.text, "signature": signature}] if signature else []


def _tool_use(call_id: str, call: Call) -> Block:
    name = legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME)
    return {"type": "tool_use", "id": call_id, "name": name, "input": call.arguments, **_toolset(call)}


def _toolset(call: Call) -> Block:
    name = metadata.words(metadata.of(call.part.call_provider_metadata, PROVIDER), "toolset_name")
    return {"toolset_name": name} if name else {}


def _own_call(call: Call, ids: CallIds, *, pauses: bool) -> list[Block]:
    """Return a call of the provider's own and its result; nothing where it was another provider's."""
    own = metadata.of(call.part.call_provider_metadata, PROVIDER)
    kind, name = metadata.words(own, "type"), call.part.tool_name
    server = metadata.words(own, "server_name")
    if call.part.input is UNSET or not (
        (kind == "server_tool_use" and name in RESULTS) or (kind == "mcp_tool_use" and server)
    ):
        return []
    call_id = ids.of(call.part)
    use: Block = {"type": kind, "id": call_id, "name": name, "input": call.arguments}
    if server:
        use["server_name"] = server
    if pauses:
        return [use]
    result = _mcp_result(call) if kind == "mcp_tool_use" else _own_result(call)
    return [use, {**result, "tool_use_id": call_id}]


def _own_result(call: Call) -> Block:
    name, output = call.part.tool_name, call.result.output
    kind = RESULTS[name]
    if not call.result.failed and isinstance(output, (dict, list)):
        return {"type": kind, "content": output}
    code = "" if call.part.error is UNSET else call.part.error
    code = code if code in COMMON_ERRORS | ERRORS[name] else "unavailable"
    return {"type": kind, "content": {"type": f"{kind}_error", "error_code": code}}


def _mcp_result(call: Call) -> Block:
    output = call.result.output
    content: Value = output if isinstance(output, list) else [{"type": "text", "text": call.result.text}]
    return {"type": "mcp_tool_result", "is_error": call.result.failed, "content": content}
