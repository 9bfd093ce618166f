"""A client that closes leaves nobody waiting."""

from __future__ import annotations

import asyncio

import pytest

from midstream.client import ClientClosed, SessionClosed
from midstream.protocol.frames import Call
from tests.client.conversation import Conversation
from tests.client.stage import Stage, on_every_network


@on_every_network
async def test_what_is_under_way_when_the_client_closes_ends_with_an_error(stage: Stage) -> None:
    """No caller waits forever, and nothing can be asked afterwards."""
    conversation = Conversation()
    client = stage.client()
    session, link = await stage.opened(client, conversation)
    reading = asyncio.ensure_future(session.interactions())
    listing = asyncio.ensure_future(client.sessions())
    frames = [await link.frame() for _ in range(2)]
    assert {frame.method for frame in frames if isinstance(frame, Call)} == {"interactions", "sessions.list"}
    await client.close()
    for task in (reading, listing):
        with pytest.raises(ClientClosed):
            await task
    with pytest.raises(ClientClosed):
        await client.session("other")
    with pytest.raises(SessionClosed):
        await session.interactions()
    assert (client.state, session.state) == ("closed", "closed")
    await client.close()
