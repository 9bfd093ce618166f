"""A producer that is ahead waits, and what is kept for it is bounded."""

from __future__ import annotations

import asyncio

import pytest

from midstream.agents import TextStream, Turn
from midstream.client.transport import Transport
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import LimitExceeded
from midstream.protocol.frames import Ack, Append, WriteFrame
from midstream.protocol.limits import DEFAULT_LIMITS, Limits
from midstream.worker.attachment import Attachment, AttachmentFrame
from tests.client.stage import Stage, in_simulation, on_every_network
from tests.worker.peer import ATTACHED, Taker, again, attached, registered, working
from tests.worker.stage import OpenWorkerStage, text_of

DELTAS = 100_000


async def test_a_hundred_thousand_deltas_as_fast_as_can_be_pass_in_bounded_memory(
    open_stage: OpenWorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one step: no more than the window is on its way, and what is kept is about what the text is."""
    stage = await open_stage()
    on_way: dict[int, int] = {}
    most_on_way = most_kept = frames = sent = 0
    send, take, append = Transport.send, Attachment.frame, Attachment.append

    def sending(transport: Transport, payload: bytes, lane: str | None = None) -> None:
        nonlocal most_on_way, frames, sent
        frame = MSGPACK.decode_client_frame(payload)
        if isinstance(frame, (Append, WriteFrame)):
            on_way[frame.n] = len(payload)
            most_on_way = max(most_on_way, sum(on_way.values()) if len(on_way) < 50 else most_on_way)
            frames += 1
            sent += len(payload)
        send(transport, payload, lane)

    def taking(attachment: Attachment, frame: AttachmentFrame) -> object:
        nonlocal most_on_way
        if isinstance(frame, Ack):
            most_on_way = max(most_on_way, sum(on_way.values()))
            for n in [n for n in on_way if n <= frame.n]:
                del on_way[n]
        return take(attachment, frame)

    def appending(attachment: Attachment, part_id: str, text: str) -> None:
        nonlocal most_kept
        assert attachment.has_room
        append(attachment, part_id, text)
        most_kept = max(most_kept, attachment.kept_bytes)

    monkeypatch.setattr(Transport, "send", sending)
    monkeypatch.setattr(Attachment, "frame", taking)
    monkeypatch.setattr(Attachment, "append", appending)

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            for number in range(DELTAS):
                await text.append(f"{number} ")

    stage.work(agent)
    session = await stage.session()
    assert (await (await session.prompt("Go on")).finished()).state == "completed"
    said = "".join(f"{number} " for number in range(DELTAS))
    assert text_of(session.messages) == said
    assert 0 < most_on_way <= DEFAULT_LIMITS.agent_window_bytes
    assert most_kept < 3 * len(said)
    assert frames <= DELTAS + 3
    assert sent < 3 * len(said)


@on_every_network
async def test_an_agent_waits_while_its_window_is_full(stage: Stage) -> None:
    """It goes on as far as what is acknowledged allows, and not one write further."""
    said = 0

    async def agent(turn: Turn) -> None:
        nonlocal said
        async with turn.step() as step, step.text() as text:
            while True:
                await text.append("0123456789" * 10)
                said += 100
                await asyncio.sleep(0)

    async with working(stage, agent):
        link, _ = await registered(stage)
        await attached(link)
        taker = Taker(link)
        acknowledged = 0
        for _ in range(5):
            await taker.take_all()
            on_way = sum(taker.sizes.values()) - acknowledged
            assert ATTACHED.window_bytes - 300 < on_way <= ATTACHED.window_bytes
            assert said <= sum(taker.sizes.values()) + 300
            acknowledged = sum(taker.sizes.values())
            await taker.acknowledge(max(taker.writes))


@in_simulation
async def test_an_agent_waits_while_there_is_no_connection(stage: Stage) -> None:
    """After a window of writes; then all of it is sent, once."""
    said = 0

    async def agent(turn: Turn) -> None:
        nonlocal said
        async with turn.step() as step, step.text() as text:
            for _ in range(1_000):
                await text.append("0123456789" * 10)
                said += 100
                await asyncio.sleep(0.01)

    async with working(stage, agent):
        link, _ = await registered(stage)
        await attached(link)
        taker = Taker(link)
        await taker.take(3)
        await stage.peer.stop()
        await asyncio.sleep(60)
        assert ATTACHED.window_bytes / 2 < said < 2 * ATTACHED.window_bytes
        await stage.peer.start(stage.peer.port)
        link, _ = await registered(stage)
        result = again(ATTACHED, next_n=3, durable_n=0)
        params = await attached(link, result, offer=False)
        assert params.generation == 1
        taker = Taker(link, result)
        while sum(len(write.text) for write in taker.writes.values() if isinstance(write, Append)) < 100_000:
            last = max(taker.writes, default=2)
            [write] = await taker.take()
            assert write.n == last + 1
            await taker.acknowledge(write.n)
        assert said == 100_000


@on_every_network
async def test_what_is_kept_is_bounded_and_a_commit_makes_room(stage: Stage) -> None:
    """An agent that streams more than a message has in a step is told so, and can still end the step."""
    stage.peer.limits = Limits(message_bytes=3_000)
    refused = asyncio.Event()

    async def stream(text: TextStream) -> None:
        while True:
            await text.append("0123456789" * 5)

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            with pytest.raises(LimitExceeded, match="message_bytes"):
                await stream(text)
            refused.set()
        async with turn.step() as step, step.text() as text:
            await text.append("And on")

    async with working(stage, agent):
        link, _ = await registered(stage)
        await attached(link)
        taker = Taker(link)
        while not refused.is_set():
            await taker.take()
            await taker.acknowledge(max(taker.writes), 0)
        while not any(isinstance(one, Append) and one.text == "And on" for one in taker.writes.values()):
            await taker.take()
            await taker.acknowledge(max(taker.writes))
        text = "".join(one.text for one in taker.writes.values() if isinstance(one, Append))
        assert 1_000 < len(text) <= 3_000
