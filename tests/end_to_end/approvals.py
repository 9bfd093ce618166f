"""Approvals over real connections: what was asked, and how to answer it."""

from __future__ import annotations

import asyncio

import msgspec

from midstream.protocol.model import InteractionPart, ToolPart
from midstream.protocol.values import Value
from tests.laws.line import Line
from tests.laws.reader import Reader


def answer(decision: str, reason: str) -> Value:
    """Return a response that says whose it is: all who connect are one subject."""
    return {"kind": "approval", "decision": decision, "reason": reason}


async def respond(line: Line, interaction_id: str, response: Value) -> asyncio.Future[msgspec.Struct]:
    """Send a response, and do not wait for its answer."""
    params: dict[str, Value] = {"session_id": "s", "interaction_id": interaction_id, "response": response}
    return await line.begin("respond", params)


def interactions(reader: Reader) -> list[InteractionPart]:
    """Return all that was asked, in order."""
    return [
        part
        for message in reader.replica.messages()
        for part in message.parts
        if isinstance(part, InteractionPart)
    ]


def pending(reader: Reader) -> list[InteractionPart]:
    """Return what waits for an answer."""
    return [part for part in interactions(reader) if part.status == "pending"]


def tools(reader: Reader) -> dict[str, ToolPart]:
    """Return the tool calls by their ids."""
    return {
        part.tool_call_id: part
        for message in reader.replica.messages()
        for part in message.parts
        if isinstance(part, ToolPart)
    }
