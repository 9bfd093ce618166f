"""Calls that the agent ran, as items of the Responses API: of functions, and of the API's tools (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET

from midstream.adapters.compose import metadata
from midstream.adapters.compose.identifiers import legal_name
from midstream.adapters.compose.results import as_json

if TYPE_CHECKING:
    from midstream.adapters.compose.dialogue import Call
    from midstream.protocol.values import Value

    Item: TypeAlias = dict[str, Value]
    Pair: TypeAlias = tuple[Item, Item]

PROVIDER = "openai"
ILLEGAL = r"[^a-zA-Z0-9_-]"
LONGEST_NAME = 64


def call_items(call: Call, call_id: str) -> Pair:
    """Return a call and its output. What does not fit the form of its tool goes as that of a function."""
    own = metadata.of(call.part.call_provider_metadata, PROVIDER)
    form = FORMS.get(metadata.words(own, "type"))
    pair = None if form is None or call.part.input is UNSET else form(call, call_id, own)
    return pair or _function(call, call_id, own)


def _function(call: Call, call_id: str, own: Item) -> Pair:
    item: Item = {
        "type": "function_call",
        "call_id": call_id,
        "name": legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME),
        "arguments": as_json(call.arguments),
    }
    namespace = metadata.words(own, "namespace")
    if namespace:
        item["namespace"] = namespace
    return item, {"type": "function_call_output", "call_id": call_id, "output": _words(call)}


def _words(call: Call) -> str:
    return f"Error: {call.result.text}" if call.result.failed else call.result.text


def _custom(call: Call, call_id: str, own: Item) -> Pair | None:
    given = call.part.input
    if not isinstance(given, str):
        return None
    name = legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME)
    item: Item = {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": given}
    namespace = metadata.words(own, "namespace")
    if namespace:
        item["namespace"] = namespace
    return item, {"type": "custom_tool_call_output", "call_id": call_id, "output": _words(call)}


def _local_shell(call: Call, call_id: str, own: Item) -> Pair | None:
    item_id = metadata.words(own, "item_id")
    action = call.part.input
    if not item_id or not isinstance(action, dict) or action.get("type") != "exec":
        return None
    item: Item = {"type": "local_shell_call", "id": item_id, "call_id": call_id, "action": action}
    output: Item = {"type": "local_shell_call_output", "id": call_id, "output": _words(call)}
    return {**item, "status": "completed"}, output


def _shell(call: Call, call_id: str, own: Item) -> Pair | None:
    action = call.part.input
    if not isinstance(action, dict) or not isinstance(action.get("commands"), list):
        return None
    item: Item = {"type": "shell_call", "call_id": call_id, "action": action, "status": "completed"}
    environment = own.get("environment")
    if isinstance(environment, dict):
        item["environment"] = environment
    return item, {"type": "shell_call_output", "call_id": call_id, "output": _shell_output(call)}


def _shell_output(call: Call) -> Value:
    """Return what the commands said: as the agent gave it where that has the API's form, else as text."""
    output, words = call.result.output, call.result.text
    given = output.get("output") if isinstance(output, dict) else output
    if call.result.failed:
        return [{"stdout": "", "stderr": words, "outcome": {"type": "exit", "exit_code": 1}}]
    if isinstance(given, list) and all(_is_shell_output(one) for one in given):
        return given
    return [{"stdout": words, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]


def _is_shell_output(one: Value) -> bool:
    if not isinstance(one, dict):
        return False
    outcome = one.get("outcome")
    ended = isinstance(outcome, dict) and (
        outcome.get("type") == "timeout"
        or (outcome.get("type") == "exit" and isinstance(outcome.get("exit_code"), int))
    )
    return ended and isinstance(one.get("stdout"), str) and isinstance(one.get("stderr"), str)


def _apply_patch(call: Call, call_id: str, _: Item) -> Pair | None:
    operation = call.part.input
    if not isinstance(operation, dict) or not all(
        isinstance(operation.get(name), str) for name in PATCHES.get(metadata.words(operation, "type"), ("",))
    ):
        return None
    item: Item = {"type": "apply_patch_call", "call_id": call_id, "operation": operation}
    status = "failed" if call.result.failed else "completed"
    output: Item = {"type": "apply_patch_call_output", "call_id": call_id, "status": status}
    return {**item, "status": "completed"}, {**output, "output": call.result.text}


PATCHES = {"create_file": ("diff", "path"), "delete_file": ("path",), "update_file": ("diff", "path")}
"""What each operation on a file must name."""
FORMS: dict[str, Callable[[Call, str, Item], Pair | None]] = {
    "apply_patch_call": _apply_patch,
    "custom_tool_call": _custom,
    "local_shell_call": _local_shell,
    "shell_call": _shell,
}
"""The tools that the API defines and the agent runs, by the type of their calls."""
