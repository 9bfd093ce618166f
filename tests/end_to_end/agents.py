"""The agents of server processes."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from random import Random

from midstream.agents import Agent
from midstream.protocol.values import Value
from midstream.server import Turn

FLOOD_PARTS = 4
WORDS = ("all ", "that ", "was ", "said ", "is ", "here ", "é", "\U0001f600 ")


async def flood(turn: Turn) -> None:
    """Say a token as often as the prompt says (``1000 word``), in a few parts, as fast as can be."""
    count, token = turn.prompt_text.split()
    for _ in range(FLOOD_PARTS):
        async with turn.step() as step, step.text() as text:
            for _ in range(int(count) // FLOOD_PARTS):
                await text.append(token)


async def tell_time(turn: Turn) -> None:
    """Say what the steady clock shows, in ns, every 20 ms, for as many seconds as the prompt says."""
    end = time.monotonic() + float(turn.prompt_text)
    async with turn.step() as step, step.text() as text:
        while time.monotonic() < end:
            await text.append(f"{time.monotonic_ns()} ")
            await asyncio.sleep(0.02)


class Journal:
    """A file in which an agent notes what it was told is stored, before anything else happens.

    One line is one system call, and what the kernel has is not lost with the process.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def note(self, kind: str, turn: Turn, **what: Value) -> None:
        """Note one commit."""
        line = {"kind": kind, "session_id": turn.session_id, "turn_id": turn.turn_id, **what}
        os.write(self._file, f"{json.dumps(line)}\n".encode())


async def work(turn: Turn) -> None:
    """Stream, call tools, ask, act, and read what came meanwhile; the turn's id decides what."""
    journal, chance = Journal(os.environ["JOURNAL"]), Random(turn.turn_id)
    for _ in range(chance.randint(1, 3)):
        said = ""
        async with turn.step() as step:
            async with step.text() as text:
                for _ in range(chance.randint(5, 40)):
                    word = chance.choice(WORDS)
                    said += word
                    await text.append(word)
                    await asyncio.sleep(0.001)
            call = await step.tool("look", input={"for": said}) if chance.random() < 0.6 else None
        journal.note("step", turn, step_id=step.step_id, text=said)
        if call is not None:
            if chance.random() < 0.5:
                approval = await turn.ask_approval(call, title="May I?", expires_in=5)
                journal.note("asked", turn, tool_call_id=call.tool_call_id, approved=approval.approved)
            await call.run()
            journal.note("running", turn, tool_call_id=call.tool_call_id)
            await call.complete({"found": said})
            journal.note("completed", turn, tool_call_id=call.tool_call_id, output={"found": said})
        if chance.random() < 0.4:
            action = await turn.action("tidy", "Tidy up")
            await action.complete(title="Tidied up")
            journal.note("action", turn)
        for message in await turn.take_inputs():
            journal.note("absorbed", turn, message_id=message.message_id)


AGENTS: Mapping[str, Agent] = {"flood": flood, "tell_time": tell_time, "work": work}
