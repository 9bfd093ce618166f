"""A session is opened once for all who ask, and closed for good."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import UNSET

from midstream.client import NotFound, SessionClosed
from midstream.protocol.calls import CreateParams, SessionResult, SubscribeParams
from midstream.protocol.errors import AlreadyExists, Unavailable
from midstream.protocol.frames import Closed
from tests.client.conversation import Conversation
from tests.client.stage import Stage, answer_subscribe, in_simulation, on_every_network


@on_every_network
async def test_a_session_is_synced_when_it_is_returned(stage: Stage) -> None:
    """The first subscription has no cursor, and the replica shows what the reset held."""
    conversation = Conversation()
    conversation.user("hi")
    async with stage.client() as client:
        opening = asyncio.ensure_future(client.session("s"))
        link = await stage.peer.accept()
        params = await stage.sync(link, conversation)
        session = await opening
        assert params == SubscribeParams(session_id="s", limit=50)
        assert session.messages == conversation.messages
        assert session.info == conversation.session
        assert session.state == "live"
        assert await client.session("s") is session


@pytest.mark.parametrize("code", ["deleted", "forbidden"])
def test_a_session_that_is_gone_closes_with_an_error(code: str) -> None:
    """No new subscription is tried; what was read stays, and everything asked for later says why not."""

    async def scenario(stage: Stage) -> None:
        conversation = Conversation()
        conversation.user("hi")
        session, link = await stage.opened(stage.client(), conversation)
        mutations, signals = session.mutations(), session.signals()
        await link.send(Closed(conversation.channel, code, False))  # noqa: FBT003 - a frame's elements have no names
        await session.until(lambda: session.state == "closed")
        assert isinstance(session.error, SessionClosed)
        assert session.error.details["reason"] == code
        assert session.messages == conversation.messages
        with pytest.raises(SessionClosed, match=code):
            await session.prompt("too late")
        with pytest.raises(SessionClosed, match=code):
            await anext(mutations)
        with pytest.raises(SessionClosed, match=code):
            await anext(signals)
        assert await link.is_quiet()

    on_every_network(scenario)("sockets")


@on_every_network
async def test_a_server_that_cannot_serve_the_session_now_is_asked_again(stage: Stage) -> None:
    """`unavailable` is no end: the session stays syncing until it is served."""
    conversation = Conversation()
    opening = asyncio.ensure_future(stage.client().session("s"))
    link = await stage.peer.accept()
    for _ in range(3):
        asked = await link.asked("subscribe")
        await asked.error(Unavailable("The storage failed. Try again later."))
    await stage.sync(link, conversation)
    assert (await opening).state == "live"


@in_simulation
async def test_a_pause_before_subscribing_ends_with_its_connection(stage: Stage) -> None:
    """The new connection subscribes at once, and the pause of the old one brings no second subscription."""
    conversation = Conversation()
    opening = asyncio.ensure_future(stage.client().session("s", timeout=None))
    link = await stage.peer.accept()
    for _ in range(8):
        await (await link.asked("subscribe")).error(Unavailable("The storage failed. Try again later."))
    link.drop()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    session = await opening
    for _ in range(4):
        await asyncio.sleep(14)
        assert await link.is_quiet()
    assert session.state == "live"


@on_every_network
async def test_an_answer_that_comes_after_the_close_changes_nothing(stage: Stage) -> None:
    """A closed session stays closed, though its subscription was under way."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    conversation.titled("lost")
    await link.send(conversation.titled("seen"))
    asked = await link.asked("subscribe")
    await session.close()
    await answer_subscribe(asked, conversation)
    await link.send(conversation.titled("after"))
    await link.asked("unsubscribe")
    assert await link.is_quiet()
    assert session.state == "closed"
    assert session.info.title is UNSET


@on_every_network
async def test_a_session_is_shared_only_by_those_who_want_the_same_view(stage: Stage) -> None:
    """Another `include_internal` is refused while it is open; a closed session is opened anew."""
    conversation = Conversation()
    client = stage.client()
    session, link = await stage.opened(client, conversation)
    with pytest.raises(ValueError, match="include_internal"):
        await client.session("s", include_internal=True)
    await session.close()
    await link.asked("unsubscribe")
    opening = asyncio.ensure_future(client.session("s", include_internal=True))
    params = await stage.sync(link, conversation)
    assert params.include_internal
    again = await opening
    assert again is not session
    assert again.include_internal


@on_every_network
async def test_a_session_that_does_not_exist_is_an_error_or_is_created(stage: Stage) -> None:
    """Without `create` the error is raised; with it the session is made under a key, and subscribed."""
    client = stage.client()
    opening = asyncio.ensure_future(client.session("s"))
    link = await stage.peer.accept()
    await (await link.asked("subscribe")).error(NotFound("session", "s"))
    with pytest.raises(NotFound):
        await opening

    conversation = Conversation()
    opening = asyncio.ensure_future(client.session("s", create=True))
    await (await link.asked("subscribe")).error(NotFound("session", "s"))
    asked = await link.asked("sessions.create")
    params = asked.as_(CreateParams)
    assert params.session_id == "s"
    assert params.key
    await asked.result(SessionResult(session=conversation.session, epoch=conversation.epoch, version=10))
    await stage.sync(link, conversation)
    assert (await opening).state == "live"


@on_every_network
async def test_a_creation_that_somebody_else_won_is_a_subscription(stage: Stage) -> None:
    """Two who create one session at once both get it; the answer may be lost on the way."""
    conversation = Conversation()
    opening = asyncio.ensure_future(stage.client().session("s", create=True))
    link = await stage.peer.accept()
    await (await link.asked("subscribe")).error(NotFound("session", "s"))
    first = (await link.asked("sessions.create")).as_(CreateParams)
    link.drop()
    link = await stage.peer.accept()
    asked = await link.asked("sessions.create")
    assert asked.as_(CreateParams) == first
    await asked.error(AlreadyExists("s"))
    await stage.sync(link, conversation)
    assert (await opening).state == "live"


@on_every_network
async def test_switching_between_sessions_mixes_nothing(stage: Stage) -> None:
    """A, then B, then A in the middle of a turn: frames of what was left go nowhere."""
    client = stage.client()
    first, second = Conversation("a", channel=1), Conversation("b", channel=2)
    session, link = await stage.opened(client, first)
    await link.send(first.user("to a"))
    await session.until(lambda: session.version == first.version)
    await session.close()
    await link.asked("unsubscribe")
    opening = asyncio.ensure_future(client.session("b"))
    await link.send(first.agent())
    await stage.sync(link, second)
    other = await opening
    await link.send(first.delta("stray"))
    await link.send(second.user("to b"))
    await other.until(lambda: other.version == second.version)
    opening = asyncio.ensure_future(client.session("a"))
    await link.send(first.delta("stray"))
    await stage.sync(link, first)
    again = await opening
    await link.send(first.delta("!"))
    await again.until(lambda: again.version == first.version)
    assert again.messages == first.messages
    assert other.messages == second.messages
    assert session.state == "closed"
