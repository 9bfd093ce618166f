"""What is promised to those who watch the list of sessions (SPEC 1.3: G31)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from midstream.protocol.calls import EmptyResult, SessionResult
from midstream.protocol.codec import JSON
from midstream.protocol.errors import MidstreamError
from midstream.protocol.frames import SessionsChanged
from tests.laws.scene import Scene
from tests.laws.watcher import Watcher, listed
from tests.laws.world import World, in_world, pause

NAMES = ("s", "b", "c", "d")


class Life:
    """Whatever can happen to some sessions, in an order that a seed decides."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.chance = Random(seed)
        self.number = 0

    async def step(self) -> None:
        """Let something happen; what the server refuses does not."""
        self.number += 1
        acts: list[Callable[[str], Awaitable[object]]] = [
            self._create, self._rename, self._rename, self._archive, self._take_back, self._delete,
            self._fork, self._talk, self._talk, self._clear, self._stop,
        ]  # fmt: skip
        with contextlib.suppress(MidstreamError):
            await self.chance.choice(acts)(self.chance.choice(NAMES))
        if self.chance.random() < 0.3:
            await pause(self.chance.choice((0.01, 0.05, 0.3)))

    async def _create(self, name: str) -> None:
        await self.scene.ask(SessionResult, "sessions.create", session_id=f"{name}{self.number}")

    async def _rename(self, name: str) -> None:
        await self.scene.ask(SessionResult, "sessions.update", session_id=name, title=f"{name} {self.number}")

    async def _archive(self, name: str) -> None:
        await self.scene.ask(SessionResult, "sessions.archive", session_id=name)

    async def _take_back(self, name: str) -> None:
        await self.scene.ask(SessionResult, "sessions.archive", session_id=name, archived=False)

    async def _clear(self, name: str) -> None:
        await self.scene.ask(SessionResult, "sessions.clear", session_id=name)

    async def _delete(self, name: str) -> None:
        if self.chance.random() < 0.3:
            await self.scene.ask(EmptyResult, "sessions.delete", session_id=name)

    async def _fork(self, name: str) -> None:
        await self.scene.ask(
            SessionResult, "sessions.fork", session_id=name, new_session_id=f"{name} fork {self.number}"
        )

    async def _stop(self, name: str) -> None:
        await self.scene.user.begin("stop", {"session_id": name, "turn_id": "current"})

    async def _talk(self, name: str) -> None:
        parts = [{"type": "text", "text": "Go on"}]
        await self.scene.user.begin(
            "prompt",
            {"session_id": name, "message_id": f"{self.number}", "parts": parts},  # type: ignore[dict-item]  # values
        )
        await pause(0.02)
        while not self.scene.world.puppet.idle:
            turn = await self.scene.world.puppet.next()
            if self.chance.random() < 0.5:
                self.scene.world.puppet.end(turn)


@pytest.mark.parametrize("seed", range(6))
@in_world(idle_seconds=1)
async def test_g31_lists_come_to_equal_the_servers(world: World, seed: int) -> None:
    """Whenever they began, in both encodings, with and without archive, over a crash."""
    scene = await Scene.begin(world)
    for name in NAMES[1:]:
        await scene.ask(SessionResult, "sessions.create", session_id=name)
    life = Life(scene, seed)
    watchers: list[Watcher] = []

    async def join() -> None:
        codec = [JSON] if len(watchers) % 2 else []
        watcher = Watcher(await world.line(*codec), archived=len(watchers) % 3 == 1)
        watchers.append(watcher)
        await watcher.watch()

    for number in range(60):
        await life.step()
        if number in {0, 5, 20, 40}:
            joining = asyncio.create_task(join())
            await life.step()
            await joining
        if number == 50:
            await scene.crash()
            for watcher in watchers:
                watcher.line = await world.line()
                await watcher.watch()
    await pause(1.0)
    expected = {archived: await listed(scene.user, archived=archived) for archived in (False, True)}
    assert expected[False]
    for watcher in watchers:
        assert watcher.told
        assert watcher.shown() == expected[watcher.archived]


@in_world()
async def test_g31_nothing_is_told_before_the_answer_nor_without_a_watch(world: World) -> None:
    """A second watch replaces the first without a gap; one that ended is told nothing."""
    scene = await Scene.begin(world)
    watcher = Watcher(await world.line())
    await scene.ask(SessionResult, "sessions.update", title="A")
    await pause(1.0)
    await watcher.watch()
    assert watcher.early == []
    await scene.ask(SessionResult, "sessions.update", title="B")
    await watcher.until_told(1)
    await watcher.watch()
    await scene.ask(SessionResult, "sessions.update", title="C")
    await watcher.until_told(1)
    await pause(1.0)
    assert [one.title for changes in watcher.early for one in changes.changed] == ["B"]
    assert [one.title for changes in watcher.told for one in changes.changed] == ["C"]
    gate = world.database.hold("read", "after")
    answer = await watcher.line.begin("sessions.watch", {})
    await gate.reached()
    await watcher.line.ask(EmptyResult, "sessions.unwatch")
    gate.open()
    await answer
    await scene.ask(SessionResult, "sessions.update", title="D")
    await pause(1.0)
    assert len(watcher.line.of(SessionsChanged)) == 2
