"""The calls about the session itself: update, archive, clear, delete."""

from __future__ import annotations

import asyncio

from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.model import (
    Session,
)
from tests.server.sessions.house import House, Street, in_simulation, refusal


async def update(house: House, **params: object) -> Session:
    """Change the session's description."""
    changed = calls.UpdateParams(session_id="s", **params)  # type: ignore[arg-type]  # those of the call
    return (await house.call(calls.SessionResult, "sessions.update", changed)).session


async def archive(house: House, *, archived: bool = True) -> Session:
    """Put the session into the archive, or take it out."""
    params = calls.ArchiveParams(session_id="s", archived=archived)
    return (await house.call(calls.SessionResult, "sessions.archive", params)).session


@in_simulation
async def test_what_is_updated_is_replaced_and_what_is_not_given_stays(street: Street) -> None:
    """A title of null goes away; the same once more takes no version."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        session = await update(house, title="t", metadata={"a": 1, "b": 2})
        assert (session.title, session.metadata) == ("t", {"a": 1, "b": 2})
        session = await update(house, metadata={"c": 3})
        assert (session.title, session.metadata) == ("t", {"c": 3})
        version = (await house.session()).version
        assert await update(house, title="t") == session
        assert await update(house) == session
        assert (await house.session()).version == version
        session = await update(house, title=None)
        assert session.title is UNSET
        assert recorder.replica.session == session
        assert len(recorder.changes) == 3


@in_simulation
async def test_an_archived_session_can_be_read_and_takes_no_input(street: Street) -> None:
    """Until it is taken out again; with a running turn it cannot be archived."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        assert (await refusal(archive(house))).details == {"reason": "turn_running"}
        await house.complete(turn)
        session = await archive(house)
        assert session.archived_at == street.clock.wall_ms()
        await asyncio.sleep(5)
        assert await archive(house) == session
        assert len(await house.messages()) == 1
        assert (await refusal(house.prompt("b"))).details == {"reason": "archived"}
        assert (await house.prompt("a")).state == "started"
        assert (await archive(house, archived=False)).archived_at is UNSET
        assert (await house.prompt("b")).state == "started"


@in_simulation
async def test_a_clear_removes_every_message_and_no_number_comes_again(street: Street) -> None:
    """It is refused while a turn runs; a second one changes nothing; readers drop what they have."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin("a")
        assert (await refusal(house.clear())).details == {"reason": "turn_running"}
        async with turn.step() as step:
            await step.marker()
        await house.complete(turn)
        session = await house.clear()
        assert (session.first_sequence, session.message_count) == (3, 2)
        assert await house.clear() == session
        page = await house.page()
        assert (page.items, page.has_more, page.total) == ([], False, 2)
        assert recorder.replica.messages() == []
        await house.begin("b")
        [message] = await house.equal(recorder)
        assert message.sequence == 3


@in_simulation
async def test_a_deleted_session_is_gone_for_every_caller(street: Street) -> None:
    """A second deletion finds nothing."""
    async with street.house() as house:
        await house.create()
        params = calls.SessionParams(session_id="s")
        await house.call(calls.EmptyResult, "sessions.delete", params)
        for _ in range(2):
            error = await refusal(house.call(calls.EmptyResult, "sessions.delete", params))
            assert error.code == "not_found"
        assert (await refusal(house.prompt())).code == "not_found"
