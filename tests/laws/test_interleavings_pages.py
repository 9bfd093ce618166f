"""Races of subscribing and of pages (SPEC 12): what is asked for meets what happens, made to for certain."""

from __future__ import annotations

import asyncio

from midstream.protocol.calls import EmptyResult, Page, SessionResult, SubscribeResult
from midstream.protocol.frames import Result, ShortDelta
from midstream.protocol.limits import Limits
from midstream.protocol.outcomes import Ignored, PageOutcome
from tests.laws.cases_texts import step_of, text_of
from tests.laws.line import ChannelFrame
from tests.laws.reader import Reader
from tests.laws.scene import Scene
from tests.laws.world import World, in_world, pause


@in_world()
async def test_r14_a_page_is_computed_then_a_change_is_published_then_the_page_is_sent(world: World) -> None:
    """Text that comes while the page is read from the disk waits, and stands behind the page."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader(limit=1)
    gate = world.database.hold("read", "after")
    page = await reader.begin_page(1)
    await gate.reached()
    await text.append("upon a time")
    await pause()
    gate.open()
    await page
    await pause()
    kinds = [type(frame) for frame in reader.line.frames if isinstance(frame, (Result, ShortDelta))]
    assert kinds[-2:] == [Result, ShortDelta]
    assert reader.pages == [PageOutcome.MERGED]
    await reader.read_all()
    await scene.proves(reader)


@in_world()
async def test_r14_a_page_waits_to_be_sent_while_changes_follow(world: World) -> None:
    """On a link that stands still, the page stands before what was published after it."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader(limit=1)
    reader.line.link.stall("down")
    page = await reader.begin_page(1)
    await pause()
    await text.append("upon a time")
    await scene.ask(SessionResult, "sessions.update", title="Meanwhile")
    reader.line.link.unstall("down")
    await page
    await reader.read_all()
    await scene.proves(reader)
    assert PageOutcome.REREAD not in reader.pages


@in_world(history_bytes=0, limits=Limits(page_bytes=2_000))
async def test_more_was_missed_than_a_page_may_carry(world: World) -> None:
    """The reader gets a reset with the newest messages that fit, and reads the others as pages."""
    scene = await Scene.begin(world)
    reader = await scene.reader()
    await reader.leave()
    for number in range(5):
        turn = await scene.turn(f"{number} ".ljust(900, "."))
        await scene.finish(turn)
    await reader.rejoin(await world.line())
    assert reader.tags[-1] == "reset"
    assert reader.replica.has_more
    shown = [message.sequence for message in reader.replica.messages()]
    assert shown == list(range(shown[0], 8))
    assert len(shown) == 2
    await reader.read_all()
    await scene.proves(reader)


@in_world()
async def test_r20_subscribe_is_sent_twice_in_the_middle_of_a_text(world: World) -> None:
    """There is one subscription and one text, whichever answer comes when."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader()
    await text.append("upon ")
    first = await reader.begin_join(cursor=reader.replica.cursor())
    second = await reader.begin_join()
    await text.append("a ")
    await asyncio.wait([first, second])
    await text.append("time")
    await pause()
    assert "Once upon a time" in str(reader.content())
    deltas = reader.line.deltas
    assert len({frame.version for frame in deltas}) == len(deltas)
    await scene.proves(reader)


@in_world()
async def test_r25_an_older_snapshot_comes_after_newer_deltas(world: World) -> None:
    """A page and a sync of an earlier version change nothing."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader(limit=1)
    other = await scene.reader()
    page = await scene.ask(Page, "messages", limit=1, before_sequence=reader.replica.from_sequence or 0)
    await reader.leave()
    older = reader.replica.cursor()
    await text.append("upon a time")
    await pause()
    newer = Reader(await world.line(), "s")
    newer.replica = reader.replica
    await newer.join(cursor=older)
    before = newer.content()
    assert newer.replica.merge_page(page) is PageOutcome.REREAD
    await other.join(cursor=older)
    replays = [frame for frame in other.line.frames if isinstance(frame, Result)]
    payload = other.line.codec.decode_result("subscribe", replays[-1].result)
    assert isinstance(payload, SubscribeResult)
    assert isinstance(newer.replica.apply_sync(payload.sync), Ignored)
    assert newer.content() == before
    await scene.proves(other)


@in_world()
async def test_r26_a_client_switches_between_two_sessions_in_the_middle_of_a_text(world: World) -> None:
    """Frames name channels: nothing of one session enters the other, and coming back begins with a sync."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    await scene.ask(SessionResult, "sessions.create", session_id="b")
    line = await world.line()
    first = Reader(line, "s", chronicle=world.chronicle)
    second = Reader(line, "b", chronicle=world.chronicle)
    await first.join()
    await text.append("upon ")
    await line.ask(EmptyResult, "unsubscribe", session_id="s")
    await second.join()
    await text.append("a ")
    await scene.ask(SessionResult, "sessions.update", session_id="b", title="B")
    await second.until_version(2)
    assert second.replica.messages() == []
    await line.ask(EmptyResult, "unsubscribe", session_id="b")
    await first.join(cursor=first.replica.cursor())
    await text.append("time")
    await pause()
    assert first.channel != second.channel
    assert "Once upon a time" in str(first.content())
    await scene.proves(first)


@in_world(history_bytes=0)
async def test_r28_a_change_comes_in_the_moment_of_a_subscribe(world: World) -> None:
    """Text that comes while the catch-up is read stands behind the answer, with the next version."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader()
    await reader.leave()
    await text.append("upon ")
    await pause()
    reader.line = await world.line()
    gate = world.database.hold("read", "after")
    answer = await reader.begin_join(cursor=reader.replica.cursor())
    await gate.reached()
    await text.append("a time")
    await pause()
    gate.open()
    await answer
    await reader.line.until(lambda: reader.tags[-1] == "short")
    assert reader.tags[-2:] == ["catchup", "short"]
    assert reader.gaps == []
    await scene.proves(reader)


@in_world()
async def test_r29_an_unsubscribe_overtakes_the_answer_of_a_subscribe(world: World) -> None:
    """No subscription is left on the server, and the replica is not touched by what comes late."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader()
    await text.append("once ")  # what the first join was given is not what the second one needs
    await pause()
    version = reader.replica.version
    gate = world.database.hold("read", "before")
    answer = await reader.begin_join()
    await gate.reached()
    left = await reader.line.begin("unsubscribe", {"session_id": "s"})
    await left
    gate.open()
    await asyncio.wait([answer])
    assert isinstance(answer.exception(), Exception)
    seen = len(reader.line.frames)
    await text.append("upon a time")
    await pause()
    assert [type(frame) for frame in reader.line.frames[seen:] if isinstance(frame, ChannelFrame)] == []
    assert reader.replica.version == version
    await reader.join(cursor=reader.replica.cursor())
    await scene.proves(reader)


@in_world()
async def test_r11_the_page_comes_first_and_then_the_clear(world: World) -> None:
    """The page is merged, then the clear drops what it brought."""
    scene = await Scene.begin(world)
    reader = await scene.reader(limit=1)
    reader.line.link.stall("down")
    page = await reader.begin_page(1)
    await pause()
    await scene.ask(SessionResult, "sessions.clear")
    reader.line.link.unstall("down")
    await page
    await scene.proves(reader)
    assert reader.pages == [PageOutcome.MERGED]
    assert reader.replica.messages() == []
    assert not reader.replica.has_more


@in_world()
async def test_r11_the_clear_comes_first_and_then_the_page(world: World) -> None:
    """The page that was asked from below the clear is dropped."""
    scene = await Scene.begin(world)
    reader = await scene.reader(limit=1)
    reader.line.link.stall("down")
    await scene.ask(SessionResult, "sessions.clear")
    page = await reader.begin_page(1)
    await pause()
    reader.line.link.unstall("down")
    await page
    await scene.proves(reader)
    assert reader.pages == [PageOutcome.DROPPED]
    assert reader.replica.messages() == []


@in_world()
async def test_r11_a_page_from_another_path_is_older_than_the_clear(world: World) -> None:
    """Its version is not the replica's, so it is read again."""
    scene = await Scene.begin(world)
    reader = await scene.reader(limit=1)
    before = reader.replica.from_sequence
    assert before is not None
    page = await scene.ask(Page, "messages", before_sequence=before)
    assert len(page.items) == 1
    await scene.ask(SessionResult, "sessions.clear")
    await reader.line.until(lambda: reader.replica.messages() == [])
    assert reader.replica.merge_page(page) is PageOutcome.REREAD
    await scene.proves(reader)
