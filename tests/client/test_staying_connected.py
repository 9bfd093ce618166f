"""The connection is kept, noticed when it is dead, and given up only where coming back is of no use."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from random import Random

import pytest
from websockets.asyncio.server import serve

from midstream.client import (
    Client,
    ClientError,
    ConnectionRejected,
    IncompatibleServer,
    MidstreamError,
    TimedOut,
)
from midstream.protocol.calls import PromptParams
from midstream.protocol.frames import GoAway, Hello, Ping, Pong, Result
from midstream.protocol.limits import Limits
from midstream.protocol.model import TextPart
from tests.client.conversation import Conversation
from tests.client.stage import Stage, in_simulation, on_every_network
from tests.clock import SimClock


async def closed(client: Client) -> MidstreamError | None:
    """Wait until the client is closed, and return why."""
    states = client.states()
    while client.state != "closed":
        await anext(states)
    return client.error


@on_every_network
async def test_it_says_hello_with_version_and_token(stage: Stage) -> None:
    """The first frame names the protocol's version, and the server's welcome makes the client live."""
    client = Client(stage.peer.url, token="secret", clock=stage.clock, random=stage.random)  # noqa: S106 - no secret
    states = client.states()
    async with client:
        await stage.peer.accept()
        while client.state != "live":
            await anext(states)
    (hello,) = stage.peer.hellos
    assert isinstance(hello, Hello)
    assert (hello.version, hello.token) == (1, "secret")
    assert hello.client["client"] == "midstream-python"


@on_every_network
async def test_both_encodings_carry_the_same(stage: Stage) -> None:
    """A client that speaks JSON holds the same replica as one that speaks msgpack."""
    conversation = Conversation()
    first, _ = await stage.opened(stage.client("msgpack"), conversation)
    second, link = await stage.opened(stage.client("json"), conversation)
    assert link.codec.name == "json"
    await link.send(conversation.user("héllo ✓ 🎈"))
    await second.until(lambda: second.version == conversation.version)
    assert second.messages == conversation.messages
    assert first.messages == []


@in_simulation
async def test_a_server_that_falls_silent_is_pinged_then_left(stage: Stage) -> None:
    """After one heartbeat it is asked, after two the link is dead, and the next one resumes."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert isinstance(await link.frame(), Ping)
    assert loop.time() - start == pytest.approx(15, abs=0.1)
    again = await stage.peer.accept()
    assert loop.time() - start == pytest.approx(30, abs=0.6)
    assert (await stage.sync(again, conversation)).cursor
    await session.until(lambda: session.state == "live")


@in_simulation
async def test_a_quiet_link_that_answers_pings_is_kept(stage: Stage) -> None:
    """An hour without a change costs pings, and no reconnect."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    for _ in range(240):
        frame = await link.frame()
        assert isinstance(frame, Ping)
        await link.send(Pong(frame.nonce, 0))
    assert len(stage.peer.hellos) == 1
    assert session.state == "live"


@on_every_network
async def test_a_ping_of_the_server_is_answered_with_its_nonce(stage: Stage) -> None:
    """The pong comes with the client's time."""
    conversation = Conversation()
    _, link = await stage.opened(stage.client(), conversation)
    await link.send(Ping(4711))
    pong = await link.frame()
    assert isinstance(pong, Pong)
    assert pong.nonce == 4711


@in_simulation
async def test_goaway_is_honoured(stage: Stage) -> None:
    """The client comes back after the time it was told, and resumes."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await link.send(GoAway("draining", 7_000))
    await link.send(conversation.titled("still read"))
    await session.until(lambda: session.info.title == "still read")
    await link.close(4000, "going away")
    link = await stage.peer.accept()
    assert loop.time() - start == pytest.approx(7, abs=0.1)
    assert (await stage.sync(link, conversation)).cursor


@pytest.mark.parametrize("code", [1001, 1011, 1012, 4000, 4003, 4499])
@pytest.mark.parametrize("network", ["sockets", "simulation"])
def test_after_most_close_codes_it_comes_back(code: int, network: str) -> None:
    """The link ends, the session resumes."""

    async def scenario(stage: Stage) -> None:
        conversation = Conversation()
        session, link = await stage.opened(stage.client(), conversation)
        await link.close(code)
        link = await stage.peer.accept()
        assert (await stage.sync(link, conversation)).cursor
        await session.until(lambda: session.state == "live")

    if network == "sockets":
        on_every_network(scenario)("sockets")
    else:
        in_simulation(scenario)(code)


@pytest.mark.parametrize("code", [4500, 4503, 4504, 4999])
def test_after_a_final_close_code_it_stays_away(code: int) -> None:
    """Client and sessions are closed with an error that has code and reason, and nobody connects again."""

    async def scenario(stage: Stage) -> None:
        conversation = Conversation()
        client = stage.client()
        session, link = await stage.opened(client, conversation)
        handle = await session.prompt("hi")
        await link.close(code, "because")
        error = await closed(client)
        assert isinstance(error, IncompatibleServer if code == 4503 else ConnectionRejected)
        assert "because" in str(error)
        assert session.state == "closed"
        with pytest.raises(type(error), match="because"):
            await handle.finished()
        with pytest.raises(type(error), match="because"):
            await client.session("s")
        assert stage.peer.attempts == 1

    in_simulation(scenario)(code)
    on_every_network(scenario)("sockets")


@on_every_network
async def test_a_server_that_is_not_ready_is_tried_again(stage: Stage) -> None:
    """A proxy's 503, and a 429, mean later."""
    stage.peer.statuses = [
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
    ]
    session, _ = await stage.opened(stage.client(), Conversation())
    assert session.state == "live"
    assert stage.peer.attempts == 4


@on_every_network
async def test_an_address_that_is_wrong_is_an_error(stage: Stage) -> None:
    """A 404 is not retried forever: the session is told what the server said."""
    stage.peer.statuses = [HTTPStatus.NOT_FOUND]
    client = stage.client()
    with pytest.raises(IncompatibleServer, match="404"):
        await client.session("s")
    assert client.state == "closed"
    assert stage.peer.attempts == 1


@on_every_network
async def test_a_websocket_server_of_another_kind_is_an_error(stage: Stage) -> None:
    """Without the subprotocol it is not ours."""
    stage.peer.first = lambda: Ping(1)
    port = stage.peer.port
    await stage.peer.stop()
    async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", port):
        with pytest.raises(IncompatibleServer, match="does not speak"):
            await stage.client().session("s")


@on_every_network
async def test_a_server_that_does_not_begin_with_welcome_is_an_error(stage: Stage) -> None:
    """What comes first must be the welcome."""
    stage.peer.first = lambda: Pong(1, 1)
    with pytest.raises(IncompatibleServer, match="welcome"):
        await stage.client().session("s")


@in_simulation
async def test_a_server_that_is_not_there_is_named_when_waiting_ends(stage: Stage) -> None:
    """The error says what stands in the way; the client goes on, and finds the server when it is back."""
    port = stage.peer.port
    await stage.peer.stop()
    client = stage.client()
    with pytest.raises(TimedOut, match="nothing listens there"):
        await client.session("s", timeout=100)
    assert client.problem
    await stage.peer.start(port)
    conversation = Conversation()
    session, _ = await stage.opened(client, conversation)
    assert session.state == "live"
    assert client.problem is None


@in_simulation
async def test_a_server_that_accepts_and_says_nothing_is_given_up(stage: Stage) -> None:
    """Without a welcome in time the attempt ends, and the next one is made."""
    port = stage.peer.port
    await stage.peer.stop()
    client = stage.client()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", port):
        with pytest.raises(TimedOut, match="did not answer within"):
            await client.session("s", timeout=12)
    await stage.peer.start(port)
    session, _ = await stage.opened(client, Conversation())
    assert session.state == "live"


@on_every_network
async def test_what_cannot_be_read_ends_the_connection_not_the_client(stage: Stage) -> None:
    """Broken framing is met with a new connection and the cursor."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send_raw(b"\xc1\xc1")
    link = await stage.peer.accept()
    assert (await stage.sync(link, conversation)).cursor
    await session.until(lambda: session.state == "live")


@on_every_network
async def test_frames_of_a_later_protocol_are_ignored(stage: Stage) -> None:
    """Unknown tags, extra elements and unknown keys change nothing."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(["hologram", 1, {"x": 2}])
    change = link.codec.encode(conversation.titled("later"))
    await link.send_raw(bytes([change[0] + 1]) + change[1:] + b"\xc3")
    await session.until(lambda: session.info.title == "later")


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
def test_long_frames_go_in_chunks_both_ways(encoding: str) -> None:
    """A prompt and a sync of many chunks arrive whole, with a ping in between."""

    async def scenario(stage: Stage) -> None:
        stage.peer.limits = Limits(chunk_bytes=1_000)
        conversation = Conversation()
        conversation.user("ä🎈" * 2_000)
        client = stage.client("json" if encoding == "json" else "msgpack")
        opening = asyncio.ensure_future(client.session("s"))
        link = await stage.peer.accept()
        asked = await link.asked("subscribe")
        result = conversation.subscribed(conversation.reset())
        assert await link.send_in_chunks(Result(asked.id, link.codec.raw(result)), 1_000) > 10
        session = await opening
        assert session.messages == conversation.messages
        text = "ö🎈" * 5_000
        await session.prompt(text)
        await link.send(Ping(5))
        asked = await link.asked("prompt")
        assert asked.as_(PromptParams).parts == [TextPart(text=text)]
        assert link.chunks > 10

    on_every_network(scenario)("sockets")
    on_every_network(scenario)("seed1")


@on_every_network
async def test_states_are_told_in_order(stage: Stage) -> None:
    """Client and session tell the same story: connecting, live, offline, and again."""
    conversation = Conversation()
    client = stage.client()
    states = client.states()
    session, link = await stage.opened(client, conversation)
    told = session.states()
    stage.peer.statuses = [HTTPStatus.SERVICE_UNAVAILABLE]
    link.drop()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    await session.until_live()
    await client.close()
    assert [state async for state in states] == [
        *("live", "offline", "connecting", "offline", "connecting", "live", "closed")
    ]
    assert [state async for state in told] == [
        *("offline", "connecting", "offline", "connecting", "syncing", "live", "closed")
    ]


@in_simulation
async def test_after_a_sleep_of_the_machine_a_dead_link_is_left_soon(stage: Stage) -> None:
    """The wall clock jumped: the link is probed at once, and dropped long before two heartbeats."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert isinstance(stage.clock, SimClock)
    stage.clock.skew_wall(3_600_000)
    assert isinstance(await link.frame(), Ping)
    assert loop.time() - start <= 5
    link = await stage.peer.accept()
    assert loop.time() - start < 12
    await stage.sync(link, conversation)
    await session.until_live()


@in_simulation
async def test_after_a_sleep_of_the_machine_a_link_that_answers_is_kept(stage: Stage) -> None:
    """The pong to the probe is enough."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    assert isinstance(stage.clock, SimClock)
    stage.clock.skew_wall(3_600_000)
    for _ in range(5):
        frame = await link.frame()
        assert isinstance(frame, Ping)
        await link.send(Pong(frame.nonce, 0))
    assert len(stage.peer.hellos) == 1
    assert session.state == "live"


class Broken(Random):
    """Chance that fails."""

    def uniform(self, a: float, b: float) -> float:
        """Fail."""
        raise ZeroDivisionError((a, b))


@on_every_network
async def test_a_fault_in_the_client_closes_it_and_is_raised_by_close(stage: Stage) -> None:
    """Nothing vanishes: waiters get an error that has the cause, and close raises the cause itself."""
    conversation = Conversation()
    client = stage.client(random=Broken(1))
    session, link = await stage.opened(client, conversation)
    handle = await session.prompt("hi")
    link.drop()
    error = await closed(client)
    assert isinstance(error, ClientError)
    assert isinstance(error.__cause__, ZeroDivisionError)
    with pytest.raises(ClientError, match="ZeroDivisionError"):
        await handle.finished()
    assert session.state == "closed"
    with pytest.raises(ZeroDivisionError):
        await client.close()


def test_a_url_that_is_none_is_refused_at_once() -> None:
    """The error says what a URL must look like."""
    with pytest.raises(ValueError, match="ws://"):
        Client("example.com:8787")
