"""A connection that registers as a worker: what it may send, and what happens when another takes its name."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.server import Config, Limits, Server
from midstream.server.server import RunningServer
from tests.server.connections.readers import Frame
from tests.server.connections.serving import Client, client_of

pytestmark = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])
SMALL = Limits(frame_bytes=70_000, agent_frame_bytes=200_000)
WORKER = {"name": "w", "instance": "1"}


@asynccontextmanager
async def listening(path: object, *, agent: str = "remote") -> AsyncGenerator[RunningServer]:
    """A server that waits for workers."""
    config = Config(agent=agent, limits=SMALL)
    async with Server(database=str(path), config=config).listen("127.0.0.1", 0) as running:
        yield running


@pytest.fixture
async def server(tmp_path: object) -> AsyncGenerator[RunningServer]:
    """A server that waits for workers."""
    async with listening(f"{tmp_path}/a.db") as running:
        yield running


async def call(client: Client, id: int, method: str, **params: object) -> Frame:
    """Make a call; give its answer."""
    await client.send("call", id, method, params)
    while True:
        frame = await client.receive()
        if frame[0] in {"result", "error"} and frame[1] == id:
            return frame


def details(frame: Frame) -> object:
    """The reason of a refusal."""
    assert frame[0] == "error"
    return frame[2]["details"]  # type: ignore[index]  # an error's


async def attached(client: Client, session_id: str = "s") -> int:
    """Register, prompt, and attach to the turn; give the channel."""
    assert (await call(client, 1, "agent.register", **WORKER))[2] == {"lease_ms": 30_000}
    await call(client, 2, "sessions.create", session_id=session_id)
    parts = [{"type": "text", "text": "a"}]
    await client.send("call", 3, "prompt", {"session_id": session_id, "message_id": "a", "parts": parts})
    offer = await client.receive_tag("offer")
    assert offer[1] == session_id
    answer = await call(client, 4, "agent.attach", session_id=session_id, turn_id=offer[2])
    return int(cast("dict[str, int]", answer[2])["channel"])


async def test_writes_before_a_registration_are_refused(server: RunningServer, codec: Codec) -> None:
    """The connection lives."""
    async with client_of(server, codec) as client:  # type: ignore[arg-type]  # it has a host and a port
        for frame in (
            ("a", 1, 1, 1, "text"),
            ("part", 1, 1, "p"),
            ("write", 1, 1, {"op": "begin_step"}),
        ):
            await client.send(*frame)
            assert details(await client.receive()) == {"field": "tag"}
        for method, params in (
            ("agent.unregister", {}),
            ("agent.detach", {"channel": 1}),
            ("agent.decline", {"session_id": "s", "turn_id": "t"}),
        ):
            assert details(await call(client, 1, method, **params)) == {"reason": "not_registered"}


async def test_a_server_with_an_agent_takes_no_worker(tmp_path: object, codec: Codec) -> None:
    """It says what to do."""
    async with (
        listening(f"{tmp_path}/b.db", agent="demo") as server,
        client_of(server, codec) as client,  # type: ignore[arg-type]  # it has a host and a port
    ):
        refused = await call(client, 1, "agent.register", **WORKER)
        assert details(refused) == {"reason": "not_remote"}


async def test_a_connection_is_one_worker(server: RunningServer, codec: Codec) -> None:
    """It registers once."""
    async with client_of(server, codec) as client:  # type: ignore[arg-type]  # it has a host and a port
        await call(client, 1, "agent.register", **WORKER)
        refused = await call(client, 2, "agent.register", name="other", instance="1")
        assert details(refused) == {"reason": "registered"}
        assert (await call(client, 3, "agent.unregister"))[0] == "result"


async def test_whoever_takes_the_name_sends_the_other_process_away(
    server: RunningServer, codec: Codec
) -> None:
    """By a code that says not to come back; a new connection of the same process is none other."""
    async with client_of(server, codec) as first, client_of(server, codec) as second:  # type: ignore[arg-type]  # it has a host and a port
        await call(first, 1, "agent.register", **WORKER)
        async with client_of(server, codec) as same:  # type: ignore[arg-type]  # it has a host and a port
            await call(same, 1, "agent.register", **WORKER)
            assert (await call(first, 2, "sessions.list"))[0] == "result"
            await call(second, 1, "agent.register", name="w", instance="2")
            assert (await same.closed())[0] == 4506


async def test_a_long_write_goes_in_chunks_up_to_the_limit_of_workers(
    server: RunningServer, codec: Codec
) -> None:
    """Longer than clients may send, and refused by name beyond."""
    async with client_of(server, codec) as client:  # type: ignore[arg-type]  # it has a host and a port
        channel = await attached(client)
        for n, size in ((1, 100_000), (2, 300_000)):
            part = {"type": "data", "part_id": f"p{n}", "data_type": "big", "data": "x" * size}
            frame = codec.encode(["write", channel, n, {"op": "add_part", "part": part}])
            pieces = [frame[start : start + 50_000] for start in range(0, len(frame), 50_000)]
            for index, piece in enumerate(pieces):
                data = piece if codec.binary else piece.decode()
                await client.send("chunk", n, index == len(pieces) - 1, data)
            answer = await client.receive()
            if size == 100_000:
                assert answer[:2] == ["ack", channel]
                while answer[2] < n:  # type: ignore[operator]  # a number
                    answer = await client.receive()
            else:
                assert answer[0] == "error"
                assert answer[2]["details"]["limit"] == "agent_frame_bytes"  # type: ignore[index]  # an error's


async def test_a_turn_that_is_given_up_is_held_no_more(server: RunningServer, codec: Codec) -> None:
    """What is sent to its channel afterwards crossed with that, and is dropped."""
    async with client_of(server, codec) as client:  # type: ignore[arg-type]  # it has a host and a port
        channel = await attached(client)
        assert (await call(client, 5, "agent.detach", channel=channel))[0] == "result"
        assert (await call(client, 6, "agent.detach", channel=channel))[0] == "error"
        await client.send("write", channel, 1, {"op": "end_turn", "state": "completed"})
        turn = cast("dict[str, dict[str, str]]", (await call(client, 7, "turn", session_id="s"))[2])
        assert turn["turn"]["state"] == "running"


async def test_a_bad_write_is_told_and_the_attachment_lives(server: RunningServer, codec: Codec) -> None:
    """It changes nothing, and uses up its number."""
    async with client_of(server, codec) as client:  # type: ignore[arg-type]  # it has a host and a port
        channel = await attached(client)
        await client.send("write", channel, 1, {"op": "fly"})
        refused = await client.receive_tag("refused")
        assert (refused[1:3], refused[3]["code"]) == ([channel, 1], "invalid")  # type: ignore[index]  # an error's
        await client.send("write", channel, 2, {"op": "end_turn", "state": "completed"})
        assert (await client.receive_tag("detached"))[2] == "ended"
