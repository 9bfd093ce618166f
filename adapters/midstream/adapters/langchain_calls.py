"""The tool calls of LangChain's messages, and where in a graph those come from (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from midstream.adapters.events import Event, ToolInputReady, ToolOutput
from midstream.adapters.objects import number, words
from midstream.adapters.plain import carried

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.values import Value

GROWTH = 1.25
"""How much a preliminary output has grown when it is shown again: each time all of it is written."""


class Place(Struct, frozen=True):
    """Where in a graph a message comes from: its node, by its path of subgraphs, and the graph's step."""

    node: str = ""
    step: int = 0

    @classmethod
    def of(cls, metadata: object) -> Place:
        """Return the place that LangGraph names beside a message."""
        return cls(words(metadata, "langgraph_checkpoint_ns"), number(metadata, "langgraph_step") or 0)

    def is_before(self, other: Place) -> bool:
        """Whether nothing comes from here any more once something comes from the other place."""
        graph, _, _ = self.node.rpartition("|")
        return graph == other.node.rpartition("|")[0] and self.step < other.step


class Call(Struct):
    """A tool call of a message."""

    block: str
    name: str
    provider_executed: bool = False
    input: Value | UnsetType = UNSET
    ready: bool = False
    started: bool = False
    """Its execution was told."""
    returned: bool = False
    error: str | None = None
    """What it failed with, until the graph says what the model is told about it."""
    preliminary: str = ""
    shown: int = 0


def ready(call: Call) -> Iterable[Event]:
    """Say that the arguments are complete, once."""
    if not call.ready:
        call.ready = True
        yield ToolInputReady(call.block, input=call.input)


def preliminary(call: Call, delta: object) -> Iterable[Event]:
    """Show what a tool gives while it runs; a text when it has grown enough."""
    if not isinstance(delta, str):
        yield ToolOutput(call.block, carried(delta), preliminary=True)
        return
    call.preliminary += delta
    if len(call.preliminary) >= call.shown * GROWTH:
        call.shown = len(call.preliminary)
        yield ToolOutput(call.block, call.preliminary, preliminary=True)
