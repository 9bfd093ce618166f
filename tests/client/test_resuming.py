"""A replica goes on from where it was, whatever happens to the link and to the frames."""

from __future__ import annotations

import asyncio

from midstream.protocol.calls import Cursor, SubscribeParams
from midstream.protocol.frames import Closed, Delta, Signal, Sync
from midstream.protocol.values import Value
from tests.client.conversation import Conversation
from tests.client.peer import PeerLink
from tests.client.stage import Stage, answer_subscribe, in_simulation, on_every_network


@on_every_network
async def test_after_a_lost_connection_it_resumes_with_its_cursor(stage: Stage) -> None:
    """Epoch, version and last commit are what the replica reached, and the catchup brings the rest."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(conversation.user("hi"))
    await link.send(conversation.agent())
    committed = conversation.version
    await link.send(conversation.delta("Hel"))
    await session.until(lambda: session.version == conversation.version)
    reached = conversation.version
    link.drop()
    conversation.delta("lo")
    link = await stage.peer.accept()
    params = await stage.sync(link, conversation)
    assert params.cursor == Cursor(epoch=conversation.epoch, version=reached, durable=committed)
    await session.until(lambda: session.version == conversation.version)
    assert session.messages == conversation.messages


@on_every_network
async def test_a_lost_answer_to_subscribe_is_asked_for_again(stage: Stage) -> None:
    """The second connection subscribes anew, and the first one's channel means nothing on it."""
    conversation = Conversation()
    conversation.user("hi")
    opening = asyncio.ensure_future(stage.client().session("s"))
    link = await stage.peer.accept()
    await link.asked("subscribe")
    link.drop()
    link = await stage.peer.accept()
    asked = await link.asked("subscribe")
    await link.send(conversation.mark())
    await answer_subscribe(asked, conversation)
    session = await opening
    assert session.messages == conversation.messages


@on_every_network
async def test_frames_between_a_subscribe_and_its_answer_are_ignored(stage: Stage) -> None:
    """They belong to the subscription that ends, and the answer covers them: one text, no second copy."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(conversation.user("hi"))
    await link.send(conversation.agent())
    conversation.delta("lost ")
    await link.send(conversation.delta("seen "))
    asked = await link.asked("subscribe")
    await link.send(conversation.delta("in flight "))
    await answer_subscribe(asked, conversation)
    await link.send(conversation.delta("after"))
    await session.until(lambda: session.version == conversation.version)
    assert session.messages == conversation.messages


@on_every_network
async def test_a_gap_is_filled_from_the_cursor(stage: Stage) -> None:
    """A version that is missing leads to a subscription with the cursor before it."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    before = conversation.version
    conversation.titled("lost")
    await link.send(conversation.titled("seen"))
    params = await stage.sync(link, conversation)
    assert params.cursor
    assert params.cursor.version == before
    await session.until(lambda: session.state == "live")
    assert session.info.title == "seen"


@on_every_network
async def test_a_lost_last_frame_is_noticed_by_the_mark(stage: Stage) -> None:
    """The frame that says that the turn ended is lost; the mark of the next heartbeat gives it away."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(conversation.user("hi"))
    conversation.ends()
    await link.send(conversation.mark())
    await stage.sync(link, conversation)
    await session.until(lambda: session.turn is None and session.state == "live")
    assert session.turns["t1"].state == "completed"


async def _gap(stage: Stage, link: PeerLink, conversation: Conversation) -> SubscribeParams:
    conversation.titled("lost")
    await link.send(conversation.titled("seen"))
    return await stage.sync(link, conversation)


@in_simulation
async def test_a_second_gap_within_a_minute_begins_anew(stage: Stage) -> None:
    """A copy that has gaps twice is not trusted; after a quiet minute it is again."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    assert (await _gap(stage, link, conversation)).cursor
    await session.until(lambda: session.state == "live")
    assert not (await _gap(stage, link, conversation)).cursor
    await session.until(lambda: session.state == "live")
    for _ in range(9):
        await asyncio.sleep(10)
        await link.send(conversation.mark())
    assert (await _gap(stage, link, conversation)).cursor
    await session.until(lambda: session.info.title == "seen")


@on_every_network
async def test_a_gap_that_no_cursor_can_fill_begins_anew(stage: Stage) -> None:
    """A delta to a message that must be held and is not: the copy is wrong, so it is replaced."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    conversation.agent()
    grown = conversation.delta("x")
    await link.send(Delta(grown.channel, grown.version - 1, 5, 1, 1, "x"))
    params = await stage.sync(link, conversation)
    assert not params.cursor
    await session.until(lambda: session.messages == conversation.messages)


@in_simulation
async def test_gaps_without_end_are_met_with_pauses(stage: Stage) -> None:
    """A server that is never right is not stormed: later subscriptions come after growing pauses."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    loop = asyncio.get_running_loop()
    start = loop.time()
    for _ in range(12):
        conversation.version += 1
        await link.send(conversation.mark())
        asked = await link.asked("subscribe")
        conversation.version -= 1
        await asked.result(conversation.subscribed(conversation.reset()))
        conversation.version += 1
    assert loop.time() - start > 5
    await session.until(lambda: session.state == "live")


@on_every_network
async def test_a_reload_subscribes_again_with_the_cursor(stage: Stage) -> None:
    """The server loaded the session anew, under another channel; the old one means nothing."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(Closed(conversation.channel, "reload", True))  # noqa: FBT003 - a frame's elements have no names
    asked = await link.asked("subscribe")
    old = conversation.titled("by the old channel")
    conversation.channel = 8
    await answer_subscribe(asked, conversation)
    await link.send(old)
    await link.send(conversation.titled("by the new channel"))
    await session.until(lambda: session.version == conversation.version)
    assert session.info.title == "by the new channel"


@on_every_network
async def test_a_new_connection_subscribes_before_it_repeats_anything(stage: Stage) -> None:
    """All sessions are on their way to live before calls of old take their places."""
    client = stage.client()
    first, second = Conversation("a", channel=1), Conversation("b", channel=2)
    session, link = await stage.opened(client, first)
    opening = asyncio.ensure_future(client.session("b"))
    await stage.sync(link, second)
    await opening
    reading = asyncio.ensure_future(session.interactions())
    await link.asked("interactions")
    link.drop()
    link = await stage.peer.accept()
    subscribed = [await link.asked("subscribe") for _ in range(2)]
    assert [asked.as_(SubscribeParams).session_id for asked in subscribed] == ["a", "b"]
    await link.asked("interactions")
    reading.cancel()


@on_every_network
async def test_a_sync_that_nobody_asked_for_is_applied(stage: Stage) -> None:
    """A slow reader, or a new epoch, gets a sync in place of single frames."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    before = conversation.version
    conversation.user("hi")
    conversation.epoch = "00000000000000bb"
    await link.send(Sync(conversation.channel, conversation.catchup(before)))
    await link.send(conversation.agent())
    await session.until(lambda: session.version == conversation.version)
    assert session.messages == conversation.messages
    link.drop()
    link = await stage.peer.accept()
    cursor = (await stage.sync(link, conversation)).cursor
    assert cursor
    assert cursor.epoch == "00000000000000bb"


@on_every_network
async def test_internal_versions_are_skipped_over(stage: Stage) -> None:
    """A skip moves the replica on without a change."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(conversation.skip())
    await link.send(conversation.titled("after"))
    await session.until(lambda: session.version == conversation.version)
    assert session.info.title == "after"


@on_every_network
async def test_a_replica_that_has_grown_too_large_begins_anew_between_turns(stage: Stage) -> None:
    """Memory is bounded: past the limit only the newest page is held, and nothing is cut during a turn."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(max_messages=4), conversation, limit=2)
    for number in range(5):
        await link.send(conversation.user(str(number), turn_id=f"t{number}"))
    await session.until(lambda: session.version == conversation.version)
    assert len(session.messages) == 5
    assert await link.is_quiet()
    await link.send(conversation.ends("t4"))
    asked = await link.asked("subscribe")
    params = asked.as_(SubscribeParams)
    assert not params.cursor
    assert params.limit == 2
    await asked.result(conversation.subscribed(conversation.reset(last=2)))
    await session.until(lambda: session.state == "live")
    assert session.messages == conversation.messages[-2:]


@on_every_network
async def test_a_first_page_above_the_limit_is_not_asked_for_over_and_over(stage: Stage) -> None:
    """What a reset gives is no growth: it takes as much again before the replica begins anew."""
    conversation = Conversation()
    for number in range(5):
        conversation.user(str(number), turn_id=f"t{number}")
    conversation.ends("t4")
    session, link = await stage.opened(stage.client(max_messages=4), conversation, limit=5)
    for number in range(5, 10):
        await link.send(conversation.user(str(number), turn_id=f"t{number}"))
        await link.send(conversation.ends(f"t{number}"))
    await session.until(lambda: session.version == conversation.version)
    assert len(session.messages) == 10
    assert await link.is_quiet()
    await link.send(conversation.user("10", turn_id="t10"))
    await link.send(conversation.ends("t10"))
    await stage.sync(link, conversation)


@on_every_network
async def test_signals_reach_their_readers_and_no_replica(stage: Stage) -> None:
    """A signal has no version; one of a channel that is not ours goes nowhere."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    signals = session.signals()
    data: Value = {"typing": True}
    await link.send(Signal(99, "somebody", "typing", None))
    await link.send(Signal(conversation.channel, "somebody", "typing", data))
    signal = await anext(signals)
    assert (signal.sender, signal.name, signal.data) == ("somebody", "typing", data)
    assert session.version == conversation.version
