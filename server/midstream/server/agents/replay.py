"""An agent that replays recorded streams of a provider at their own pace: the first real input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from midstream.agents import TurnFailed
from midstream.protocol.model import DataPart
from midstream.protocol.values import Value, problem_in
from midstream.server.agents.pace import Pace
from midstream.server.agents.recordings import (
    SUFFIX,
    Called,
    Event,
    RecordingError,
    Said,
    Segment,
    Thought,
    Used,
    choose,
    read_recording,
    recordings_in,
    segments,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from midstream.agents import Agent, Step, ToolCall, Turn
    from midstream.protocol.model import Message

PLAYED = "replay.recording"
"""The data type of the part that names what is played; the next turn goes on from there."""
USAGE = "replay.usage"
"""The data type of the part with the provider's count of tokens."""
NO_RESULT = "The recording has no result of this tool."
UNREADABLE = "The recorded arguments of this call cannot be read as JSON."
NESTING = 32
"""Levels of the arguments of a tool: enough for any real one."""


def last_played(messages: Iterable[Message]) -> str | None:
    """Return the recording that the conversation had last."""
    played: str | None = None
    for message in messages:
        for part in message.parts:
            if isinstance(part, DataPart) and part.data_type == PLAYED and isinstance(part.data, dict):
                name = part.data.get("name")
                played = name if isinstance(name, str) else played
    return played


def replay_agent(folder: str | Path, *, speed: float = 1.0) -> Agent:
    """Return an agent that answers each prompt with a recording from ``folder``.

    It plays the one that the prompt names, or the next in alphabetical order. ``speed`` is a factor
    on the recorded pace; 0 does not wait at all.

    Raises:
        RecordingError: the folder holds no recording.

    """
    root = Path(folder)
    recordings_in(root)
    pace = Pace(speed)

    async def agent(turn: Turn) -> None:
        try:
            name = choose(recordings_in(root), turn.prompt_text, last_played((await turn.context()).messages))
            chunks = read_recording(root / f"{name}{SUFFIX}")
        except RecordingError as error:
            raise TurnFailed("bad_recording", str(error)) from error
        async with turn.step() as step:
            await step.data(PLAYED, {"name": name, "chunks": len(chunks)})
            player = _Player(step, pace)
            for segment in segments(chunks):
                await player.play(segment)
            await player.end()

    return agent


class _Player:
    """Writes segments into one step. Tool calls stay open until :meth:`end`."""

    def __init__(self, step: Step, pace: Pace) -> None:
        self._step = step
        self._pace = pace
        self._calls: dict[int, tuple[ToolCall, list[str]]] = {}
        self._usage: dict[str, Value] | None = None

    async def play(self, segment: Segment) -> None:
        """Write one segment, each event after its pause."""
        match segment.first:
            case Thought():
                async with self._step.reasoning() as stream:
                    async for event in self._paced(segment):
                        await stream.append(_text(event))
            case Said():
                async with self._step.text() as stream:
                    async for event in self._paced(segment):
                        await stream.append(_text(event))
            case _:
                async for event in self._paced(segment):
                    await self._note(event)

    async def end(self) -> None:
        """Close the tool calls, whose results a recording of the model cannot know, and tell the usage."""
        for call, pieces in self._calls.values():
            arguments = "".join(pieces)
            value, readable = _arguments(arguments)
            await (call.ready(value) if readable else call.ready(raw_input=arguments))
            await call.fail(NO_RESULT if readable else UNREADABLE)
        if self._usage is not None:
            await self._step.data(USAGE, self._usage)

    async def _paced(self, segment: Segment) -> AsyncIterator[Event]:
        for wait, event in segment.events:
            await self._pace.wait(wait)
            yield event

    async def _note(self, event: Event) -> None:
        if isinstance(event, Used):
            self._usage = event.usage  # some providers count in every chunk: the last one is right
        elif isinstance(event, Called):
            await self._call(event)

    async def _call(self, event: Called) -> None:
        if event.index not in self._calls:
            # the recorded id is not passed on: a recording may be played twice in one session
            self._calls[event.index] = (await self._step.tool(event.name or "unnamed"), [])
        call, pieces = self._calls[event.index]
        if event.arguments:
            pieces.append(event.arguments)
            await call.append_input(event.arguments)


def _text(event: Event) -> str:
    return event.text if isinstance(event, Thought | Said) else ""


def _arguments(text: str) -> tuple[Value, bool]:
    """Return the arguments as a value, and whether they are one that the protocol carries."""
    try:
        value: Value = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return None, False
    return value, problem_in(value, nesting=NESTING) is None
