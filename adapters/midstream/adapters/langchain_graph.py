"""What LangGraph says of its nodes: updates and values, tasks, tools, interrupts (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import ApprovalRequested, Data, Event
from midstream.adapters.langchain_blocks import messages_in
from midstream.adapters.langchain_calls import Call, Place, preliminary
from midstream.adapters.objects import each, field, pairs, words
from midstream.adapters.plain import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from midstream.adapters.langchain_messages import OpenMessages

ANSWERS = {"ai", "AIMessageChunk"}


class GraphReading:
    """Reads every mode of a graph but its messages."""

    def __init__(
        self, messages: OpenMessages, tool_nodes: frozenset[str], skip: Callable[[str], None]
    ) -> None:
        """Begin a run; ``skip`` is told what is not known."""
        self._messages = messages
        self._tool_nodes = tool_nodes
        self._skip = skip
        self._tasks: dict[str, list[Call]] = {}
        self._asked: set[str] = set()
        self._given: set[str] | None = None
        """The ids of the messages that the run began with, once its first values told them."""

    def begin(self) -> None:
        """Go on with another stream."""
        self._given = None

    def mode(self, mode: str, payload: object) -> Iterable[Event]:
        """Read what a mode says."""
        match mode:
            case "updates":
                yield from self.update(payload)
            case "values":
                yield from self._values(payload)
            case "tasks":
                yield from self._task(payload)
            case "tools":
                yield from self._tool(payload)
            case "custom":
                yield Data("custom", carried(payload))
            case _:
                self._skip(mode)

    def update(self, update: object) -> Iterable[Event]:
        """Read what nodes gave, by their names."""
        for node, value in pairs(update).items():
            if node == "__interrupt__":
                yield from self._interrupted(each(value))
            else:
                yield from self._read(messages_in(value))

    def _read(self, messages: list[object]) -> Iterable[Event]:
        for message in messages:
            if words(message, "type") == "tool":
                yield from self._messages.returned(message)
            elif words(message, "type") in ANSWERS and self._messages.grow:
                yield from self._messages.over(words(message, "id"))
            elif words(message, "type") in ANSWERS:
                yield from self._messages.whole(Place(), message)

    def _values(self, state: object) -> Iterable[Event]:
        """Read the whole state: what is in it that was not when the run began."""
        messages = messages_in(field(state, "messages"))
        if self._given is None:
            self._given = {words(message, "id") for message in messages}
            return
        given = self._given
        yield from self._read([message for message in messages if words(message, "id") not in given])

    def _task(self, payload: object) -> Iterable[Event]:
        if field(payload, "triggers") is None:
            yield from self._ended(payload)
            return
        given = field(payload, "input")
        calls = [field(given, "tool_call"), *each(given)]
        if words(payload, "name") in self._tool_nodes:
            answers = [message for message in messages_in(given) if words(message, "type") in ANSWERS]
            calls += each(answers[-1], "tool_calls") if answers else []
        named = (
            self._messages.calls.get(words(call, "id"))
            for call in calls
            if words(call, "type") == "tool_call"
        )
        known = [call for call in named if call is not None]
        self._tasks[words(payload, "id")] = known
        for call in known:
            yield from self._messages.runs(call)

    def _ended(self, payload: object) -> Iterable[Event]:
        """Read what came of a task; where a person must answer first, its call waits for that."""
        yield from self.update({words(payload, "name"): field(payload, "result")})
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
        call = self._messages.calls.get(words(payload, "tool_call_id"))
        match words(payload, "event"):
            case "tool-started":
                yield from self._messages.runs(call)
            case "tool-output-delta" if call is not None:
                yield from preliminary(call, field(payload, "delta"))
            case "tool-finished":
                for message in messages_in(field(payload, "output")):
                    yield from self._messages.returned(message)
            case "tool-error" if call is not None:
                call.error = words(payload, "message")
            case kind:
                self._skip(kind)
