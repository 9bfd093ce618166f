"""Tool calls of the Responses API: the agent's to run, and the provider's own."""

from __future__ import annotations

import json

import pytest

from tests.adapters.memory import fed_in_memory
from tests.adapters.openai_events import Plain, added, done, event, response


async def test_arguments_stream_and_are_ready_at_the_end_of_the_item() -> None:
    """The agent gets the call to run, and the item's id is kept for the next request."""
    item: Plain = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": ""}
    pieces = [event("function_call_arguments.delta", delta=piece) for piece in ('{"a"', ":1}")]
    whole = event("function_call_arguments.done", arguments='{"a":1}')
    stream = response(added(item), *pieces, whole, done({**item, "arguments": '{"a":1}'}))
    fed, parts = await fed_in_memory(stream)
    assert parts == [
        {
            "type": "tool",
            "tool_call_id": "c1",
            "tool_name": "add",
            "state": "ready",
            "input_text": '{"a":1}',
            "input": {"a": 1},
            "call_provider_metadata": {"openai": {"item_id": "fc_1"}},
        }
    ]
    assert [call.tool_call_id for call in fed.calls] == ["c1"]
    assert (fed.reason, fed.raw_reason) == ("tool-calls", "completed")


async def test_arguments_that_did_not_stream_are_taken_from_the_item() -> None:
    """Some speakers of this format send no deltas."""
    item: Plain = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a":1}'}
    _, parts = await fed_in_memory(response(done(item)))
    assert [(part["state"], part["input"]) for part in parts] == [("ready", {"a": 1})]


async def test_arguments_that_are_no_json_fail_the_call_and_are_kept() -> None:
    """As they were written."""
    item: Plain = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a'}
    fed, parts = await fed_in_memory(response(added(item), done(item)))
    assert [(part["state"], part["raw_input"]) for part in parts] == [("failed", '{"a')]
    assert (fed.calls, len(fed.invalid_calls)) == ([], 1)


async def test_the_input_of_a_custom_tool_is_text_and_never_parsed() -> None:
    """Even where it looks like JSON."""
    item: Plain = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sql", "input": "{"}
    pieces = [event("custom_tool_call_input.delta", delta="{")]
    fed, parts = await fed_in_memory(response(added(item), *pieces, done(item)))
    assert [(part["state"], part["input"], part["input_text"]) for part in parts] == [("ready", "{", "{")]
    assert len(fed.calls) == 1


ACTION = {"commands": ["ls", 'echo "é"'], "timeout_ms": None, "max_output_length": 9}
OPERATION = {"path": "a.md", "type": "create_file", "diff": '+"one"\n+two\n'}
CLIENT: dict[str, tuple[Plain, Plain, list[Plain], str, object]] = {
    "shell": (
        {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": []}},
        {"action": ACTION},
        [
            event("shell_call_command.added", command=""),
            event("shell_call_command.delta", delta="l"),
            event("shell_call_command.delta", delta="s"),
            event("shell_call_command.done", command="ls"),
            event("shell_call_command.added", command=""),
            event("shell_call_command.delta", delta='echo "é'),
            event("shell_call_command.delta", delta='"'),
        ],
        json.dumps({"commands": ACTION["commands"]}, ensure_ascii=False, separators=(",", ":")),
        ACTION,
    ),
    "apply_patch": (
        {
            "type": "apply_patch_call",
            "id": "apc_1",
            "call_id": "c1",
            "operation": {**OPERATION, "diff": ""},
        },
        {"operation": OPERATION},
        [
            event("apply_patch_call_operation_diff.delta", delta='+"on'),
            event("apply_patch_call_operation_diff.delta", delta='e"\n+two\n'),
            event("apply_patch_call_operation_diff.done", diff=OPERATION["diff"]),
        ],
        json.dumps(OPERATION, separators=(",", ":")),
        OPERATION,
    ),
    "local_shell": (
        {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "action": {"command": ["ls"]}},
        {},
        [],
        "",
        {"command": ["ls"]},
    ),
    "computer_use": (
        {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "wait"}},
        {},
        [],
        "",
        {"action": {"type": "wait"}},
    ),
}


@pytest.mark.parametrize("name", CLIENT)
async def test_tools_of_the_provider_that_run_here_are_the_agents_to_run(name: str) -> None:
    """Their arguments stream as JSON like any others, and their type is kept for the next request."""
    begun, ended, events, input_text, given = CLIENT[name]
    fed, parts = await fed_in_memory(response(added(begun), *events, done({**begun, **ended})))
    (part,) = parts
    assert (part["tool_name"], part["state"], part["input"]) == (name, "ready", given)
    assert part["input_text"] == input_text
    metadata = {"openai": {"item_id": begun["id"], "type": begun["type"]}}
    assert part["call_provider_metadata"] == metadata
    assert "provider_executed" not in part
    assert [call.tool_call_id for call in fed.calls] == ["c1"]


CODE = 'print("é")\n'
HOSTED: dict[str, tuple[Plain, list[Plain], Plain, Plain]] = {
    "web_search": (
        {"type": "web_search_call", "action": {"type": "search", "query": "q"}},
        [event("web_search_call.in_progress"), event("web_search_call.searching")],
        {"action": {"type": "search", "query": "q"}},
        {"status": "completed"},
    ),
    "file_search": (
        {"type": "file_search_call", "queries": ["q"], "results": [{"file_id": "f"}]},
        [event("file_search_call.searching")],
        {"queries": ["q"]},
        {"status": "completed", "results": [{"file_id": "f"}]},
    ),
    "code_interpreter": (
        {"type": "code_interpreter_call", "container_id": "k", "code": CODE, "outputs": [{"logs": "é"}]},
        [
            event("code_interpreter_call_code.delta", delta='print("'),
            event("code_interpreter_call_code.delta", delta='é")\n'),
            event("code_interpreter_call_code.done", code=CODE),
            event("code_interpreter_call.interpreting"),
        ],
        {"code": CODE, "container_id": "k"},
        {"status": "completed", "outputs": [{"logs": "é"}]},
    ),
    "mcp_list_tools": (
        {"type": "mcp_list_tools", "server_label": "m", "tools": [{"name": "t"}]},
        [event("mcp_list_tools.in_progress")],
        {"server_label": "m"},
        {"status": "completed", "tools": [{"name": "t"}]},
    ),
    "tool_search": (
        {"type": "tool_search_call", "arguments": {"q": 1}, "execution": "server"},
        [],
        {"arguments": {"q": 1}, "execution": "server"},
        {"status": "completed"},
    ),
}


@pytest.mark.parametrize("name", HOSTED)
async def test_a_tool_that_the_provider_runs_is_complete_with_its_output(name: str) -> None:
    """Nothing is left to run; type, id, input and output are the whole item again."""
    fields, events, given, output = HOSTED[name]
    begun: Plain = {"id": "x_1", "status": "in_progress", **fields}
    begun = {key: value for key, value in begun.items() if key not in {"code", "outputs"}}
    item: Plain = {**fields, "id": "x_1", "status": "completed"}
    fed, parts = await fed_in_memory(response(added(begun), *events, done(item)))
    (part,) = parts
    assert (part["tool_name"], part["state"], part["provider_executed"]) == (name, "completed", True)
    assert (part["input"], part["output"]) == (given, output)
    assert part["call_provider_metadata"] == {"openai": {"item_id": "x_1", "type": item["type"]}}
    assert {"id": "x_1", "type": item["type"], **given, **output} == item
    assert (fed.calls, fed.reason, fed.unknown) == ([], "stop", {})


async def test_the_code_that_runs_streams_as_json() -> None:
    """As the arguments of any other tool."""
    fields, events, *_ = HOSTED["code_interpreter"]
    begun: Plain = {"id": "ci_1", "type": "code_interpreter_call", "container_id": "k", "code": ""}
    _, parts = await fed_in_memory(response(added(begun), *events, done({**begun, **fields})))
    assert json.loads(str(parts[0]["input_text"])) == {"code": CODE}


MCP: Plain = {"type": "mcp_call", "id": "mcp_1", "name": "shorten", "server_label": "zip", "arguments": ""}


async def test_a_call_of_an_mcp_server_is_dynamic_and_the_providers_own() -> None:
    """Nobody here has offered that tool by name."""
    pieces = [event("mcp_call_arguments.delta", delta=piece) for piece in ('{"u":', "1}")]
    item: Plain = {**MCP, "arguments": '{"u":1}', "output": "done", "approval_request_id": "mcpr_1"}
    fed, parts = await fed_in_memory(response(added(MCP), *pieces, done(item)))
    (part,) = parts
    assert (part["tool_name"], part["title"], part["state"]) == ("shorten", "zip", "completed")
    assert (part["input"], part["output"]) == ({"u": 1}, {"output": "done"})
    assert (part["dynamic"], part["provider_executed"]) == (True, True)
    assert fed.calls == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("No route.", "No route."),
        ({"type": "http_error", "code": 500, "message": "No route."}, "No route."),
        ({"type": "mcp_tool_execution_error", "content": [{"text": "a"}, {"text": "b"}]}, "a\nb"),
        ({"type": "odd", "code": 7}, '{"type": "odd", "code": 7}'),
        (None, "The provider's shorten failed."),
    ],
)
async def test_a_call_that_failed_at_the_provider_has_failed_here(error: object, told: str) -> None:
    """With its words, where it gave some."""
    item: Plain = {**MCP, "arguments": "{}", "error": error, "status": "failed"}
    _, parts = await fed_in_memory(response(added(MCP), done(item)))
    assert [(part["state"], part["error"]) for part in parts] == [("failed", told)]


async def test_a_call_that_the_provider_cut_short_has_failed() -> None:
    """Its response was incomplete."""
    begun: Plain = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
    _, parts = await fed_in_memory(response(added(begun), done({**begun, "status": "incomplete"})))
    expected = ("failed", "The provider's web_search was cut short.")
    assert [(part["state"], part["error"]) for part in parts] == [expected]


async def test_a_call_that_the_provider_asks_about_waits_for_a_person() -> None:
    """The agent learns which, and by which id the answer goes back."""
    item: Plain = {**MCP, "type": "mcp_approval_request", "id": "mcpr_1", "arguments": '{"u":1}'}
    fed, parts = await fed_in_memory(response(added(item), done(item)))
    (part,) = parts
    assert (part["state"], part["input"], part["provider_executed"]) == ("ready", {"u": 1}, True)
    assert [(call.tool_call_id, approval_id) for call, approval_id in fed.approvals] == [("mcpr_1", "mcpr_1")]
    assert (fed.calls, fed.wants_results) == ([], True)


async def test_a_picture_is_a_file_and_not_an_output() -> None:
    """It stands once, as what people look at."""
    begun: Plain = {"type": "image_generation_call", "id": "ig_1", "status": "in_progress"}
    item: Plain = {**begun, "status": "completed", "output_format": "webp", "result": "AAAA"}
    partial = event("image_generation_call.partial_image", partial_image_b64="AA")
    _, parts = await fed_in_memory(response(added(begun), partial, done(item)))
    tool, file = parts
    assert tool["output"] == {"status": "completed", "output_format": "webp"}
    assert (file["url"], file["media_type"]) == ("data:image/webp;base64,AAAA", "image/webp")


async def test_pictures_that_code_made_are_files() -> None:
    """Beside what it printed."""
    outputs = [{"type": "logs", "logs": "1"}, {"type": "image", "url": "https://i.example/a.png"}]
    item: Plain = {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": outputs}
    _, parts = await fed_in_memory(response(added(item), done(item)))
    assert [part.get("url") for part in parts] == [None, "https://i.example/a.png"]


async def test_an_output_that_comes_as_an_item_ends_its_call() -> None:
    """A shell in the provider's own container: nothing is left for the agent."""
    begun: Plain = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c1",
        "environment": {"type": "container_reference"},
        "action": {"commands": ["ls"]},
    }
    output: Plain = {"type": "shell_call_output", "id": "so_1", "call_id": "c1", "output": [{"stdout": "a"}]}
    stream = [added(begun), done(begun), added(output, 1), done(output, 1)]
    fed, parts = await fed_in_memory(response(*stream))
    (part,) = parts
    assert (part["state"], part["output"]) == ("completed", {"output": [{"stdout": "a"}]})
    assert (part["provider_executed"], fed.calls, fed.unknown) == (True, [], {})
