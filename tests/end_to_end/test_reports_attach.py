"""What similar systems get wrong, 1 to 6: joining, leaving and coming back in the middle of a turn.

Real sockets and a real file. A network that goes away is a proxy that swallows everything.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress

import msgspec

from midstream.client import Session
from midstream.protocol.calls import SubscribeResult, TurnResult
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import Unavailable
from midstream.protocol.frames import Change, Mark, Ping, Result
from midstream.protocol.model import ErrorPart, Message, TextPart
from midstream.server import TurnFailed
from tests.end_to_end.stage import OpenStage, last_text, until_ended, until_text
from tests.laws.reader import Reader, content

HEARTBEAT_MS = 1_000
"""A real one has 15 s; what is said in heartbeats does not change."""


def texts(messages: list[Message]) -> list[str]:
    """Return the texts of all text parts."""
    return [part.text for message in messages for part in message.parts if isinstance(part, TextPart)]


async def settled(answer: Awaitable[object]) -> None:
    """Wait for the answer of a subscribe that another one may have replaced before it began."""
    with suppress(Unavailable):
        assert isinstance(await answer, SubscribeResult)


async def test_attaching_twice_on_one_socket_gives_one_text(open_stage: OpenStage) -> None:
    """Also while an attach is in flight, and in the middle of a turn: there is no second copy."""
    stage = await open_stage()
    line = await stage.line()
    reader = await stage.reader(line=line)
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        for round_number in range(20):
            await text.append(f"{round_number} ")
            first = await reader.begin_join(cursor=reader.replica.cursor() if round_number % 2 else None)
            await text.append("while ")
            second = await reader.begin_join(cursor=reader.replica.cursor())
            await text.append("joining ")
            await settled(first)
            await second
    await stage.finish(turn, reader)
    expected = "".join(f"{number} while joining " for number in range(20))
    assert texts(reader.replica.messages()) == ["Go on", expected]
    assert reader.gaps == []
    await stage.proves(reader)


async def test_two_attaches_at_once_are_both_answered_and_only_the_last_counts(open_stage: OpenStage) -> None:
    """Every delta comes once, however often the session was subscribed."""
    stage = await open_stage()
    line = await stage.line()
    reader = await stage.reader(line=line)
    answers = [await line.begin("subscribe", {"session_id": "s", "limit": 5}) for _ in range(5)]
    last = await reader.begin_join()
    for answer in answers:
        await settled(answer)
    await last
    turn = await stage.turn()
    line.frames.clear()
    async with turn.step() as step, step.text() as text:
        await text.append("once")
        await until_text(reader, "once")
    await stage.finish(turn, reader)
    versions = [frame.version for frame in line.of(Change)]
    assert len(versions) == len(set(versions))
    await stage.proves(reader)


async def test_a_fresh_client_in_turn_2_finds_the_message_of_turn_1_untouched(open_stage: OpenStage) -> None:
    """What is streamed now belongs to the running turn alone, for those who join and those who were there."""
    stage = await open_stage()
    old = await stage.reader()
    first = await stage.turn("One")
    async with first.step() as step, step.text() as text:
        await text.append("The first answer")
    await stage.finish(first, old)
    of_turn_1 = [message for message in old.replica.messages() if message.turn_id == first.turn_id]
    second = await stage.turn("Two")
    async with second.step() as step, step.text() as text:
        await text.append("The second")
        await until_text(old, "The second")
        fresh = await stage.reader()
        assert last_text(fresh) == "The second"
        await text.append(" answer")
        await until_text(fresh, "The second answer")
        for reader in (old, fresh):
            assert [
                message for message in reader.replica.messages() if message.turn_id == first.turn_id
            ] == of_turn_1
    await stage.finish(second, fresh)
    await stage.proves(fresh)


async def test_a_link_that_is_gone_across_deltas_tools_and_the_turns_end_leaves_no_trace(
    open_stage: OpenStage,
) -> None:
    """For two heartbeats and more nothing arrives; then the client is equal, and its handle knows the end."""
    stage = await open_stage(heartbeat_ms=HEARTBEAT_MS)
    proxy = await stage.proxy()
    watcher = await stage.reader()
    client = await stage.client(proxy.url)
    session = await client.session("s")
    handle = await session.prompt("Go on")
    turn = await stage.puppet.next()
    async with turn.step() as step:
        async with step.text() as text:
            await text.append("Before")
            await session.until(lambda: texts(session.messages)[-1] == "Before")
            proxy.blackhole()
            await text.append(", and while nobody hears")
        call = await step.tool("search", input={"for": "it"})
        await call.run()
        await call.complete({"found": 3})
    await stage.finish(turn, watcher)
    await session.until(lambda: session.state != "live")
    proxy.heal()
    assert (await handle.finished()).state == "completed"
    await equal(session, watcher)
    assert await session.verify()
    assert proxy.accepted >= 2


async def equal(session: Session, watcher: Reader) -> None:
    """Wait until a client has what a reader has that saw everything, and hold them against each other."""
    await session.until_live()
    expected = content(watcher.replica)["messages"]
    await session.until(lambda: msgspec.to_builtins(session.messages) == expected)


def ends_a_turn(payload: bytes) -> bool:
    """Say whether a frame is the one that tells a turn's end."""
    frame = MSGPACK.decode_server_frame(payload)
    return isinstance(frame, Change) and any(turn.state != "running" for turn in frame.content.turns)


async def test_the_one_frame_that_says_the_turn_ended_is_lost_and_missed_within_a_heartbeat(
    open_stage: OpenStage,
) -> None:
    """No frame follows it that would show the hole; the mark of the heartbeat does."""
    stage = await open_stage(heartbeat_ms=HEARTBEAT_MS)
    proxy = await stage.proxy()
    proxy.drop(lambda payload: not proxy.dropped and ends_a_turn(payload))
    reader = await stage.reader(line=await stage.line(proxy.url))
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("The end comes")
    stage.puppet.end(turn)
    await proxy.until(lambda: len(proxy.dropped) == 1)
    assert reader.replica.running_turn is not None
    await until_ended(reader, turn.turn_id)
    assert [type(frame) for frame in reader.line.frames if not isinstance(frame, Ping)][-2:] == [Mark, Result]
    assert len(reader.gaps) == 1
    await stage.proves(reader)


async def test_a_client_whose_last_frame_was_lost_finishes_all_the_same(open_stage: OpenStage) -> None:
    """The same for a handle of the Python client, which stays on the same connection."""
    stage = await open_stage(heartbeat_ms=HEARTBEAT_MS)
    proxy = await stage.proxy()
    proxy.drop(lambda payload: not proxy.dropped and ends_a_turn(payload))
    session = await (await stage.client(proxy.url)).session("s")
    handle = await session.prompt("Go on")
    stage.puppet.end(await stage.puppet.next())
    assert (await handle.finished()).state == "completed"
    assert (len(proxy.dropped), proxy.accepted) == (1, 1)


async def test_who_comes_back_between_acceptance_and_first_token_sees_the_turn_running(
    open_stage: OpenStage,
) -> None:
    """By the sync, by the call `turn`, and whether or not it had a cursor."""
    stage = await open_stage()
    reader = await stage.reader()
    line = reader.line
    await reader.leave()
    turn = await stage.turn()
    again = await stage.line()
    await reader.rejoin(again)
    fresh = await stage.reader()
    for one in (reader, fresh):
        running = one.replica.running_turn
        assert running is not None
        assert (running.turn_id, running.phase) == (turn.turn_id, "starting")
        assert texts(one.replica.messages()) == ["Go on"]
    asked = (await again.ask(TurnResult, "turn", session_id="s")).turn
    assert asked is not None
    assert asked.turn_id == turn.turn_id
    assert not line.is_open
    await stage.finish(turn, reader)


async def test_a_turn_that_fails_while_nobody_is_there_is_found_failed(open_stage: OpenStage) -> None:
    """With its text as far as it came, and an error part; also after the server has restarted."""
    stage = await open_stage()
    gone = await stage.reader()
    turn = await stage.turn()
    await gone.leave()
    async with turn.step() as step, step.text() as text:
        await text.append("As far as it")
    stage.puppet.end(turn, TurnFailed("model_gone", "The model went away.", recoverable=True))
    for _ in range(2):
        fresh = await stage.reader()
        await until_ended(fresh, turn.turn_id)
        await gone.rejoin(await stage.line())
        for reader in (fresh, gone):
            ended = reader.replica.turns[turn.turn_id]
            assert ended.state == "failed"
            assert ended.error
            assert ended.error.code == "model_gone"
            assert texts(reader.replica.messages()) == ["Go on", "As far as it"]
            part = reader.replica.messages()[-1].parts[-1]
            assert isinstance(part, ErrorPart)
            assert (part.code, part.recoverable) == ("model_gone", True)
        await stage.proves(gone)
        await stage.restart()
