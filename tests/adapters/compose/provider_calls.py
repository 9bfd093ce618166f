"""Tool calls as providers know them: those that they run, and those of theirs that an agent runs."""

from __future__ import annotations

from msgspec import Struct

from midstream.protocol.values import Value


class OwnCall(Struct, frozen=True):
    """A call that a provider runs: what its reader keeps of it, and what went in and came out."""

    name: str
    provider: str
    own: dict[str, Value]
    input: Value = {}
    output: Value = {}


FOUND: Value = {
    "type": "web_search_result",
    "title": "A page",
    "url": "https://example.com/",
    "encrypted_content": "EqgC",
    "page_age": None,
}
PRINTED: Value = {
    "type": "bash_code_execution_result",
    "stdout": "1",
    "stderr": "",
    "return_code": 0,
    "content": [],
}
OWN_CALLS = [
    OwnCall("web_search", "anthropic", {"type": "server_tool_use"}, {"query": "q"}, []),
    OwnCall("web_search", "anthropic", {"type": "server_tool_use"}, {"query": "q"}, [FOUND]),
    OwnCall("bash_code_execution", "anthropic", {"type": "server_tool_use"}, {"command": "ls"}, PRINTED),
    OwnCall("new_tool_of_theirs", "anthropic", {"type": "server_tool_use"}),
    OwnCall(
        "web_search",
        "openai",
        {"type": "web_search_call", "item_id": "ws_1"},
        {"action": {"type": "search", "query": "q"}},
        {"status": "completed"},
    ),
    OwnCall(
        "code_interpreter",
        "openai",
        {"type": "code_interpreter_call", "item_id": "ci_1"},
        {"code": "1", "container_id": "cntr_1"},
        {"status": "completed", "outputs": [{"type": "logs", "logs": "1"}]},
    ),
    OwnCall(
        "file_search",
        "openai",
        {"type": "file_search_call", "item_id": "fs_1"},
        {"queries": ["q"]},
        {"status": "completed", "results": None},
    ),
    OwnCall("image_generation", "openai", {"type": "image_generation_call", "item_id": "ig_1"}),
    OwnCall(
        "mcp_list_tools",
        "openai",
        {"type": "mcp_list_tools", "item_id": "mcpl_1"},
        {"server_label": "zip"},
        {"tools": [{"name": "t", "input_schema": {}}]},
    ),
    OwnCall(
        "shorten",
        "openai",
        {"type": "mcp_call", "item_id": "mcp_1", "server_label": "zip", "approval_request_id": "mcpr_1"},
        {"url": "u"},
        {"status": "completed", "output": "ok"},
    ),
    OwnCall(
        "shorten", "openai", {"type": "mcp_approval_request", "item_id": "mcpr_1", "server_label": "zip"}
    ),
    OwnCall(
        "code_execution",
        "google",
        {"type": "executableCode", "id": "c1"},
        {"language": "PYTHON", "code": "1"},
        {"outcome": "OUTCOME_OK", "output": "1"},
    ),
    OwnCall("google_search_web", "google", {"type": "toolCall", "id": "t1"}, {"q": "x"}, {"r": "y"}),
    OwnCall("media_processing", "google", {"type": "toolCall", "id": "t2"}),
    OwnCall("web_search", "pydantic-ai", {"provider_name": "anthropic", "tool_kind": "x"}, {"q": "x"}, [1]),
    OwnCall("web_search", "pydantic-ai", {"provider_name": 7}, {"q": "x"}),
    OwnCall("web_search", "langchain", {"model_provider": "openai", "extras": {"a": 1}}, {"q": "x"}, "found"),
    OwnCall("web_search", "langchain", {"extras": 7}),
]
"""One of each kind that goes back, and some that do not."""
COMMANDS: Value = {"commands": ["ls"], "max_output_length": None}
EXECUTED: Value = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
AGENT_CALLS = [
    OwnCall("search", "google", {"id": "fc1", "thought_signature": "c2ln"}, {"q": "x"}),
    OwnCall("search", "openai", {"item_id": "fc_1", "namespace": "files"}, {"q": "x"}),
    OwnCall("search", "openai", {"type": "custom_tool_call", "namespace": "files"}, "free words", "found"),
    OwnCall("search", "openai", {"type": "custom_tool_call"}, "free words"),
    OwnCall(
        "local_shell",
        "openai",
        {"type": "local_shell_call", "item_id": "lsh_1"},
        {"type": "exec", "command": ["ls"], "env": {}},
        "a",
    ),
    OwnCall("shell", "openai", {"type": "shell_call"}, COMMANDS, EXECUTED),
    OwnCall(
        "shell",
        "openai",
        {"type": "shell_call", "environment": {"type": "local"}},
        COMMANDS,
        {"output": EXECUTED},
    ),
    OwnCall("shell", "openai", {"type": "shell_call"}, COMMANDS, "not in their form"),
    OwnCall("shell", "openai", {"type": "shell_call"}, COMMANDS, [{"stdout": "half"}]),
    OwnCall("apply_patch", "openai", {"type": "apply_patch_call"}, {"type": "delete_file", "path": "a"}),
    OwnCall("apply_patch", "openai", {"type": "apply_patch_call"}, {"type": "rename_file", "path": "a"}),
    OwnCall(
        "computer_use", "openai", {"type": "computer_call", "item_id": "cu_1"}, {"action": {"type": "wait"}}
    ),
    OwnCall("left_click", "anthropic", {"toolset_name": "computer"}, {"x": 1}),
]
"""What readers keep of calls that the agent has to run, with an input that fits, and an output that may."""
