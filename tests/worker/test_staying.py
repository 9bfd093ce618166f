"""A turn goes on over lost connections and servers started again, and nothing is doubled or missing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midstream.agents import Turn
from midstream.client import Session
from midstream.client.transport import Transport
from midstream.protocol.model import InteractionPart, ToolPart
from tests.end_to_end.process import ServerProcess
from tests.proxy import proxy_to
from tests.worker.stage import OpenWorkerStage, WorkerStage, parts_of, text_of

SAID = "".join(f"{number} " for number in range(60)) + "done"


async def count(turn: Turn) -> None:
    """Count in three steps, with an approved tool between them."""
    for step_number in range(3):
        async with turn.step() as step:
            async with step.text() as text:
                for number in range(20):
                    await text.append(f"{step_number * 20 + number} ")
                    if number % 4 == 0:
                        await asyncio.sleep(0)
            call = await step.tool("look", input=step_number)
        assert (await turn.ask_approval(call, title="May I?")).approved
        await call.execute(lambda given: {"got": given})
        await turn.take_inputs()
    async with turn.step() as step, step.text() as text:
        await text.append("done")


async def approve_all(session: Session) -> None:
    """Approve whatever is asked, until cancelled."""
    approved: set[str] = set()

    def asked() -> list[InteractionPart]:
        return [
            part
            for part in parts_of(session.messages, InteractionPart)
            if part.status == "pending" and part.interaction_id not in approved
        ]

    while True:
        await session.until(asked)
        for part in asked():
            approved.add(part.interaction_id)
            await session.approve(part.interaction_id)


async def check_counted(stage: WorkerStage, session: Session) -> None:
    """Look whether the count is whole: each part once, in order."""
    assert text_of(session.messages) == SAID
    assert [(part.state, part.output) for part in parts_of(session.messages, ToolPart)] == [
        ("completed", {"got": number}) for number in range(3)
    ]
    assert [part.status for part in parts_of(session.messages, InteractionPart)] == ["resolved"] * 3
    await stage.proves(await stage.reader(include_internal=True))


async def counted_with_cuts(stage: WorkerStage, url: str) -> Session:
    """Run the counting agent through ``url`` to its end."""
    stage.work(count, url=url)
    session = await stage.session()
    approving = asyncio.create_task(approve_all(session))
    turn = await session.prompt("Count")
    assert (await turn.finished()).state == "completed"
    approving.cancel()
    return session


@pytest.mark.parametrize("nth", range(1, 30))
async def test_a_connection_that_is_cut_at_any_frame_of_the_server_does_no_harm(
    open_stage: OpenWorkerStage, nth: int
) -> None:
    """The frame is lost with the connection, whichever it is."""
    stage = await open_stage()
    proxy = await stage.proxy()
    frames = 0

    def cut(payload: bytes) -> bool:
        nonlocal frames
        frames += 1
        if frames == nth:
            asyncio.get_running_loop().call_soon(proxy.cut)
        return frames == nth

    proxy.drop(cut)
    session = await counted_with_cuts(stage, proxy.url)
    await check_counted(stage, session)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("nth", range(1, 40))
async def test_a_connection_that_is_cut_at_any_frame_of_the_worker_does_no_harm(
    open_stage: OpenWorkerStage, monkeypatch: pytest.MonkeyPatch, nth: int, *, arrives: bool
) -> None:
    """Whether the frame arrived or not, and whatever came after it."""
    stage = await open_stage()
    send = Transport.send
    frames = 0
    broken: list[Transport] = []

    def cut(transport: Transport, payload: bytes, lane: str | None = None) -> None:
        nonlocal frames
        frames += b"agent." in payload or (lane or "").startswith("turn_")
        if transport in broken:
            return
        if frames == nth and not broken:
            broken.append(transport)
            asyncio.get_running_loop().call_soon(transport.abort)
            if not arrives:
                return
        send(transport, payload, lane)

    monkeypatch.setattr(Transport, "send", cut)
    session = await counted_with_cuts(stage, stage.url)
    await check_counted(stage, session)


async def test_a_connection_that_is_cut_again_and_again_does_no_harm(open_stage: OpenWorkerStage) -> None:
    """After every few frames of the server."""
    stage = await open_stage()
    proxy = await stage.proxy()
    frames = 0

    def cut(payload: bytes) -> bool:
        nonlocal frames
        frames += 1
        if frames % 6 == 0:
            asyncio.get_running_loop().call_soon(proxy.cut)
        return frames % 6 == 0

    proxy.drop(cut)
    session = await counted_with_cuts(stage, proxy.url)
    assert proxy.accepted > 5
    await check_counted(stage, session)


async def test_a_turn_that_waits_for_a_person_survives_a_server_that_is_started_again(
    open_stage: OpenWorkerStage,
) -> None:
    """In good order: the approval is pending before and after, and asked once."""
    stage = await open_stage()
    proxy = await stage.proxy()
    stage.work(count, url=proxy.url)
    session = await stage.session(proxy.url)
    turn = await session.prompt("Count")
    for number in range(3):
        await session.until(lambda n=number: len(parts_of(session.messages, InteractionPart)) == n + 1)  # type: ignore[misc]  # bound
        await stage.restart()
        proxy.lead_to(stage.url)
        await session.until(lambda: session.state == "live")
        [asked] = await session.interactions()
        await session.approve(asked.interaction.interaction_id)
    assert (await turn.finished()).state == "completed"
    await check_counted(stage, session)


async def test_an_answer_that_is_given_while_the_worker_is_away_reaches_it(
    open_stage: OpenWorkerStage,
) -> None:
    """It comes with the next attach."""
    stage = await open_stage()
    proxy = await stage.proxy()
    stage.work(count, url=proxy.url)
    session = await stage.session()
    turn = await session.prompt("Count")
    for number in range(3):
        await session.until(lambda n=number: len(parts_of(session.messages, InteractionPart)) == n + 1)  # type: ignore[misc]  # bound
        proxy.refuse()
        proxy.cut()
        await proxy.until(lambda: proxy.connections == 0)
        [asked] = await session.interactions()
        await session.approve(asked.interaction.interaction_id)
        proxy.refuse(refuses=False)
    assert (await turn.finished()).state == "completed"
    await check_counted(stage, session)


@pytest.mark.parametrize("words", [0, 1, 7, 30])
async def test_a_turn_survives_a_server_that_is_killed(tmp_path: Path, words: int) -> None:
    """With ``kill -9``, in mid-text: what was not on disk is sent again, once."""
    database = tmp_path / "chat.db"
    server = await ServerProcess.start(database, "remote", tick_ms=1)
    stage = WorkerStage(database)
    said = asyncio.Event()
    go_on = asyncio.Event()

    async def agent(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            for number in range(40):
                if number == words:
                    said.set()
                    await go_on.wait()
                await text.append(f"{number} ")
        async with turn.step() as step, step.text() as text:
            await text.append("done")

    async with proxy_to(server.url) as proxy:
        stage.work(agent, url=proxy.url)
        client = await stage.client(proxy.url)
        session = await client.session("s", create=True)
        turn = await session.prompt("Count")
        await said.wait()
        await session.until(lambda: text_of(session.messages).count(" ") == words)
        await server.kill()
        go_on.set()
        server = await ServerProcess.start(database, "remote", tick_ms=1)
        proxy.lead_to(server.url)
        assert (await turn.finished()).state == "completed"
        assert text_of(session.messages) == "".join(f"{number} " for number in range(40)) + "done"
        assert await session.verify()
        await stage.close()
        assert await server.stop() == 0


async def test_a_question_stays_asked_over_servers_that_are_killed(tmp_path: Path) -> None:
    """With ``kill -9``, while it waits for a person: it is asked once, and the tool runs once."""
    database = tmp_path / "chat.db"
    server = await ServerProcess.start(database, "remote", tick_ms=1)
    stage = WorkerStage(database)
    async with proxy_to(server.url) as proxy:
        stage.work(count, url=proxy.url)
        client = await stage.client(proxy.url)
        session = await client.session("s", create=True)
        turn = await session.prompt("Count")
        for number in range(3):
            await session.until(lambda n=number: len(parts_of(session.messages, InteractionPart)) == n + 1)  # type: ignore[misc]  # bound
            await server.kill()
            server = await ServerProcess.start(database, "remote", tick_ms=1)
            proxy.lead_to(server.url)
            await session.until(lambda: session.state == "live")
            [asked] = await session.interactions()
            await session.approve(asked.interaction.interaction_id)
        assert (await turn.finished()).state == "completed"
        assert text_of(session.messages) == SAID
        assert [part.status for part in parts_of(session.messages, InteractionPart)] == ["resolved"] * 3
        assert [part.state for part in parts_of(session.messages, ToolPart)] == ["completed"] * 3
        assert await session.verify()
        await stage.close()
        assert await server.stop() == 0
