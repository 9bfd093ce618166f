"""What the limits of a prompt hold, seen by a client: what is new, and never what was accepted already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from midstream.client import Client
from midstream.protocol.errors import LimitExceeded
from midstream.protocol.limits import Limits
from midstream.protocol.model import TextPart
from midstream.server import Server, Turn

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = [TextPart(text="x" * 1_000), TextPart(text="y" * 1_000)]
LOWER = [
    (Limits(parts=1), "parts"),
    (Limits(part_bytes=500), "part_bytes"),
    (Limits(message_bytes=1_500), "message_bytes"),
]


async def agent(turn: Turn) -> None:
    """Say nothing."""
    del turn


def server(path: Path, limits: Limits) -> Server:
    """A server with these limits."""
    return Server(agent=agent, database=path / "chat.db", limits=limits, log_level="error")


@pytest.mark.parametrize(("limits", "limit"), LOWER)
async def test_a_prompt_is_limited_in_parts_and_bytes(tmp_path: Path, limits: Limits, limit: str) -> None:
    """Many parts, one long part, and long parts together each have a limit."""
    async with (
        server(tmp_path, limits).listen("127.0.0.1", 0) as running,
        Client(running.url) as client,
    ):
        session = await client.session("s", create=True)
        handle = await session.prompt(CONTENT)
        with pytest.raises(LimitExceeded) as refused:
            await handle.accepted()
        assert refused.value.details["limit"] == limit
        assert session.messages == []


@pytest.mark.parametrize(("limits", "limit"), LOWER)
async def test_a_repeated_prompt_gets_its_state_whatever_the_limits_are_now(
    tmp_path: Path, limits: Limits, limit: str
) -> None:
    """It was accepted and ran; who asks again after a restart must not be told that it was refused (G3)."""
    del limit
    for now in (Limits(), limits):
        async with server(tmp_path, now).listen("127.0.0.1", 0) as running, Client(running.url) as client:
            session = await client.session("s", create=True)
            handle = await session.prompt(CONTENT, message_id="m")
            await handle.accepted()
            assert (await handle.finished()).state == "completed"
