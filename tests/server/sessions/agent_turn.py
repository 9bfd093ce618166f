"""A turn whose agent is the test, and what everybody sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.server.sessions.house import House, parts_of

if TYPE_CHECKING:
    from midstream.agents import Turn
    from tests.server.sessions.recorder import Recorder


async def begin(house: House) -> tuple[Recorder, Turn]:
    """A subscriber, and a turn that runs."""
    await house.create()
    return await house.subscribe(), await house.begin()


async def answer(house: House, recorder: Recorder) -> list[dict[str, object]]:
    """The parts of the agent's first message, the same live, in pages and digests, and in the store."""
    live = (await house.equal(recorder))[1]
    stored = (await house.page(stored=True)).items[1]
    assert live == stored
    return parts_of(live)
