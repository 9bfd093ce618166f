"""Reads the stream of Gemini's ``generateContent`` (pure): the chunks of google-genai, or those of the wire.

What goes back in the next request is kept under ``google``: a part's ``thought_signature`` (with
``signature_follows`` where it came in an empty part of its own behind it), the ``id`` of a call where
Gemini gave one, and what kind of part a tool call of Gemini's own was (``type``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from midstream.adapters.events import (
    Data,
    Event,
    File,
    Finished,
    FinishReason,
    ReasoningDelta,
    ReasoningEnded,
    Refusal,
    StepBoundary,
    StreamError,
    TextDelta,
    TextEnded,
    TextStarted,
)
from midstream.adapters.failures import CUT
from midstream.adapters.google_calls import Calls
from midstream.adapters.google_sources import Sources
from midstream.adapters.plain import Plain, carried, items, mapping, text, whole
from midstream.adapters.reader import Reader, usage

if TYPE_CHECKING:
    from collections.abc import Iterator

REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "BLOCKLIST": "content-filter",
    "ESCALATION": "content-filter",
    "IMAGE_PROHIBITED_CONTENT": "content-filter",
    "IMAGE_RECITATION": "content-filter",
    "IMAGE_SAFETY": "content-filter",
    "LANGUAGE": "content-filter",
    "MODEL_ARMOR": "content-filter",
    "PROHIBITED_CONTENT": "content-filter",
    "RECITATION": "content-filter",
    "SAFETY": "content-filter",
    "SPII": "content-filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "UNEXPECTED_TOOL_CALL": "error",
}
"""Why the model stopped; what is not here is ``other``."""
SHOWN_APART = {"groundingChunks", "retrievalMetadata"}
"""Of the grounding, what its ``data`` part leaves out: the chunks are sources."""
TOO_BUSY = 429
SERVER_ERRORS = 500
STANDARD = str.maketrans("-_", "+/")
"""From the alphabet of base64 that google-genai writes to that of the wire and of data URLs."""
PARTS = {
    "text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse",
    "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "videoMetadata", "partMetadata",
    "mediaResolution", "speechMetadata", "audioMetadata", "audioTranscription",
}  # fmt: skip
"""Fields of a part that this reader knows, some of which say nothing that is kept."""


class GoogleReader(Reader):
    """Reads Gemini's chunks: what stands in its first candidate."""

    provider: ClassVar[str] = "google"

    def __init__(self) -> None:
        """Begin a stream."""
        super().__init__()
        self._calls = Calls(self)
        self._sources = Sources()
        self._growing: tuple[str, str] | None = None
        self._response = ""
        self._finished: Finished | None = None
        self._grounding: Plain = {}
        self._state = "idle"

    def events(self, event: Plain) -> Iterator[Event]:
        """Return what a chunk says."""
        if "error" in event:
            yield from self._fail(event)
            return
        yield from self._next(event)
        self._state = "open"
        candidate = mapping(event, "candidates", 0)
        for part in items(candidate, "content", "parts"):
            yield from self._part(mapping(part))
        for other in items(event, "candidates")[1:]:
            self.skip(f"candidate {whole(other, 'index')}")
        yield from self._sources.of(candidate)
        self._grounding = {**self._grounding, **mapping(candidate, "groundingMetadata")}
        yield from self._used(mapping(event, "usageMetadata"))
        yield from self._reason(event, candidate)

    def end(self) -> list[Event]:
        """Return why the model stopped, or an error where the stream ended before it said so."""
        said = [*self._close(), *self._calls.end()]
        grounding = {name: value for name, value in self._grounding.items() if name not in SHOWN_APART}
        if any(grounding.values()):
            said.append(Data("grounding", carried(grounding)))
        if self._finished is not None:
            called = self._finished.reason == "stop" and self._calls.waiting
            said.append(Finished("tool-calls", self._finished.raw_reason) if called else self._finished)
        elif self._state == "open":
            said.append(CUT)
        return said

    def _next(self, event: Plain) -> Iterator[Event]:
        """Where the library has called the functions and asked again, a new response begins."""
        response = text(event, "responseId")
        if self._finished and response and response != self._response:
            yield from self._close()
            history = items(event, "automaticFunctionCallingHistory")
            yield from self._calls.answered(items(history, -1, "parts"))
            yield from self._calls.end()
            yield StepBoundary()
            self._finished = None
        self._response = response or self._response

    def _part(self, part: Plain) -> Iterator[Event]:
        for name in part.keys() - PARTS:
            self.skip(f"part:{name}")
        signature = text(part, "thoughtSignature").translate(STANDARD) or None
        thought = part.get("thought") is True
        if "text" in part or (signature and not self._calls.takes(part) and "inlineData" not in part):
            yield from self._text(text(part, "text"), signature, "reasoning" if thought else "text")
        elif self._calls.takes(part):
            yield from self._close()
            yield from self._calls.part(part, signature)
        elif not thought and ("inlineData" in part or "fileData" in part):
            yield from self._close()
            yield self._file(part, signature)

    def _text(self, words: str, signature: str | None, kind: str) -> Iterator[Event]:
        if words and (self._growing is None or self._growing[0] != kind):
            yield from self._close()
            self._growing = (kind, self.blocks.open(kind))
        if words and self._growing is not None:
            delta = TextDelta if kind == "text" else ReasoningDelta
            yield delta(self._growing[1], words)
        if signature is None:
            return
        if self._growing is None:
            name = self.blocks.open("text")
            yield TextStarted(name)
            yield TextEnded(name, self.metadata(thought_signature=signature))
        else:
            yield from self._close(thought_signature=signature, signature_follows=None if words else True)

    def _close(self, **fields: object) -> Iterator[Event]:
        if self._growing is not None:
            kind, name = self._growing
            self._growing = None
            ended = TextEnded if kind == "text" else ReasoningEnded
            yield ended(name, self.metadata(**fields))

    def _file(self, part: Plain, signature: str | None) -> File:
        kind = "inlineData" if "inlineData" in part else "fileData"
        metadata = self.metadata(type=kind, thought_signature=signature)
        data = mapping(part, "inlineData")
        if data:
            media_type = text(data, "mimeType") or "application/octet-stream"
            words = text(data, "data").translate(STANDARD)
            url = f"data:{media_type};base64,{words}"
            return File(url, media_type, text(data, "displayName") or None, metadata)
        data = mapping(part, "fileData")
        media_type = text(data, "mimeType") or "application/octet-stream"
        return File(text(data, "fileUri"), media_type, text(data, "displayName") or None, metadata)

    def _used(self, used: Plain) -> Iterator[Event]:
        if not used:
            return
        thought = whole(used, "thoughtsTokenCount")
        asked, answered = whole(used, "promptTokenCount"), whole(used, "candidatesTokenCount")
        yield Data(
            "usage",
            usage(
                input_tokens=None if asked is None else asked + (whole(used, "toolUsePromptTokenCount") or 0),
                output_tokens=None
                if answered is None and thought is None
                else (answered or 0) + (thought or 0),
                total_tokens=whole(used, "totalTokenCount"),
                reasoning_tokens=thought,
                cached_tokens=whole(used, "cachedContentTokenCount"),
                raw=used,
            ),
        )

    def _reason(self, event: Plain, candidate: Plain) -> Iterator[Event]:
        blocked = text(event, "promptFeedback", "blockReason")
        if blocked:
            self._finished = Finished("content-filter", blocked)
            words = text(event, "promptFeedback", "blockReasonMessage")
            yield Refusal(words or f"The prompt was blocked: {blocked}.")
        reason = text(candidate, "finishReason")
        if not reason:
            return
        self._finished = Finished(REASONS.get(reason, "other"), reason)
        if self._finished.reason == "content-filter":
            yield Refusal(text(candidate, "finishMessage") or f"The answer was stopped: {reason}.")

    def _fail(self, event: Plain) -> Iterator[Event]:
        status = whole(event, "error", "code") or 0
        code = text(event, "error", "status") or "error"
        words = text(event, "error", "message") or code
        yield StreamError(code, words, recoverable=status == TOO_BUSY or status >= SERVER_ERRORS)
        self._state = "ended"
