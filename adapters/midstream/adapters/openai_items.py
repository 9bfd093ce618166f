"""What the items of a Responses stream are as tool calls: names, who runs them, input and output (pure).

An item that the provider runs is rebuilt for the next request from its part alone: its type and id are
in the metadata, the fields that went in are the input, and the others the output.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from midstream.adapters.events import (
    ApprovalRequested,
    File,
    ToolFailed,
    ToolInputDelta,
    ToolInputReady,
    ToolOutput,
    ToolStarted,
)
from midstream.adapters.plain import Plain, carried, items, mapping, text
from midstream.adapters.reader import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.adapters.events import Event
    from midstream.protocol.model import ProviderMetadata
    from midstream.protocol.values import Value

PROVIDER = "openai"


class Kind(Struct, frozen=True):
    """One kind of item that is a tool call."""

    name: str = ""
    """The tool's name; empty where the item gives it."""
    inputs: tuple[str, ...] = ()
    """The fields that are the input, each under its own name."""
    whole: str = ""
    """Instead of ``inputs``: the one field whose value is the input."""
    hosted: bool = False
    """The provider runs it; where it does not, the agent has to."""
    listed: tuple[str, ...] = ()
    """More fields of the item that are kept for the next request."""


KINDS = {
    "function_call": Kind(whole="arguments", listed=("namespace",)),
    "custom_tool_call": Kind(whole="input", listed=("namespace",)),
    "local_shell_call": Kind(name="local_shell", whole="action"),
    "shell_call": Kind(name="shell", whole="action", listed=("environment",)),
    "apply_patch_call": Kind(name="apply_patch", whole="operation"),
    "computer_call": Kind(name="computer_use", inputs=("action", "actions", "pending_safety_checks")),
    "web_search_call": Kind(name="web_search", inputs=("action",), hosted=True),
    "file_search_call": Kind(name="file_search", inputs=("queries",), hosted=True),
    "code_interpreter_call": Kind(name="code_interpreter", inputs=("code", "container_id"), hosted=True),
    "image_generation_call": Kind(name="image_generation", inputs=("action",), hosted=True),
    "tool_search_call": Kind(name="tool_search", inputs=("arguments", "execution"), hosted=True),
    "mcp_list_tools": Kind(name="mcp_list_tools", inputs=("server_label",), hosted=True),
    "mcp_call": Kind(whole="arguments", hosted=True, listed=("server_label", "approval_request_id")),
    "mcp_approval_request": Kind(whole="arguments", hosted=True, listed=("server_label",)),
}
"""Every kind of item that is a tool call, by its type."""
OUTPUTS = {
    "apply_patch_call_output",
    "computer_call_output",
    "custom_tool_call_output",
    "function_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "tool_search_output",
}
"""Items that hold the output of an earlier one, which they name by ``call_id``."""


class ToolItem:
    """A tool call of the stream, from ``output_item.added`` to its end."""

    def __init__(self, block: str, item: Plain) -> None:
        """Begin with the item as it was added."""
        self.block = block
        self.type = text(item, "type")
        self.kind = KINDS[self.type]
        self.item = item
        self.call_id = text(item, "call_id") or text(item, "id")
        self.is_ready = False
        """Whether the complete arguments were said."""
        self._quotes = False

    def started(self) -> ToolStarted:
        """Return how the call begins."""
        item, kind = self.item, self.kind
        hosted = kind.hosted or text(item, "environment", "type").startswith("container")
        listed = {field: item.get(field) for field in kind.listed}
        item_type = None if self.type == "function_call" else self.type
        return ToolStarted(
            self.block,
            self.call_id,
            kind.name or text(item, "name"),
            provider_executed=hosted and text(item, "execution") != "client",
            dynamic=self.type.startswith("mcp_"),
            title=text(item, "server_label") or None,
            metadata=_metadata(item_id=text(item, "id") or None, type=item_type, **listed),
        )

    def ended(self, item: Plain) -> Iterator[Event]:
        """Return what the complete item says: its input and, where the provider ran it, its outcome."""
        yield from self.unquote()
        yield self.ready(item)
        if self.type == "mcp_approval_request":
            yield ApprovalRequested(self.block, text(item, "id"))
        elif self.kind.hosted and text(item, "execution") != "client":
            yield from self._outcome(item)

    def quote(self, words: str) -> Iterator[Event]:
        """Return more of the text that is one field of the arguments: they stream as JSON like any others."""
        before = "" if self._quotes else self._opening()
        self._quotes = True
        yield ToolInputDelta(self.block, before + json.dumps(words, ensure_ascii=False)[1:-1])

    def next_command(self) -> Iterator[Event]:
        """Begin one more of the texts of a list."""
        if self._quotes:
            yield ToolInputDelta(self.block, '","')

    def unquote(self) -> Iterator[Event]:
        """End the text and the arguments."""
        if self._quotes:
            self._quotes = False
            yield ToolInputDelta(self.block, '"]}' if self.type == "shell_call" else '"}')

    def _opening(self) -> str:
        if self.type == "shell_call":
            return '{"commands":["'
        if self.type != "apply_patch_call":
            return '{"code":"'
        operation = mapping(carried(mapping(self.item, "operation")))
        fields = {name: operation[name] for name in sorted(operation) if name != "diff"}
        return json.dumps({**fields, "diff": ""}, ensure_ascii=False, separators=(",", ":"))[:-2]

    def ready(self, item: Plain) -> ToolInputReady:
        """Return the complete arguments, as the item has them."""
        self.is_ready = True
        given = item.get(self.kind.whole)
        if not self.kind.whole:
            given = {field: item[field] for field in self.kind.inputs if item.get(field) is not None}
        elif isinstance(given, str) and self.type != "custom_tool_call":
            parsed = arguments(given)
            return ToolInputReady(self.block, parsed, raw_input=given if parsed is UNSET else None)
        return ToolInputReady(self.block, carried({} if given is None else given))

    def _outcome(self, item: Plain) -> Iterator[Event]:
        error = item.get("error")
        status = text(item, "status")
        if error or status == "failed":
            yield ToolFailed(
                self.block, error_text(error) or f"The provider's {self.started().tool_name} failed."
            )
            return
        image = text(item, "result") if self.type == "image_generation_call" else ""
        left_out = {"id", "type", "name", "error", self.kind.whole, *self.kind.inputs, *self.kind.listed}
        left_out |= {"result"} if image else set()
        output = {field: item[field] for field in item if field not in left_out}
        if status == "incomplete":
            yield ToolFailed(self.block, f"The provider's {self.started().tool_name} was cut short.")
        else:
            yield ToolOutput(self.block, carried(output))
        if image:
            media_type = f"image/{text(item, 'output_format') or 'png'}".replace("svg", "svg+xml")
            yield File(
                f"data:{media_type};base64,{image}", media_type, metadata=_metadata(item_id=item.get("id"))
            )
        for made in items(item, "outputs"):
            if url := text(made, "url"):
                yield File(url, "image/png", metadata=_metadata(item_id=item.get("id")))


def error_text(error: object) -> str:
    """Return the words of an item's error, which is a text or an object."""
    if isinstance(error, str):
        return error
    words = text(error, "message") or "\n".join(text(part, "text") for part in items(error, "content"))
    return words or (json.dumps(carried(error), ensure_ascii=False) if mapping(error) else "")


def _metadata(**fields: object) -> ProviderMetadata | None:
    kept: dict[str, Value] = {name: carried(value) for name, value in fields.items() if value is not None}
    return {PROVIDER: kept} if kept else None
