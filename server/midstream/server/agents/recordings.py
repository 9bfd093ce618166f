"""Recorded streams of the OpenAI Chat Completions format: read, timed and grouped. Only files are read.

A recording is a file ``NAME.chunks.txt``: one chunk a line, as it came over the wire, without the
framing of server-sent events. Groq, DeepSeek, Mistral and Azure speak the same format with fields
of their own; unknown fields are skipped.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from midstream.protocol.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SUFFIX = ".chunks.txt"
FLOOR_S = 0.003
"""Seconds between two chunks at least: ``created`` has whole seconds only, and a stream should be seen."""
LONGEST_PAUSE_S = 2.0
"""Seconds between two chunks at most: nobody wants to wait for a provider that was slow years ago."""


class RecordingError(Exception):
    """A recording cannot be read; the text names the file, the line and the problem."""


class Thought(msgspec.Struct, frozen=True):
    """A piece of reasoning."""

    text: str


class Said(msgspec.Struct, frozen=True):
    """A piece of the answer."""

    text: str


class Called(msgspec.Struct, frozen=True):
    """A piece of a tool call: the first one has its id and name, all have a piece of the arguments."""

    index: int
    tool_call_id: str
    name: str
    arguments: str


class Finished(msgspec.Struct, frozen=True):
    """Why the provider stopped: ``stop``, ``tool_calls``, ``length``..."""

    reason: str


class Used(msgspec.Struct, frozen=True):
    """The provider's count of tokens, in its own words."""

    usage: dict[str, Value]


Event: TypeAlias = Thought | Said | Called | Finished | Used


class Chunk(msgspec.Struct, frozen=True):
    """One line: when it was made (whole seconds, 0 where it does not say), and what it says."""

    created: int
    events: list[Event]


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, frozen=True):
    index: int = 0
    id: str | None = None
    function: _Function = _Function()


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # what Groq calls it
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Line(msgspec.Struct, frozen=True):
    created: int = 0
    choices: list[_Choice] | None = None
    usage: dict[str, Value] | None = None


_decoder = msgspec.json.Decoder(_Line)


def openai_chunks(line: str | bytes) -> Chunk:
    """Return what one recorded line says, in the order in which it is to be shown.

    Raises:
        RecordingError: the line is no chunk of this format.

    """
    try:
        decoded = _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordingError(f"is no chat completion chunk: {error}") from None
    events: list[Event] = []
    for choice in decoded.choices or []:
        delta = choice.delta
        if thought := delta.reasoning_content or delta.reasoning:
            events.append(Thought(thought))
        if delta.content:
            events.append(Said(delta.content))
        events += [_called(call) for call in delta.tool_calls or []]
        if choice.finish_reason:
            events.append(Finished(choice.finish_reason))
    if decoded.usage:
        events.append(Used(decoded.usage))
    return Chunk(decoded.created, events)


def _called(call: _ToolCall) -> Called:
    return Called(call.index, call.id or "", call.function.name or "", call.function.arguments or "")


def delays(created: Sequence[int]) -> list[float]:
    """Return the seconds to wait before each chunk, so that those of one second are spread over it.

    A second that nothing comes after is taken to last one. Chunks without a time (0) belong to the
    next that has one.
    """
    if not created:
        return []
    times = list(created)
    for index in range(len(times) - 2, -1, -1):
        times[index] = times[index] or times[index + 1]
    runs = [(second, len(list(run))) for second, run in itertools.groupby(times)]
    ends = [second for second, _ in runs[1:]] + [runs[-1][0] + 1]
    waits: list[float] = []
    for (second, count), end in zip(runs, ends, strict=True):
        wait = min(max((end - second) / count, FLOOR_S), LONGEST_PAUSE_S)
        waits += [wait] * count
    return waits


class Segment(msgspec.Struct, frozen=True):
    """Events of one kind (and of one tool call) in a row, each after its pause in seconds."""

    events: list[tuple[float, Event]]

    @property
    def first(self) -> Event:
        """The first event, which says what kind they all are."""
        return self.events[0][1]


def segments(chunks: Sequence[Chunk]) -> list[Segment]:
    """Group what the chunks say by the part it belongs to; a chunk's pause stands before its first event."""
    timed: list[tuple[float, Event]] = []
    carried = 0.0
    for wait, chunk in zip(delays([chunk.created for chunk in chunks]), chunks, strict=True):
        carried += wait
        for event in chunk.events:
            timed.append((carried, event))
            carried = 0.0
    return [Segment(list(run)) for _, run in itertools.groupby(timed, key=lambda item: _part_of(item[1]))]


def _part_of(event: Event) -> tuple[type[Event], int]:
    return type(event), event.index if isinstance(event, Called) else 0


def read_recording(path: Path) -> list[Chunk]:
    """Return the chunks of one file; empty lines are skipped.

    Raises:
        RecordingError: the file cannot be read, or one of its lines is no chunk.

    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RecordingError(f"{path.name} cannot be read: {error.strerror}") from None
    chunks: list[Chunk] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                chunks.append(openai_chunks(line))
            except RecordingError as error:
                raise RecordingError(f"{path.name}, line {number}, {error}") from None
    return chunks


def recordings_in(folder: Path) -> list[str]:
    """Return the names of the recordings in a folder, in order.

    Raises:
        RecordingError: there is no such folder, or nothing in it.

    """
    if not folder.is_dir():
        raise RecordingError(f"{folder} is no folder. Name one that holds *{SUFFIX} files.")
    names = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
    if not names:
        raise RecordingError(f"{folder} holds no *{SUFFIX} file. Name a folder with recorded streams.")
    return names


def choose(names: Sequence[str], prompt: str, played: str | None) -> str:
    """Return the recording that the prompt names (the longest such name), or the one after ``played``."""
    named = [name for name in names if name in prompt]
    if named:
        return max(named, key=len)
    return next((name for name in names if played is None or name > played), names[0])
