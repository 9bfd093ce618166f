"""Reads the streams of LangChain and LangGraph.

It takes what these give: ``model.astream``; ``graph.astream`` with the modes ``messages``, ``updates``,
``tasks``, ``tools`` and ``custom``, one or several, with subgraphs, in either version; and
``astream_events(version="v2")`` of anything. The modes ``values``, ``checkpoints`` and ``debug`` repeat
what others say and are counted as unknown.

**When a tool runs.** ``graph.astream`` waits until each of its items has been read. With ``"tasks"`` among
its modes it says which tools it is about to run, so a tool's ``running`` is on disk before the tool
executes; with ``"messages"`` and ``"updates"`` alone the call is on disk as ``ready`` before, and moves on
with its result. The mode ``tools`` and ``astream_events`` tell of a start when it has happened.

Where a graph is interrupted, what it asks becomes a ``data`` part (``interrupt``), with the ids under which
it wants the answers. With ``"tasks"``, a tool call that is interrupted by itself is in ``fed.approvals``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from midstream.adapters.events import (
    ApprovalRequested,
    Data,
    Event,
    StepBoundary,
    ToolFailed,
    ToolOutput,
    ToolRunning,
)
from midstream.adapters.langchain_blocks import is_message, message_of, messages_in
from midstream.adapters.langchain_calls import Call, Place, preliminary, ready
from midstream.adapters.langchain_message import StreamedMessage, usage_of
from midstream.adapters.objects import each, field, pairs, words
from midstream.adapters.plain import Plain, carried, in_words
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
        self._tool_nodes = tool_nodes
        self._calls: dict[str, Call] = {}
        self._runs: dict[str, Call] = {}
        self._tasks: dict[str, list[Call]] = {}
        self._asked: set[str] = set()
        self._cited: set[str] = set()
        self._open: list[StreamedMessage] = []
        self._seen: set[str] = set()
        self._used: dict[str, int] = {}
        self._has_spoken = False
        self._streams = False
        """The model's messages come as they grow, so that whole ones in updates repeat them."""

    def begin(self, stream: object) -> None:  # noqa: ARG002  # all is in the events
        """Go on with another stream of the same conversation."""
        self._has_spoken = self._streams = False
        self._used = {}
        self._cited.clear()

    def read(self, event: object) -> list[Event]:
        """Return what an item says: a message, a tuple of a graph, or an event."""
        return list(self._item(event))

    def events(self, event: Plain) -> Iterable[Event]:
        """Return what a recorded item says."""
        return self._item(event)

    def end(self) -> list[Event]:
        """Return what closes the stream."""
        said: list[Event] = []
        for message in list(self._open):
            said.extend(self._finish(message))
        return [*said, *self._settle()]

    def _item(self, item: object) -> Iterable[Event]:
        recorded, several = pairs(item), each(item)
        if is_message(item):
            yield from self._message(Place(), item)
        elif several:
            yield from self._tuple(several)
        elif {"event", "data"} <= recorded.keys():
            yield from self._event(recorded)
        elif {"type", "method", "params"} <= recorded.keys():
            self.skip(f"version 3: {words(recorded, 'method')}")
        elif {"type", "ns", "data"} <= recorded.keys():
            yield from self._mode(words(recorded, "type"), recorded["data"])
        elif recorded:
            yield from self._update(recorded)
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
        elif pairs(payload):
            yield from self._update(payload)
        else:
            self.skip("tuple")

    def _mode(self, mode: str, payload: object) -> Iterable[Event]:
        match mode:
            case "messages":
                self._streams = True
                message, metadata = [*each(payload), None, None][:2]
                yield from self._message(Place.of(metadata), message)
            case "updates":
                yield from self._update(payload)
            case "tasks":
                yield from self._task(payload)
            case "tools":
                yield from self._tool(payload)
            case "custom":
                yield Data("custom", carried(payload))
            case _:
                self.skip(mode)

    def _message(self, place: Place, message: object) -> Iterable[Event]:
        match words(message, "type"):
            case "AIMessageChunk":
                yield from self._chunk(place, message_of(message))
            case "ai":
                yield from self._whole(place, message)
            case "tool" | "ToolMessageChunk":
                if words(message, "tool_call_id") not in self._calls:
                    self.skip("tool message: no call")
                yield from self._returned(message)
            case _:
                pass  # what people and instructions said is in the conversation already

    def _chunk(self, place: Place, chunk: object) -> Iterable[Event]:
        message_id = words(chunk, "id")
        here = (known for known in self._open if known.place.node == place.node and known.takes(message_id))
        message = next(here, None)
        if message is None:
            message = StreamedMessage(self, self._calls, self._cited, place)
            yield from self._begin(place)
            self._open.append(message)
        yield from message.read(chunk)
        self._seen |= message.ids
        if words(chunk, "chunk_position") == "last":
            yield from self._finish(message)

    def _begin(self, place: Place) -> Iterable[Event]:
        """Begin another message; one after the other they are steps, beside each other they are not."""
        for known in [known for known in self._open if known.place.is_before(place)]:
            yield from self._finish(known)
        if self._has_spoken and not self._open:
            yield from self._settle()
            yield StepBoundary()
            self._used = {}
        self._has_spoken = True

    def _whole(self, place: Place, message: object) -> Iterable[Event]:
        """Read a message that is complete: the end of one that has grown, or all of one."""
        message_id = words(message, "id")
        yield from self._finish_named(message_id)
        if message_id not in self._seen:
            yield from self._begin(place)
            whole = StreamedMessage(self, self._calls, self._cited, place)
            self._open.append(whole)
            yield from whole.read(message_of(message))
            self._seen |= whole.ids
            yield from self._finish(whole)

    def _finish_named(self, message_id: str) -> Iterable[Event]:
        for known in [known for known in self._open if message_id in known.ids]:
            yield from self._finish(known)

    def _finish(self, message: StreamedMessage) -> Iterable[Event]:
        yield from message.end()
        self._open.remove(message)
        for name, count in message.used.items():
            self._used[name] = self._used.get(name, 0) + count
        if message.used:
            yield usage_of(self._used)

    def _settle(self) -> Iterable[Event]:
        """Fail the calls whose tools have raised, and of which the graph said nothing else."""
        for call in self._calls.values():
            if call.error is not None and not call.returned:
                call.returned = True
                yield ToolFailed(call.block, call.error)

    def _update(self, update: object) -> Iterable[Event]:
        for node, value in pairs(update).items():
            if node == "__interrupt__":
                yield from self._interrupted(each(value))
                continue
            for message in messages_in(value):
                kind = words(message, "type")
                if kind == "tool":
                    yield from self._returned(message)
                elif kind in {"ai", "AIMessageChunk"} and self._streams:
                    yield from self._finish_named(words(message, "id"))
                elif kind in {"ai", "AIMessageChunk"}:
                    yield from self._whole(Place(), message)

    def _task(self, payload: object) -> Iterable[Event]:
        if field(payload, "triggers") is None:
            yield from self._ended(payload)
            return
        given = field(payload, "input")
        calls = [field(given, "tool_call"), *each(given)]
        if words(payload, "name") in self._tool_nodes:
            answers = [message for message in messages_in(given) if words(message, "type") != "tool"]
            calls += each(answers[-1], "tool_calls") if answers else []
        named = (self._calls.get(words(call, "id")) for call in calls if words(call, "type") == "tool_call")
        known = [call for call in named if call is not None]
        self._tasks[words(payload, "id")] = known
        for call in known:
            yield from self._runs_now(call)

    def _ended(self, payload: object) -> Iterable[Event]:
        """Read what came of a task; where a person must answer first, its call waits for that."""
        yield from self._update({words(payload, "name"): field(payload, "result")})
        interrupts, calls = each(payload, "interrupts"), self._tasks.pop(words(payload, "id"), [])
        if len(interrupts) == len(calls) == 1:
            calls[0].started = False
            yield ApprovalRequested(calls[0].block, words(interrupts[0], "id"))
        else:
            yield from self._interrupted(interrupts)

    def _interrupted(self, interrupts: list[object]) -> Iterable[Event]:
        """Show what a graph asks, once, by the id under which it wants the answer."""
        asked = [one for one in interrupts if words(one, "id") not in self._asked]
        self._asked |= {words(one, "id") for one in asked}
        if asked:
            shown = [{"id": words(one, "id"), "value": field(one, "value")} for one in asked]
            yield Data("interrupt", carried(shown))

    def _tool(self, payload: object) -> Iterable[Event]:
        call = self._calls.get(words(payload, "tool_call_id"))
        match words(payload, "event"):
            case "tool-started":
                yield from self._runs_now(call)
            case "tool-output-delta" if call is not None:
                yield from preliminary(call, field(payload, "delta"))
            case "tool-finished":
                for message in messages_in(field(payload, "output")):
                    yield from self._returned(message)
            case "tool-error" if call is not None:
                call.error = words(payload, "message")
            case kind:
                self.skip(kind)

    def _event(self, event: object) -> Iterable[Event]:
        name, data, run = words(event, "event"), field(event, "data"), words(event, "run_id")
        match name:
            case "on_chat_model_stream":
                yield from self._message(Place(run), field(data, "chunk"))
            case "on_chat_model_end":
                for message in messages_in(field(data, "output")):
                    yield from self._whole(Place(run), message)
            case "on_tool_start" | "on_tool_end" | "on_tool_error":
                yield from self._tool_event(name, event, data)
            case "on_chain_stream" if words(event, "name") == words(event, "metadata", "langgraph_node"):
                for message in messages_in(field(data, "chunk")):
                    yield from self._returned(message)
            case "on_custom_event":
                yield Data(words(event, "name") or "custom", carried(data))
            case _ if not name.startswith(SILENT):
                self.skip(name)
            case _:
                pass

    def _tool_event(self, name: str, event: object, data: object) -> Iterable[Event]:
        run, tool = words(event, "run_id"), words(event, "name")
        if name == "on_tool_start":
            waiting = (call for call in self._calls.values() if call.name == tool and not call.started)
            call = self._calls.get(words(data, "input", "id")) or next(waiting, None)
            if call is not None:
                self._runs[run] = call
                yield from self._runs_now(call)
            return
        call = self._runs.pop(run, None)
        if name == "on_tool_error" and call is not None:
            call.error = str(field(data, "error") or "The tool failed.")
        for message in messages_in(field(data, "output")):
            yield from self._returned(message)

    def _runs_now(self, call: Call | None) -> Iterable[Event]:
        if call is not None and not call.started and not call.returned:
            call.started = True
            yield from ready(call)
            yield ToolRunning(call.block)

    def _returned(self, message: object) -> Iterable[Event]:
        call = self._calls.get(words(message, "tool_call_id"))
        if call is None or call.returned:
            return
        call.returned = True
        for known in [known for known in self._open if known.has(call)]:
            yield from self._finish(known)
        yield from ready(call)
        content = carried(field(message, "content"))
        if words(message, "status") == "error":
            yield ToolFailed(call.block, in_words(content))
        else:
            yield ToolOutput(call.block, content)
