"""Every way in which a reader can get what changed while it looked, or while it was away.

A way plays a case, and gives a reader that has come as far as the server (or is about to), together with what
that reader showed before the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from midstream.protocol.calls import SessionResult
from midstream.protocol.codec import JSON
from midstream.protocol.limits import Limits
from midstream.protocol.merge import Replica
from midstream.protocol.values import Value
from tests.laws.case import Playing
from tests.laws.line import ChannelFrame
from tests.laws.reader import Content, Reader
from tests.laws.scene import Scene
from tests.laws.world import pause


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of a reader.

    Attributes:
        old: what it showed before.
        came_by: the tags of the frames that may have brought it from there to the present, where the server
            lived on; empty where any may.
    """

    reader: Reader
    old: Content
    came_by: frozenset[str] = frozenset()


Follow = Callable[[Scene, Playing], Awaitable[Followed]]


@dataclass(frozen=True, slots=True)
class Way:
    """A way, and the settings that the server needs for it."""

    name: str
    follow: Follow
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


WAYS: dict[str, Way] = {}
LIVE = frozenset({"d", "short", "change", "skip"})


def way(**settings: Any) -> Callable[[Follow], Follow]:  # noqa: ANN401  # of Config
    """Register the way that is decorated."""

    def register(follow: Follow) -> Follow:
        name = getattr(follow, "__name__", "")
        WAYS[name] = Way(name, follow, settings)
        return follow

    return register


async def _watched(scene: Scene, playing: Playing, came_by: frozenset[str] = LIVE, **wish: Any) -> Followed:  # noqa: ANN401  # of Scene.reader
    """Be there all the time."""
    await playing.before()
    reader = await scene.reader(**wish)
    old = reader.content()
    reader.tags.clear()
    await playing.change()
    return Followed(reader, old, came_by)


async def _away(scene: Scene, playing: Playing, meanwhile: Callable[[], Awaitable[None]] = pause) -> Reader:
    """Be there before the change, and come back after it and after what else is to happen meanwhile."""
    await playing.before()
    reader = await scene.reader()
    await reader.leave()
    await playing.change()
    await meanwhile()
    return reader


async def _back(scene: Scene, reader: Reader, *came_by: str) -> Followed:
    """Come back with the cursor."""
    old = reader.content()
    reader.tags.clear()
    await reader.rejoin(await scene.world.line())
    return Followed(reader, old, frozenset(came_by))


# There all the time


@way()
async def live(scene: Scene, playing: Playing) -> Followed:
    """Frame by frame, beside another reader that must have shown the same at each version."""
    await playing.before()
    await scene.reader()
    reader = await scene.reader()
    old = reader.content()
    reader.tags.clear()
    await playing.change()
    return Followed(reader, old, LIVE)


@way()
async def live_in_json(scene: Scene, playing: Playing) -> Followed:
    """Frame by frame in the other encoding."""
    return await _watched(scene, playing, codec=JSON)


@way()
async def live_with_internal_messages(scene: Scene, playing: Playing) -> Followed:
    """Frame by frame in the full view."""
    return await _watched(scene, playing, include_internal=True)


@way()
async def live_from_a_page(scene: Scene, playing: Playing) -> Followed:
    """A page is on its way, and merged, while things change."""
    await playing.before()
    reader = await scene.reader(limit=None)
    await reader.read_all()
    old = reader.content()
    other = await scene.reader(limit=None)
    page = await other.begin_page()
    await playing.change()
    await asyncio.wait([page])
    if not other.line.is_open:
        await other.rejoin(await scene.world.line())
    await other.read_all()
    return Followed(other, old)


@way()
async def live_in_a_window_of_one(scene: Scene, playing: Playing) -> Followed:
    """Frame by frame for a reader that holds the newest message only, and reads the others afterwards."""
    followed = await _watched(scene, playing, limit=1)
    await pause()
    return await _widened(scene, followed)


async def _widened(scene: Scene, followed: Followed) -> Followed:
    """Read the pages below a reader's window."""
    reader = followed.reader
    if not reader.line.is_open:
        await reader.rejoin(await scene.world.line())
    await reader.read_all(limit=1)
    return followed


@way()
async def paced(scene: Scene, playing: Playing) -> Followed:
    """Behind by choice: syncs only."""
    return await _watched(scene, playing, frozenset({"sync"}), pace_ms=20)


@way()
async def attached_twice(scene: Scene, playing: Playing) -> Followed:
    """Subscribed again on the same socket, twice while an answer is under way, during the change."""
    await playing.before()
    reader = await scene.reader()
    old = reader.content()
    cursor = reader.replica.cursor()
    first = await reader.begin_join(cursor=cursor)
    second = await reader.begin_join(cursor=cursor)
    change = asyncio.create_task(playing.change())
    third = await reader.begin_join(cursor=cursor)
    await asyncio.wait([first, second, third])
    await change
    return Followed(reader, old)


@way(outbox_bytes=4_096)
async def slow(scene: Scene, playing: Playing) -> Followed:
    """The outbox is full when things change, so that the reader is behind and gets one sync."""
    await playing.before()
    reader = await scene.reader()
    old = reader.content()
    await clog(scene, reader)
    reader.tags.clear()
    await playing.change()
    if reader.line.is_open:
        reader.line.link.unstall("down")
    return Followed(reader, old, frozenset({"sync"}))


async def clog(scene: Scene, reader: Reader) -> None:
    """Let a reader not read, and fill its way, until the server has no room for it."""
    await make_ballast(scene)
    await fill(reader)


async def make_ballast(scene: Scene) -> None:
    """Make a session that is 15 KB long whenever it is looked at."""
    ballast: dict[str, Value] = {"ballast": "x" * 15_000}
    await scene.ask(SessionResult, "sessions.create", session_id="ballast", metadata=ballast)


async def fill(reader: Reader) -> None:
    """Stop reading, and ask for more than the way to the reader holds: 64 KiB of kernel, 128 of transport."""
    reader.line.link.stall("down")
    for _ in range(25):
        await reader.line.begin("sessions.get", {"session_id": "ballast"})
        await pause(0.02)  # else the outbox is full before the way is


@way()
async def one_frame_lost(scene: Scene, playing: Playing) -> Followed:
    """The first frame of the change is lost; the next one, or the mark of a heartbeat, shows it."""
    await playing.before()
    reader = await scene.reader()
    old = reader.content()
    assert reader.channel is not None
    take = reader.line.routes[reader.channel]

    async def lose_one(frame: ChannelFrame) -> None:
        reader.line.routes[frame.channel] = take

    reader.line.routes[reader.channel] = lose_one
    await playing.change()
    await pause(2 * 15.0)
    assert len(reader.gaps) == 1 or not reader.line.is_open, "there was no gap"
    return Followed(reader, old)


# Away, and back on the same server


@way()
async def replay(scene: Scene, playing: Playing) -> Followed:
    """The server still has in memory what was missed."""
    return await _back(scene, await _away(scene, playing), "replay")


@way()
async def replay_in_json(scene: Scene, playing: Playing) -> Followed:
    """The same in the other encoding."""
    reader = await _away(scene, playing)
    old = reader.content()
    reader.tags.clear()
    await reader.rejoin(await scene.world.line(JSON))
    return Followed(reader, old, frozenset({"replay"}))


@way()
async def replay_of_a_disk_cache(scene: Scene, playing: Playing) -> Followed:
    """The client was closed, and restored its replica from what it had saved."""
    reader = await _away(scene, playing)
    saved = reader.replica.save()
    assert saved is not None
    reader.replica = Replica.restore(saved)
    return await _back(scene, reader, "replay")


@way(history_bytes=0)
async def catchup(scene: Scene, playing: Playing) -> Followed:
    """The server has it in memory no more."""
    return await _back(scene, await _away(scene, playing), "catchup")


@way(history_bytes=0)
async def catchup_with_internal_messages(scene: Scene, playing: Playing) -> Followed:
    """Likewise in the full view."""
    await playing.before()
    reader = await scene.reader(include_internal=True)
    await reader.leave()
    await playing.change()
    return await _back(scene, reader, "catchup")


@way(idle_seconds=5)
async def catchup_after_a_reload(scene: Scene, playing: Playing) -> Followed:
    """The session was put away and loaded again by the same server, in the same epoch."""
    reader, channel = await _put_away(scene)
    await playing.before()
    if scene.session_id != reader.session_id:
        reader, channel = await _put_away(scene)
    epoch = reader.replica.epoch
    await playing.change()
    followed = await _back(scene, reader, "catchup")
    assert playing.case.restarts or (reader.channel != channel and reader.replica.epoch == epoch)
    return followed


async def _put_away(scene: Scene) -> tuple[Reader, int | None]:
    """Let a reader see the session, and the server put it away; return the reader and its channel."""
    reader = await scene.reader()
    channel = reader.channel
    await reader.leave()
    await scene.ask(SessionResult, "sessions.update", title="Before the reload")  # else a replay would do
    await scene.unload()
    return reader, channel


@way()
async def reset(scene: Scene, playing: Playing) -> Followed:
    """The reader asks without a cursor, and throws away what it had."""
    reader = await _away(scene, playing)
    old = reader.content()
    reader.tags.clear()
    reader.line = await scene.world.line()
    await reader.join()
    return Followed(reader, old, frozenset({"reset"}))


@way(history_bytes=0)
async def catchup_in_a_window_of_one(scene: Scene, playing: Playing) -> Followed:
    """The reader holds the newest message only; what changed below its window comes to nothing."""
    await playing.before()
    reader = await scene.reader(limit=1)
    await reader.leave()
    await playing.change()
    return await _widened(scene, await _back(scene, reader, "catchup"))


@way(history_bytes=0, limits=Limits(page_bytes=200))
async def catchup_or_reset_beyond_the_limits(scene: Scene, playing: Playing) -> Followed:
    """More was missed than a page may carry: what comes is the newest, and pages bring the rest."""
    followed = await _back(scene, await _away(scene, playing), "catchup", "reset")
    return await _widened(scene, followed)


# Away, and back on another server


@way()
async def catchup_after_a_restart(scene: Scene, playing: Playing) -> Followed:
    """The server was stopped in good order, and nothing has happened since."""
    return await _back(scene, await _away(scene, playing, scene.restart), "catchup")


@way()
async def catchup_after_a_restart_and_more(scene: Scene, playing: Playing) -> Followed:
    """The server was stopped in good order, and then a new epoch began."""

    async def restart_and_more() -> None:
        await scene.restart()
        await scene.ask(SessionResult, "sessions.update", title="A new epoch")

    return await _back(scene, await _away(scene, playing, restart_and_more), "catchup")


@way()
async def catchup_after_a_crash(scene: Scene, playing: Playing) -> Followed:
    """The server was killed; the reader had seen nothing of the change."""
    return await _back(scene, await _away(scene, playing, scene.crash), "catchup")


@way()
async def catchup_after_two_crashes(scene: Scene, playing: Playing) -> Followed:
    """The server was killed twice."""

    async def crash_twice() -> None:
        await scene.crash()
        await scene.crash()

    return await _back(scene, await _away(scene, playing, crash_twice), "catchup")


@way()
async def catchup_after_a_crash_that_was_watched(scene: Scene, playing: Playing) -> Followed:
    """The server was killed; the reader had seen more than was stored."""
    followed = await _watched(scene, playing)
    await pause()
    await scene.crash()
    await followed.reader.rejoin(await scene.world.line())
    return Followed(followed.reader, followed.old)
