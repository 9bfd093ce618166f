"""The command `midstream tail`: every mutation of a session, as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import msgspec
from msgspec import UNSET

from midstream.cli.join import joined
from midstream.cli.lines import compact, part_lines
from midstream.cli.pieces import clean
from midstream.client.mutations import ReplicaReset, TextAppended
from midstream.protocol.model import Message, ReasoningPart, Session, TextPart, Turn

if TYPE_CHECKING:
    from midstream.client.credentials import Token
    from midstream.client.mutations import Mutation, Payload


async def tail(
    url: str,
    session_id: str,
    *,
    as_json: bool,
    include_internal: bool,
    out: TextIO,
    notes: TextIO,
    token: Token | None = None,
) -> None:
    """Write a line for each mutation from now on, until the session is closed.

    When it begins it says so in ``notes``.

    Raises:
        CommandFailed: the session cannot be joined, or was closed by the server.

    """
    async with (
        joined(url, session_id, create=False, include_internal=include_internal, token=token) as session,
        session.mutations() as mutations,
    ):
        notes.write(f"Following session {session_id} from version {session.version}. Ctrl-C ends it.\n")
        notes.flush()
        async for mutation in mutations:
            out.write(f"{msgspec.json.encode(mutation).decode() if as_json else readable(mutation)}\n")
            out.flush()


def readable(mutation: Mutation) -> str:
    """Return a mutation on one line: its version, what it is about, and what that is now."""
    about = mutation.part_id or mutation.message_id or ""
    words = (f"{mutation.revision:>8}", f"{mutation.variant:<7}", about, _told(mutation.payload))
    return " ".join(word for word in words if word)


def _told(payload: Payload) -> str:
    match payload:
        case TextAppended():
            told = compact(payload.text)
        case Message():
            state = "" if payload.state is UNSET else f" {payload.state}"
            told = f"{payload.role} #{payload.sequence}{state}, {len(payload.parts)} parts"
        case Turn():
            told = f"{payload.turn_id} {payload.state} ({payload.phase})"
        case Session():
            told = f"{payload.message_count} messages, {len(payload.queue)} waiting"
        case ReplicaReset():
            told = payload.reason
        case TextPart() | ReasoningPart():
            told = f"{compact(payload.text)} {payload.state}"
        case _:
            told = "; ".join(line.text for line in part_lines(payload)) or type(payload).__name__
    return clean(told)
