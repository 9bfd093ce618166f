"""Reads the streams of LangChain and LangGraph.

It takes what these give: ``model.astream``; ``graph.astream`` with the modes ``messages``, ``updates``,
``values``, ``tasks``, ``tools`` and ``custom``, one or several, with subgraphs, in either version; and
``astream_events`` of anything, in the versions 2 and 3. The modes ``checkpoints`` and ``debug`` repeat what
others say and are counted as unknown.

**When a tool runs.** ``graph.astream`` waits until each of its items has been read. With ``"tasks"`` among
its modes it says which tools it is about to run, so a tool's ``running`` is on disk before the tool
executes; with ``"messages"`` and ``"updates"`` alone the call is on disk as ``ready`` before, and moves on
with its result. The mode ``tools`` and ``astream_events`` tell of a start when it has happened.

Where a graph is interrupted, what it asks becomes a ``data`` part (``interrupt``), with the ids under which
it wants the answers. With ``"tasks"``, a tool call that is interrupted by itself is in ``fed.approvals``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from midstream.adapters.events import Data, Event
from midstream.adapters.langchain_blocks import is_message, message_of, messages_in
from midstream.adapters.langchain_calls import Call, Place
from midstream.adapters.langchain_graph import GraphReading
from midstream.adapters.langchain_messages import OpenMessages
from midstream.adapters.langchain_protocol import EVENTS
from midstream.adapters.objects import each, field, pairs, words
from midstream.adapters.plain import Plain, carried
from midstream.adapters.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

SILENT = ("on_chain_", "on_prompt_", "on_retriever_", "on_parser_", "on_chat_model_start", "on_llm_")
"""The beginnings of the names of events that say nothing of their own."""


class LangChainReader(Reader):
    """Reads the messages, tuples and events of LangChain and LangGraph."""

    provider: ClassVar[str] = "langchain"
    spans_streams: ClassVar[bool] = True

    def __init__(self, *, tool_nodes: frozenset[str] = frozenset({"tools"})) -> None:
        """Begin a stream; ``tool_nodes`` are the nodes that run all tool calls of the last message."""
        super().__init__()
        self._messages = OpenMessages(self)
        self._graph = GraphReading(self._messages, tool_nodes, self.skip)
        self._runs: dict[str, Call] = {}

    def begin(self, stream: object) -> None:  # noqa: ARG002  # all is in the events
        """Go on with another stream of the same conversation."""
        self._messages.begin()
        self._graph.begin()

    def read(self, event: object) -> list[Event]:
        """Return what an item says: a message, a tuple of a graph, or an event."""
        return list(self._item(event))

    def events(self, event: Plain) -> Iterable[Event]:
        """Return what a recorded item says."""
        return self._item(event)

    def end(self) -> list[Event]:
        """Return what closes the stream."""
        return list(self._messages.end())

    def _item(self, item: object) -> Iterable[Event]:
        recorded, several = pairs(item), each(item)
        if is_message(item):
            yield from self._message(Place(), item)
        elif several:
            yield from self._tuple(several)
        elif words(recorded, "event") in EVENTS:
            yield from self._messages.protocol(Place(), recorded)
        elif {"event", "data"} <= recorded.keys():
            yield from self._event(recorded)
        elif {"type", "method", "params"} <= recorded.keys():
            yield from self._mode(words(recorded, "method"), field(recorded, "params", "data"))
        elif {"type", "ns", "data"} <= recorded.keys():
            yield from self._mode(words(recorded, "type"), recorded["data"])
        elif recorded:  # a state, or what nodes gave by their names
            mode = "values" if each(recorded, "messages") else "updates"
            yield from self._graph.mode(mode, recorded)
        else:
            self.skip(type(item).__name__)

    def _tuple(self, item: list[object]) -> Iterable[Event]:
        """Read ``(message, metadata)``, ``(mode, payload)``, or these with the subgraph's name in front."""
        if len(item) == 2 and is_message(item[0]):  # noqa: PLR2004  # a pair
            yield from self._mode("messages", item)
            return
        *_, mode, payload = [None, *item]
        if isinstance(mode, str):
            yield from self._mode(mode, payload)
        elif is_message(next(iter(each(payload)), None)):
            yield from self._mode("messages", payload)
        else:
            yield from self._item(pairs(payload))

    def _mode(self, mode: str, payload: object) -> Iterable[Event]:
        if mode != "messages":
            yield from self._graph.mode(mode, payload)
            return
        self._messages.grow = True
        said, metadata = [*each(payload), None, None][:2]
        if words(said, "event") in EVENTS:
            yield from self._messages.protocol(Place.of(metadata), said)
        else:
            yield from self._message(Place.of(metadata), said)

    def _message(self, place: Place, message: object) -> Iterable[Event]:
        match words(message, "type"):
            case "AIMessageChunk":
                yield from self._messages.chunk(place, message_of(message))
            case "ai":
                yield from self._messages.whole(place, message)
            case "tool" | "ToolMessageChunk":
                if words(message, "tool_call_id") not in self._messages.calls:
                    self.skip("tool message: no call")
                yield from self._messages.returned(message)
            case _:
                pass  # what people and instructions said is in the conversation already

    def _event(self, event: object) -> Iterable[Event]:
        name, data, run = words(event, "event"), field(event, "data"), words(event, "run_id")
        match name:
            case "on_chat_model_stream":
                yield from self._message(Place(run), field(data, "chunk"))
            case "on_chat_model_end":
                for message in messages_in(field(data, "output")):
                    yield from self._messages.whole(Place(run), message)
            case "on_tool_start" | "on_tool_end" | "on_tool_error":
                yield from self._tool_event(name, event, data)
            case "on_chain_stream" if words(event, "name") == words(event, "metadata", "langgraph_node"):
                for message in messages_in(field(data, "chunk")):
                    yield from self._messages.returned(message)
            case "on_custom_event":
                yield Data(words(event, "name") or "custom", carried(data))
            case _ if not name.startswith(SILENT):
                self.skip(name)
            case _:
                pass

    def _tool_event(self, name: str, event: object, data: object) -> Iterable[Event]:
        run, tool = words(event, "run_id"), words(event, "name")
        if name == "on_tool_start":
            calls = self._messages.calls
            waiting = (call for call in calls.values() if call.name == tool and not call.started)
            call = calls.get(words(data, "input", "id")) or next(waiting, None)
            if call is not None:
                self._runs[run] = call
                yield from self._messages.runs(call)
            return
        call = self._runs.pop(run, None)
        if name == "on_tool_error" and call is not None:
            call.error = str(field(data, "error") or "The tool failed.")
        for message in messages_in(field(data, "output")):
            yield from self._messages.returned(message)
