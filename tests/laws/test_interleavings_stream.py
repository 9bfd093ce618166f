"""Races of the stream (SPEC 12): frames, pages and syncs that meet at a bad moment, made to for certain."""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol.calls import Page, SessionResult
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import Change, Chunk, Closed, Mark, Ping, Pong, ShortDelta, Skip, Sync
from midstream.protocol.merge import Replica
from midstream.protocol.model import TextPart
from midstream.protocol.outcomes import Gap
from tests.laws.cases_texts import end_of, step_of, text_of
from tests.laws.line import DELTAS, ChannelFrame
from tests.laws.notes import Note
from tests.laws.reader import Reader
from tests.laws.scene import Scene
from tests.laws.ways import clog
from tests.laws.world import World, in_world, pause
from tests.link import Direction, Shape


@in_world(outbox_bytes=4_096)
async def test_r1_deltas_of_two_parts_alternate_while_a_reader_is_behind(world: World) -> None:
    """One sync has both texts, each joined in its own order."""
    scene = await Scene.begin(world)
    step = await step_of(scene)
    text, reasoning = await text_of(step, "t"), await step.reasoning().__aenter__()
    reader = await scene.reader()
    await clog(scene, reader)
    for number in range(5):
        await text.append(f" t{number}")
        await reasoning.append(f" r{number}")
        await pause(0.05)
    reader.line.link.unstall("down")
    await reader.line.until(lambda: bool(reader.line.of(Sync)))
    (sync,) = reader.line.of(Sync)
    assert reader.line.deltas == []
    assert [entry.appends for entry in sync.payload.messages] == [
        [(1, " t0 t1 t2 t3 t4"), (2, " r0 r1 r2 r3 r4")]
    ]
    await scene.proves(reader)


class CutInside:
    """A link's filter that lets only the beginning of the next message through, and then nothing."""

    def __init__(self, share: float) -> None:
        self._share = share
        self.reached = asyncio.Event()

    def __call__(self, direction: Direction, data: bytes) -> bytes:
        """Return what is sent in place of a written piece."""
        if direction == "up":
            return data
        kept = b"" if self.reached.is_set() else data[: int(len(data) * self._share)]
        self.reached.set()
        return kept


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=lambda codec: codec.name)
@in_world()
async def test_r2_the_link_is_cut_at_or_in_a_frame_that_changes_two_messages(
    world: World, share: float, codec: Codec
) -> None:
    """The replica has the frame before and nothing of this one; the next sync brings it whole."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    text = await text_of(await turn.step().__aenter__())
    await scene.prompt(message_id="two")
    reader = await scene.reader(codec=codec)
    await text.append("upon a time")
    await pause()
    before = reader.content()
    reader.line.link.filter = cut = CutInside(share)
    await turn.take_inputs()
    await cut.reached.wait()
    await pause()
    reader.line.cut()
    await reader.line.until(lambda: not reader.line.is_open)
    assert reader.content() == before
    await reader.rejoin(await world.line(codec))
    assert [message.message_id for message in reader.replica.messages()][-1] == "two"
    await scene.proves(reader)


@in_world()
async def test_r2_the_link_is_cut_between_the_chunks_of_a_frame(world: World) -> None:
    """A frame of which some chunks came is not applied in any part."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    async with turn.step() as step:
        call = await step.tool("read", input={})
    reader = await scene.reader()
    before = reader.content()
    reader.line.link.reshape(Shape(capacity=70_000, split=0.0))
    reader.line.link.stall("down")
    await call.complete("x" * 500_000)
    await pause()
    reader.line.link.filter = CutInside(0.0)
    reader.line.link.unstall("down")
    await reader.line.until(lambda: any(isinstance(frame, Chunk) for frame in reader.line.raw))
    await pause()
    reader.line.cut()
    await reader.line.until(lambda: not reader.line.is_open)
    chunks = [frame for frame in reader.line.raw if isinstance(frame, Chunk)]
    assert not any(chunk.last for chunk in chunks)
    assert reader.content() == before
    await reader.rejoin(await world.line())
    await scene.proves(reader)


@in_world()
async def test_r3_a_message_below_the_window_changes(world: World) -> None:
    """It is ignored and the version goes on; a page that is read later shows it as it is then."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    action = await turn.action("index", "Indexing")
    await scene.prompt()
    await turn.take_inputs()
    reader = await scene.reader(limit=1)
    shown = [message.message_id for message in reader.replica.messages()]
    version = reader.replica.version
    await action.complete(title="Indexed")
    await reader.until_version(version + 1)
    assert reader.gaps == []
    assert [message.message_id for message in reader.replica.messages()] == shown
    await reader.read_all(limit=1)
    await scene.proves(reader)


@in_world()
async def test_r4_a_cursor_is_saved_while_a_frame_is_missing(world: World) -> None:
    """Nothing after a gap is applied, so the cursor stands before it, and the next sync fills it."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader()
    assert reader.channel is not None
    version = reader.replica.version
    came: list[ChannelFrame] = []

    async def keep(frame: ChannelFrame) -> None:
        came.append(frame)

    reader.line.routes[reader.channel] = keep
    for word in ("upon ", "a ", "time"):
        await text.append(word)
        await pause()
    assert [frame.version for frame in came if isinstance(frame, ShortDelta)] == [
        version + 1,
        version + 2,
        version + 3,
    ]
    for frame in came[1:]:
        assert isinstance(frame, ShortDelta)
        assert isinstance(reader.replica.apply(frame), Gap)
    saved = reader.replica.save()
    assert saved is not None
    assert saved.cursor.version == version
    await reader.leave()
    reader.replica = Replica.restore(saved)
    await reader.rejoin(await world.line())
    await scene.proves(reader)


@in_world()
async def test_r8_a_tool_commits_while_a_text_streams(world: World) -> None:
    """The commit stores the text as far as it came; the text goes on, and a crash costs only the rest."""
    scene = await Scene.begin(world)
    step = await step_of(scene)
    text = await text_of(step, "stored ")
    call = await step.tool("search", input={})
    reader = await scene.reader()
    await call.run()
    await text.append("and lost")
    await pause()
    assert "stored and lost" in str(reader.content())
    await scene.proves(reader)
    await scene.crash()
    await reader.rejoin(await world.line())
    part = reader.replica.messages()[-1].parts[0]
    assert getattr(part, "text", None) == "stored "
    await scene.proves(reader)


@in_world(outbox_bytes=4_096)
async def test_r13_a_slow_client_loses_an_early_frame(world: World) -> None:
    """It never gets a later one without a sync before, and is right at each moment."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    step = await turn.step().__aenter__()
    text = await text_of(step)
    await scene.reader()  # who is not slow, and shows what is right at each version
    reader = await scene.reader()
    await clog(scene, reader)
    reader.tags.clear()
    await text.append("lost early")
    await pause()
    await end_of(step)
    await turn.action("note", "Noted")
    reader.line.link.unstall("down")
    await reader.line.until(lambda: "sync" in reader.tags)
    await text_of(await turn.step().__aenter__(), "And ")
    await scene.finish(turn)
    await scene.proves(reader)
    assert reader.tags[0] == "sync"
    assert reader.gaps == []
    assert "change" in reader.tags[1:]


@in_world(outbox_bytes=4_096)
async def test_r13_a_change_is_published_between_the_empty_outbox_and_the_sync(world: World) -> None:
    """There is room for it again, but it comes after what was lost, so it waits for the sync too."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader()
    await clog(scene, reader)
    reader.tags.clear()
    await text.append("lost early")
    await pause()
    gate = world.database.hold("write", "before")
    change = await scene.user.begin("sessions.update", {"session_id": "s", "title": "Between"})
    await gate.reached()
    reader.line.link.unstall("down")
    await pause(1.0)
    assert reader.line.link.down.held == 0
    assert reader.tags == []
    gate.open()
    await change
    await scene.proves(reader)
    assert reader.tags == ["sync"]
    assert reader.gaps == []


@in_world()
async def test_r15_only_internal_changes_happen(world: World) -> None:
    """Skips move the version and marks agree with it; nothing is shown, and pages count what is visible."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    note = await Note.begin(turn)
    reader = await scene.reader()
    before, version = reader.content(), reader.replica.version
    reader.tags.clear()
    for word in ("Mind ", "the ", "budget"):
        await note.append(word)
        await pause()
    await note.done()
    await pause(20.0)
    assert reader.tags == ["skip"] * 4
    assert reader.replica.version == version + 4
    marks = [frame.version for frame in reader.line.of(Mark)]
    assert marks[-1] == version + 4
    assert reader.line.of(Skip)
    assert reader.gaps == []
    assert reader.content() == before
    await scene.proves(reader)
    newest = await scene.ask(Page, "messages", limit=1)
    assert [item.sequence for item in newest.items] == [3]
    assert newest.has_more
    assert newest.total == 4
    oldest = await scene.ask(Page, "messages", limit=2, before_sequence=newest.start_sequence or 0)
    assert [item.sequence for item in oldest.items] == [1, 2]
    assert not oldest.has_more


@in_world()
async def test_r23_the_frame_that_ends_the_turn_is_lost(world: World) -> None:
    """The mark of the next heartbeat is above the replica, and the sync brings the end."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    reader = await scene.reader()
    assert reader.channel is not None
    take = reader.line.routes[reader.channel]
    lost: list[ChannelFrame] = []

    async def lose(frame: ChannelFrame) -> None:
        if isinstance(frame, Change):
            lost.append(frame)
        else:
            await take(frame)

    reader.line.routes[reader.channel] = lose
    await scene.finish(turn)
    await pause()
    assert len(lost) == 1
    assert reader.replica.running_turn is not None
    began = world.loop.time()
    await reader.line.until(lambda: reader.replica.running_turn is None)
    assert world.loop.time() - began <= 15.0
    assert [gap.keep_cursor for gap in reader.gaps] == [True]
    await scene.proves(reader)


@in_world()
async def test_r30_a_long_frame_goes_in_chunks_while_the_session_goes_on(world: World) -> None:
    """The session's frames wait behind the last piece; pongs and frames of other sessions pass."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    async with turn.step() as step:
        call = await step.tool("read", input={})
    text = await text_of(await turn.step().__aenter__())
    await scene.ask(SessionResult, "sessions.create", session_id="b")
    line = await world.line()
    reader, other = Reader(line, "s", chronicle=world.chronicle), Reader(line, "b")
    await reader.join()
    await other.join()
    assert (reader.channel, other.channel) != (None, None)
    line.link.reshape(Shape(capacity=65_536, bandwidth=1_000_000.0, split=0.0))
    line.raw.clear()
    await call.complete("x" * 900_000)
    await text.append("upon a time")
    await scene.ask(SessionResult, "sessions.update", session_id="b", title="B")
    await line.send(Ping(99))
    await reader.until_version(reader.replica.version + 2)
    numbers = [index for index, frame in enumerate(line.raw) if isinstance(frame, Chunk)]
    between = line.raw[numbers[0] : numbers[-1]]
    assert len([frame for frame in between if isinstance(frame, Pong)]) == 1
    passed = [frame for frame in between if isinstance(frame, (*DELTAS, Change, Closed))]
    assert [frame.channel for frame in passed] == [other.channel]
    after = [frame for frame in line.raw[numbers[-1] :] if isinstance(frame, ShortDelta)]
    assert [frame.text for frame in after] == ["upon a time"]
    await scene.proves(reader)


@in_world()
async def test_r58_a_part_and_a_message_are_added_while_text_for_the_one_before_is_on_its_way(
    world: World,
) -> None:
    """What does not say where it goes goes to what was the last at its version, however late it comes."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    step = await turn.step().__aenter__()
    first = await text_of(step)
    reader = await scene.reader()
    reader.line.link.stall("down")
    reader.tags.clear()
    await first.append("upon a time")
    await pause()
    second = await text_of(step, "And ")
    await second.append("then")
    await first.append(", long ago")
    await pause()
    await scene.prompt()
    await turn.take_inputs()
    await text_of(await turn.step().__aenter__(), "As you wish")
    reader.line.link.unstall("down")
    await scene.proves(reader)
    parts = [part for message in reader.replica.messages()[-3:] for part in message.parts]
    said = [part.text for part in parts if isinstance(part, TextPart)]
    assert [*said[:2], said[-1]] == ["Once upon a time, long ago", "And then", "As you wish"]
    assert {"short", "d", "change"} == set(reader.tags)
    assert reader.gaps == []
