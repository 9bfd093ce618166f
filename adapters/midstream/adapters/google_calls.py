"""The tool calls in Gemini's stream: functions of the agent, and tools of Gemini's own (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.adapters.events import ToolFailed, ToolInputReady, ToolOutput, ToolStarted
from midstream.adapters.google_arguments import PartialArguments
from midstream.adapters.plain import Plain, carried, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.adapters.events import Event
    from midstream.adapters.reader import Reader

FIELDS = (
    "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"
)  # fmt: skip
CUT = "The arguments of this call came in pieces that cannot be put together."


class Calls:
    """The calls so far. An answer finds its call by the id, or else it is that of the oldest without one."""

    def __init__(self, reader: Reader) -> None:
        """Begin a stream."""
        self._reader = reader
        self._open: list[tuple[str, str, str]] = []
        self._partial: tuple[str, PartialArguments] | None = None
        self._torn = False

    @property
    def waiting(self) -> bool:
        """Whether functions were called that have no answer yet."""
        return any(kind == "functionCall" for kind, _, _ in self._open)

    def takes(self, part: Plain) -> bool:
        """Say whether the part is of a call."""
        return any(name in part for name in FIELDS)

    def part(self, part: Plain, signature: str | None) -> Iterator[Event]:
        """Return what a part says."""
        if "functionCall" in part:
            yield from self._function(mapping(part, "functionCall"), signature)
        elif "executableCode" in part:
            code = mapping(part, "executableCode")
            input = {name: code.get(name) for name in ("language", "code")}
            yield self._start("executableCode", "code_execution", text(code, "id"), input, signature)
        elif "toolCall" in part:
            call = mapping(part, "toolCall")
            name = text(call, "toolType").lower() or "tool"
            yield self._start("toolCall", name, text(call, "id"), mapping(call, "args"), signature)
        elif "codeExecutionResult" in part:
            result = mapping(part, "codeExecutionResult")
            output = {name: result.get(name) for name in ("outcome", "output")}
            yield from self._answer("executableCode", text(result, "id"), output, signature)
        elif "toolResponse" in part:
            result = mapping(part, "toolResponse")
            yield from self._answer("toolCall", text(result, "id"), mapping(result, "response"), signature)
        else:
            yield from self.answered([part])

    def answered(self, parts: list[object]) -> Iterator[Event]:
        """Return the outputs of functions that the library itself has called."""
        for part in parts:
            result = mapping(part, "functionResponse")
            if result:
                name, output = text(result, "name"), mapping(result, "response")
                yield from self._answer("functionCall", text(result, "id"), output, None, name)

    def end(self) -> Iterator[Event]:
        """Return the end of a call whose arguments were still to come."""
        if self._partial is not None:
            block, partial = self._partial
            self._partial = None
            yield ToolFailed(block, CUT) if self._torn else ToolInputReady(block, partial.value())

    def _function(self, call: Plain, signature: str | None) -> Iterator[Event]:
        pieces = items(call, "partialArgs")
        goes_on = call.get("willContinue") is True
        if text(call, "name"):
            yield from self.end()
            yield self._named(call, signature, whole=not (goes_on or pieces))
        if self._partial is None:
            return
        for piece in pieces:
            self._torn = not self._partial[1].add(mapping(piece)) or self._torn
        if not goes_on:
            yield from self.end()

    def _named(self, call: Plain, signature: str | None, *, whole: bool) -> ToolStarted:
        started = self._start(
            "functionCall",
            text(call, "name"),
            text(call, "id"),
            mapping(call, "args") if whole else None,
            signature,
        )
        if not whole:
            self._partial = (started.block, PartialArguments(mapping(call, "args")))
            self._torn = False
        return started

    def _start(
        self, kind: str, name: str, call_id: str, input: Plain | None, signature: str | None
    ) -> ToolStarted:
        block = self._reader.blocks.open(kind)
        own = kind != "functionCall"
        self._open.append((kind, call_id if own or call_id else name, block))
        return ToolStarted(
            block,
            call_id,
            name,
            input=UNSET if input is None else carried(input),
            provider_executed=own,
            metadata=self._reader.metadata(
                type=kind if own else None, id=call_id or None, thought_signature=signature
            ),
        )

    def _answer(
        self, kind: str, call_id: str, output: Plain, signature: str | None, name: str = ""
    ) -> Iterator[Event]:
        alike = [call for call in self._open if call[0] == kind]
        same = [call for call in alike if call[1] in {call_id, name} - {""}]
        found = next(iter(same or ([] if name else alike)), None)
        if found is None:
            self._reader.skip(f"answer without its {kind}")
            return
        self._open.remove(found)
        metadata = self._reader.metadata(thought_signature=signature)
        yield ToolOutput(found[2], carried(output), metadata=metadata)
