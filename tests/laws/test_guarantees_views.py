"""What is promised of versions, answers, pages, times and views (SPEC 1.3: G5, G6, G8, G14, 15, 19, 20)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from midstream.protocol.calls import (
    Page,
    PromptResult,
    RespondResult,
    SessionResult,
    StopResult,
    VerifyResult,
)
from midstream.protocol.codec import JSON
from midstream.protocol.frames import Change, SessionFrame, Skip, Sync
from midstream.protocol.model import TextPart
from midstream.protocol.values import Value
from tests.laws.cases_texts import step_of, text_of
from tests.laws.cases_tools import call_of
from tests.laws.cases_turns import busy_turn_of
from tests.laws.line import DELTAS
from tests.laws.reader import Chronicle, Reader
from tests.laws.scene import Scene
from tests.laws.ways import fill, make_ballast
from tests.laws.world import World, in_world, pause, play


def covered(frame: SessionFrame, last: int) -> int:
    """Return the version after a frame, which must go on from the one before."""
    if isinstance(frame, Sync):
        assert frame.payload.from_version
        assert frame.payload.from_version <= last
        return frame.payload.version
    if isinstance(frame, Skip):
        assert frame.from_version <= last
    elif isinstance(frame, (*DELTAS, Change)):
        assert frame.version == last + 1
    return frame.version


@pytest.mark.parametrize("full", [False, True], ids=["visible", "internal"])
@in_world()
async def test_g6_every_version_comes_in_order_each_in_one_frame(world: World, *, full: bool) -> None:
    """A reader that is not behind sees each version once, over commits, deltas, hidden changes and epochs."""
    scene = await Scene.begin(world)
    await scene.restart()
    reader: Reader = await scene.reader(include_internal=full)
    first = last = reader.replica.version
    turn = await busy_turn_of(scene)
    await scene.prompt()
    await turn.take_inputs()
    await turn.action("note", "Noted")
    await scene.finish(turn)
    await scene.ask(SessionResult, "sessions.clear")
    await pause()
    frames = [frame for frame in reader.line.frames if isinstance(frame, SessionFrame)]
    for frame in frames:
        last = covered(frame, last)
    assert last == (await scene.fresh()).replica.version
    assert last - first == len(frames) > 10
    assert isinstance(frames[0], Sync)  # a new epoch begins with one


@in_world()
async def test_g5_copies_with_the_same_revision_are_equal(world: World) -> None:
    """Readers in every encoding and pace, old and new, over a crash: the chronicle knows no two states."""
    scene = await Scene.begin(world)
    readers = [await scene.reader(), await scene.reader(codec=JSON), await scene.reader(pace_ms=20)]
    turn = await busy_turn_of(scene)
    readers.append(await scene.reader())
    await scene.crash()
    for reader in readers:
        await reader.rejoin(await world.line())
    await scene.finish(await scene.turn())
    for reader in readers:
        await scene.proves(reader)
    assert readers[0].replica.turns[turn.turn_id].state == "failed"
    assert len(world.chronicle) > 10


def test_g5_a_chronicle_refuses_two_states_of_one_version() -> None:
    """Else the test above would prove nothing."""
    chronicle = Chronicle()
    chronicle.compare(("s", "epoch", "turn", "turn_1", 7), b"one")
    chronicle.compare(("s", "epoch", "turn", "turn_1", 7), b"one")
    with pytest.raises(AssertionError, match="two states"):
        chronicle.compare(("s", "epoch", "turn", "turn_1", 7), b"another")


TEXT: Value = [{"type": "text", "text": "Hi"}]
ANSWERS: dict[str, dict[str, Value]] = {
    "messages": {},
    "message": {"message_id": "input_1"},
    "turn": {},
    "interactions": {},
    "verify": {"from_sequence": 1, "to_sequence": 9},
    "sessions.get": {},
    "sessions.update": {"title": "Asked while it streams"},
}


@pytest.mark.parametrize("pace_ms", [None, 50], ids=["live", "paced"])
@pytest.mark.parametrize("method", ANSWERS)
@in_world()
async def test_g8_an_answer_stands_at_its_version(world: World, method: str, pace_ms: int | None) -> None:
    """While text streams, whatever is answered shows exactly the version that the replica has reached."""
    scene = await Scene.begin(world)
    text = await text_of(await step_of(scene))
    reader = await scene.reader(pace_ms=pace_ms)
    stands: list[tuple[object, object]] = []

    def note(result: msgspec.Struct) -> None:
        stands.append((getattr(result, "version", None), reader.replica.version))

    for number in range(20):
        await text.append(f"{number} ")
        answer = await reader.line.begin(method, {"session_id": "s", **ANSWERS[method]}, note)
        await pause(0.003 * number)
        await asyncio.wait([answer])
    assert len(stands) == 20
    assert [shown for shown, _ in stands] == [reached for _, reached in stands]
    assert len(set(stands)) > 5


@pytest.mark.parametrize("pace_ms", [None, 50], ids=["live", "paced"])
@in_world()
async def test_g8_an_answer_comes_after_what_it_brought_about(world: World, pace_ms: int | None) -> None:
    """At its place in the stream, the replica shows the prompt, the cancel, the answer and the stop."""
    scene = await Scene.begin(world)
    turn, call = await call_of(scene)
    await scene.approval(turn, call)
    asked = (await scene.asked()).interaction_id
    reader = await scene.reader(pace_ms=pace_ms)
    replica = reader.replica
    shown: dict[str, object] = {}

    def note(result: msgspec.Struct) -> None:
        session = replica.session
        assert session is not None
        if isinstance(result, StopResult):
            shown["stop"] = replica.running_turn
        elif isinstance(result, RespondResult):
            shown["respond"] = result.interaction in replica.messages()[-1].parts
        elif isinstance(result, PromptResult):
            shown[result.state] = result.message_id in session.queue

    approved: Value = {"kind": "approval", "decision": "approved"}
    calls: list[tuple[str, dict[str, Value]]] = [
        ("prompt", {"message_id": "waits", "parts": [{"type": "text", "text": "Wait"}]}),
        ("respond", {"interaction_id": asked, "response": approved}),
        ("cancel_input", {"message_id": "waits"}),
        ("stop", {}),
    ]
    for method, params in calls:
        await (await reader.line.begin(method, {"session_id": "s", **params}, note))
    assert shown == {"queued": True, "respond": True, "cancelled": False, "stop": None}


@in_world(outbox_bytes=4_096)
async def test_g8_the_answer_to_a_reader_that_is_behind_follows_its_sync(world: World) -> None:
    """Its way is full when its prompt is stored: a sync is built for the answer, and stands before it."""
    scene = await Scene.begin(world)
    await scene.turn()
    await make_ballast(scene)
    reader = await scene.reader()
    queues: list[list[str]] = []

    def look(_: msgspec.Struct) -> None:
        queues.append(reader.replica.session.queue if reader.replica.session else [])

    gate = world.database.hold("write", "before")
    params: dict[str, Value] = {"session_id": "s", "message_id": "mine", "parts": TEXT}
    answer = await reader.line.begin("prompt", params, look)
    await gate.reached()
    await fill(reader)
    gate.open()
    await pause()
    reader.line.link.unstall("down")
    await answer
    assert queues == [["mine"]]
    assert reader.tags[-1] == "sync"
    await scene.proves(reader)


@pytest.mark.parametrize("limit", [1, 2, 7])
@in_world()
async def test_g14_walking_pages_visits_each_visible_message_once_while_others_are_written(
    world: World, limit: int
) -> None:
    """None is lost or seen twice, internal ones are not counted, and the last page says that it is."""
    scene = await Scene.begin(world)
    for number in range(8):
        turn = await scene.turn(f"Prompt {number}")
        await turn.internal(TextPart(text="SECRET"))
        async with turn.step() as step:
            await text_of(step)
        await scene.finish(turn)
    expected = [message.sequence for message in (await scene.fresh()).replica.messages()]
    seen: list[int] = []
    before: dict[str, Value] = {}
    while True:
        page = await scene.ask(Page, "messages", limit=limit, **before)
        seen = [item.sequence for item in page.items] + seen
        assert len(page.items) <= limit
        assert page.has_more == (page.items[0].sequence > expected[0])
        if not page.has_more:
            assert page.next_before_sequence is msgspec.UNSET
            break
        assert page.next_before_sequence == page.start_sequence
        before = {"before_sequence": page.items[0].sequence}
        await scene.finish(await scene.turn("Meanwhile"))
    assert seen == expected


@in_world(outbox_bytes=4_096, heartbeat_ms=600_000)
async def test_g15_a_reader_that_does_not_read_costs_little_and_loses_nothing(world: World) -> None:
    """Four megabytes flow past it: little of it waits, others are never late, and one sync brings all."""
    scene = await Scene.begin(world)
    step = await step_of(scene)
    text = await text_of(step)
    slow, quick = Reader(await world.line(), "s"), Reader(await world.line(), "s")
    await slow.join()
    await quick.join()
    slow.line.link.stall("down")
    most = 0
    for number in range(100):
        await text.append(f"{number}".ljust(40_000, "."))
        await pause(0.05)
        assert quick.line.deltas[-1].text.startswith(f"{number}.")
        waits = slow.line.link.server.get_write_buffer_size() + slow.line.link.down.held
        most = max(most, waits)
    assert most < 300_000
    assert quick.gaps == slow.gaps == []
    slow.tags.clear()
    slow.line.link.unstall("down")
    await slow.line.until(lambda: "sync" in slow.tags)
    await slow.read_all()  # what was missed is more than a page: the sync is a reset
    await scene.proves(slow)
    assert (slow.tags[-1], slow.tags.count("sync")) == ("sync", 1)


@in_world()
async def test_g19_times_never_go_back(world: World) -> None:
    """The wall is set back by ten minutes, in mid-turn and over a crash: later is never earlier."""
    scene = await Scene.begin(world)
    turn = await busy_turn_of(scene)
    reader = await scene.reader()
    times = [reader.replica.session.updated_at if reader.replica.session else 0]
    world.clock.skew_wall(-600_000)
    await turn.action("note", "Noted")
    await text_of(await turn.step().__aenter__(), "Still ")
    await scene.proves(reader)
    newest = reader.replica.messages()[-1]
    times.append(newest.updated_at)
    await scene.crash()
    await reader.rejoin(await world.line())
    await scene.proves(reader)
    ended = reader.replica.turns[turn.turn_id]
    times.append(ended.finished_at or 0)
    following = await scene.turn()
    await scene.proves(reader)
    times += [reader.replica.messages()[-1].created_at, reader.replica.turns[following.turn_id].started_at]
    assert times == sorted(times)
    assert all(message.created_at <= message.updated_at for message in reader.replica.messages())


@pytest.mark.parametrize("streams_s", [0.5, 4.0, 60.0])
@in_world()
async def test_g19_times_never_go_back_over_a_crash_that_loses_what_was_streamed_last(
    world: World, streams_s: float
) -> None:
    """The text was seen with its time, and not stored; the clock is set back while the server is down."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    reader = await scene.reader()
    text = await text_of(await turn.step().__aenter__(), "It ")
    for _ in range(4):
        await pause(streams_s / 4)
        await text.append("goes on ")
        await pause()
    message = reader.replica.messages()[-1]
    assert message.updated_at - message.created_at >= streams_s * 900
    await world.kill()
    world.clock.skew_wall(-600_000)
    await world.start()
    await reader.rejoin(await world.line())
    assert reader.replica.messages()[-1].updated_at >= message.updated_at
    following = await (await world.line()).ask(
        PromptResult, "prompt", session_id="s", message_id="next", parts=[{"type": "text", "text": "Hi"}]
    )
    await reader.line.until(lambda: following.turn_id in reader.replica.turns)
    assert reader.replica.messages()[-1].created_at >= message.updated_at
    await reader.prove()


Quiet = Callable[[Scene], Awaitable[Reader]]


async def _live(scene: Scene) -> Reader:
    return await scene.reader()


async def _in_json(scene: Scene) -> Reader:
    return await scene.reader(codec=JSON)


async def _paced(scene: Scene) -> Reader:
    return await scene.reader(pace_ms=20)


@pytest.mark.parametrize("joined", [_live, _in_json, _paced], ids=["live", "json", "paced"])
@pytest.mark.parametrize("history_bytes", [0, 1_048_576], ids=["catchup", "replay"])
def test_g20_internal_messages_are_shown_to_nobody_else(
    joined: Quiet, history_bytes: int, tmp_path: Path
) -> None:
    """Not one byte of them is in a frame, a sync, a page or a digest of a reader without that view."""

    async def story(world: World) -> None:
        scene = await Scene.begin(world)
        turn = await scene.turn()
        reader = await joined(scene)
        await turn.internal(TextPart(text="SECRET one"))
        async with turn.step() as step:
            await text_of(step)
        hint = await turn.internal(TextPart(text="SECRET two"))
        await pause()
        away = reader.replica.cursor()
        heard = list(reader.line.heard)
        await reader.leave()
        await turn.internal(TextPart(text="SECRET three"))
        reader.line = await world.line()
        await reader.join(cursor=away)
        await scene.finish(turn)
        await scene.proves(reader)
        await reader.line.ask(Page, "messages", session_id="s", limit=200)
        digests = await reader.line.ask(
            VerifyResult, "verify", session_id="s", from_sequence=1, to_sequence=99
        )
        shown = [message.sequence for message in reader.replica.messages()]
        assert [sequence for sequence, _, _ in digests.digests] == shown
        assert hint.sequence not in shown
        everything = b"".join(heard + reader.line.heard)
        assert b"SECRET" not in everything
        assert hint.message_id.encode() not in everything
        full = await scene.fresh(include_internal=True)
        assert str(full.content()).count("SECRET") == 3

    play(story, tmp_path, history_bytes=history_bytes)


@pytest.mark.parametrize("full", [False, True], ids=["visible", "internal"])
@in_world()
async def test_g7_one_short_delta_serves_every_reader_however_it_came(world: World, *, full: bool) -> None:
    """What it leaves out, each of them has: from a sync of any mode or size, a page, or as it streamed."""
    scene = await Scene.begin(world)
    await scene.finish(await busy_turn_of(scene))
    text = await text_of(await step_of(scene))
    there, away = [await scene.reader(include_internal=full) for _ in range(2)]
    assert there.replica.messages()[-1].state == "streaming"
    await away.leave()
    await text.append("upon ")
    await pause(0.1)
    await away.rejoin(await world.line())
    one = await scene.reader(limit=1, include_internal=full)
    paged = await scene.reader(limit=None, include_internal=full)
    await paged.read_all()
    bare = await scene.reader(limit=None, include_internal=full)
    paced = await scene.reader(pace_ms=50, codec=JSON, include_internal=full)
    readers = [there, away, one, paged, bare]
    for reader in (*readers, paced):
        reader.tags.clear()
    for word in ("a ", "time"):
        await text.append(word)
        await pause(0.1)
    assert {tag for reader in readers for tag in reader.tags} == {"short"}
    assert set(paced.tags) == {"sync"}
    assert bare.replica.messages() == []
    for reader in (*readers, paced):
        await reader.read_all()
        await scene.proves(reader)
    assert len({str(reader.replica.messages()[-1]) for reader in (*readers, paced)}) == 1
