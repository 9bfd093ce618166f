"""The messages of a LangChain stream that are open, and the tool calls that they made (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import Event, StepBoundary, ToolFailed, ToolOutput, ToolRunning
from midstream.adapters.langchain_blocks import message_of
from midstream.adapters.langchain_calls import Call, Place, ready
from midstream.adapters.langchain_message import StreamedMessage, usage_of
from midstream.adapters.langchain_protocol import ProtocolMessage
from midstream.adapters.objects import field, words
from midstream.adapters.plain import carried, in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.adapters.reader import Reader


class OpenMessages:
    """Knows which message a chunk belongs to, and which call a result."""

    def __init__(self, reader: Reader) -> None:
        """Begin with none."""
        self._reader = reader
        self._open: list[StreamedMessage] = []
        self._seen: set[str] = set()
        self._cited: set[str] = set()
        self._used: dict[str, int] = {}
        self._has_spoken = False
        self.calls: dict[str, Call] = {}
        """The newest call under each id."""
        self.grow = False
        """The model's messages come as they grow, so that whole ones beside them repeat them."""

    def begin(self) -> None:
        """Go on with another stream: it begins a step, and what it cites is its own."""
        self._has_spoken = self.grow = False
        self._used = {}
        self._cited.clear()

    def end(self) -> Iterable[Event]:
        """Close what is open."""
        for message in list(self._open):
            yield from self._finish(message)
        yield from self._settle()

    def chunk(self, place: Place, chunk: object) -> Iterable[Event]:
        """Read a chunk of a message."""
        message_id = words(chunk, "id")
        here = (known for known in self._open if known.place.node == place.node and known.takes(message_id))
        message = next(here, None)
        if message is None:
            message = StreamedMessage(self._reader, self.calls, self._cited, place)
            yield from self._begin(message)
        yield from message.read(chunk)
        self._seen |= message.ids
        if words(chunk, "chunk_position") == "last":
            yield from self._finish(message)

    def protocol(self, place: Place, said: object) -> Iterable[Event]:
        """Read an event of a message in the form of version 3."""
        here = (known for known in self._open if known.place.node == place.node)
        message = next((known for known in here if isinstance(known, ProtocolMessage)), None)
        if message is None or words(said, "event") == "message-start":
            message = ProtocolMessage(self._reader, self.calls, self._cited, place)
            yield from self._begin(message)
        yield from message.read(said)
        self._seen |= message.ids
        if words(said, "event") == "message-finish":
            yield from self._finish(message)

    def whole(self, place: Place, message: object) -> Iterable[Event]:
        """Read a message that is complete: the end of one that has grown, or all of one."""
        message_id = words(message, "id")
        yield from self.over(message_id)
        if message_id not in self._seen:
            whole = StreamedMessage(self._reader, self.calls, self._cited, place)
            yield from self._begin(whole)
            yield from whole.read(message_of(message))
            self._seen |= whole.ids
            yield from self._finish(whole)

    def over(self, message_id: str) -> Iterable[Event]:
        """Close a message, of which nothing more comes."""
        for known in [known for known in self._open if message_id in known.ids]:
            yield from self._finish(known)

    def runs(self, call: Call | None) -> Iterable[Event]:
        """Say that a tool executes, once."""
        if call is not None and not call.started and not call.returned:
            call.started = True
            yield from ready(call)
            yield ToolRunning(call.block)

    def returned(self, message: object) -> Iterable[Event]:
        """Read a tool's message, once: its call ends, and the message that made it is over."""
        call = self.calls.get(words(message, "tool_call_id"))
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

    def _begin(self, message: StreamedMessage) -> Iterable[Event]:
        """Begin another message; one after the other they are steps, beside each other they are not."""
        for known in [known for known in self._open if known.place.is_before(message.place)]:
            yield from self._finish(known)
        if self._has_spoken and not self._open:
            yield from self._settle()
            yield StepBoundary()
            self._used = {}
        self._has_spoken = True
        self._open.append(message)

    def _finish(self, message: StreamedMessage) -> Iterable[Event]:
        yield from message.end()
        self._open.remove(message)
        for name, count in message.used.items():
            self._used[name] = self._used.get(name, 0) + count
        if message.used:
            yield usage_of(self._used)

    def _settle(self) -> Iterable[Event]:
        """Fail the calls whose tools have raised, and of which the graph said nothing else."""
        for call in self.calls.values():
            if call.error is not None and not call.returned:
                call.returned = True
                yield ToolFailed(call.block, call.error)
