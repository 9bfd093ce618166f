"""A worker in a process of its own, to be watched and killed by tests.

``python -m tests.end_to_end.worker_child URL NAME`` runs :func:`count`. What the agent is about to do, or has
done, it says first in a line of JSON on its output: one system call, so that a kill takes nothing of it back.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from midstream.agents import Step, TextStream, ToolCall, Turn
from midstream.protocol.model import Message, TextPart
from midstream.protocol.values import Value
from midstream.server import logs
from midstream.worker import Worker, WorkerOptions
from tests.end_to_end.stage import QUICK

WORDS = 20
"""Words of a step."""


def note(kind: str, **what: Value) -> None:
    """Say what is done."""
    os.write(1, f"{json.dumps({'kind': kind, **what})}\n".encode())


def said_in(messages: list[Message], turn_id: str) -> int:
    """Return how many words the turn has said."""
    texts = [
        part.text
        for message in messages
        if message.turn_id == turn_id and message.role == "agent"
        for part in message.parts
        if isinstance(part, TextPart)
    ]
    return "".join(texts).count(" ")


async def count(turn: Turn) -> None:
    """Count, a step at a time, until somebody says that it is enough; each step ends with a tool."""
    note("begin", resumed=turn.resumed)
    said = said_in((await turn.context()).messages, turn.turn_id) if turn.resumed else 0
    await finish(turn, turn.calls())
    while not await turn.take_inputs():
        async with step_of(turn) as step:
            async with text_of(step) as text:
                while True:
                    note("say", word=said)
                    await text.append(f"{said} ")
                    said += 1
                    await asyncio.sleep(0.001)
                    if said % WORDS == 0:
                        break
            call = await step.tool("look", input=said)
        await finish(turn, [call])


@asynccontextmanager
async def step_of(turn: Turn) -> AsyncGenerator[Step]:
    """Go on with the step that is open, or begin one."""
    async with turn.open_step() or turn.step() as step:
        yield step


def text_of(step: Step) -> TextStream:
    """Go on with the text that is open, or begin one."""
    return next(iter(step.open_texts()), None) or step.text()


async def finish(turn: Turn, calls: list[ToolCall]) -> None:
    """Ask about every second call, and execute it; one that was claimed is given up."""
    for call in calls:
        if call.state == "running":
            await call.fail("Its worker was killed.")
        elif call.state == "input-streaming":
            continue
        else:
            number = call.input if isinstance(call.input, int) else 0
            if number // WORDS % 2:
                note("ask", call=call.tool_call_id)
                await turn.ask_approval(call, title="May I?")
            await call.execute(executed(call))


def executed(call: ToolCall) -> Callable[[Value], Value]:
    """Return the tool, which notes that it was executed."""

    def look(given: Value) -> Value:
        note("execute", call=call.tool_call_id)
        return given

    return look


async def main(url: str, name: str) -> None:
    """Work until killed, or told by a signal to stop."""
    logs.configure("json", "warning")
    note("start")
    await Worker(url, count, name=name, resumes=True, options=WorkerOptions(policy=QUICK)).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
