"""The agents of server processes."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.server import Turn
from midstream.server.sessions.agents import Agent

FLOOD_PARTS = 4


async def flood(turn: Turn) -> None:
    """Say a token as often as the prompt says (``1000 word``), in a few parts, as fast as can be."""
    count, token = turn.prompt_text.split()
    for _ in range(FLOOD_PARTS):
        async with turn.step() as step, step.text() as text:
            for _ in range(int(count) // FLOOD_PARTS):
                await text.append(token)


AGENTS: Mapping[str, Agent] = {"flood": flood}
