"""The list of sessions is as the server has it, whatever is lost on the way (SPEC 4.8)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from midstream.client import ClientClosed, ClientError, SessionInfo, SessionList
from midstream.protocol.calls import EmptyResult, ListParams, ListResult, WatchParams
from midstream.protocol.errors import Overloaded, UnknownMethod
from midstream.protocol.frames import SessionsChanged
from midstream.protocol.lists import ListChanges
from tests.client.peer import Asked, PeerLink
from tests.client.stage import Stage, in_simulation, on_every_network

VECTORS = Path(__file__).parents[2] / "protocol" / "vectors" / "lists.json"


def entity(session_id: str, revision: int, **more: Any) -> SessionInfo:  # noqa: ANN401 - of a session
    """A session as it is at a revision, which is also its time."""
    found = SessionInfo(
        session_id=session_id, revision=revision, created_at=1, updated_at=revision, message_count=0
    )
    return structs.replace(found, **more)


def ids(sessions: SessionList) -> list[str]:
    """The ids, in order."""
    return [session.session_id for session in sessions.items]


async def answer(link: PeerLink, *items: SessionInfo, **more: Any) -> WatchParams:  # noqa: ANN401 - of a result
    """Answer the next watch."""
    asked = await link.asked("sessions.watch")
    await asked.result(ListResult(items=list(items), **more))
    return asked.as_(WatchParams)


async def say(link: PeerLink, *changed: SessionInfo, **more: Any) -> None:  # noqa: ANN401 - of changes
    """Tell what became of sessions."""
    await link.send(SessionsChanged(ListChanges(changed=list(changed), **more)))


async def watching(
    stage: Stage,
    *items: SessionInfo,
    more: str | msgspec.UnsetType = msgspec.UNSET,
    **options: Any,  # noqa: ANN401 - of a list
) -> tuple[SessionList, PeerLink]:
    """A list on a new connection, answered."""
    sessions = stage.client().watch_sessions(**options)
    link = await stage.peer.accept()
    await answer(link, *items, next_after=more)
    await sessions.until_live()
    return sessions, link


def _sessions(given: list[Any]) -> list[SessionInfo]:
    return msgspec.convert(given, list[SessionInfo])


@pytest.mark.parametrize(
    "case", json.loads(VECTORS.read_text("utf-8"))["cases"], ids=lambda case: case["name"]
)
def test_the_vectors_of_lists(case: dict[str, Any]) -> None:
    """Each over a real connection, step by step."""

    async def scenario(stage: Stage) -> None:
        sessions = stage.client().watch_sessions(archived=case.get("archived", False))
        link = await stage.peer.accept()
        asked = await link.asked("sessions.watch")
        after = "next" if any("page" in step for step in case["steps"]) else msgspec.UNSET
        loading: list[tuple[asyncio.Future[bool], Asked]] = []
        for step in case["steps"]:
            if "answer" in step:
                await asked.result(ListResult(items=_sessions(step["answer"]), next_after=after))
                await sessions.until_live()
            elif "frame" in step:
                await link.send(SessionsChanged(msgspec.convert(step["frame"], ListChanges)))
                if step.get("asks_again"):
                    asked = await link.asked("sessions.watch")
            elif "lost" in step:
                link.drop()
                link = await stage.peer.accept()
                asked = await link.asked("sessions.watch")
            elif "ask" in step:
                begun = asyncio.ensure_future(sessions.load_more())
                loading.append((begun, await link.asked("sessions.list")))
            else:
                load, page = loading.pop()
                await page.result(ListResult(items=_sessions(step["page"]), next_after=after))
                assert await load
        assert await link.is_quiet()  # and so all that was sent has been read
        assert [[one.session_id, one.revision] for one in sessions.items] == case["expect"]

    in_simulation(scenario)(0)


@on_every_network
async def test_a_list_is_the_answer_and_then_what_frames_say(stage: Stage) -> None:
    """What did not change stays the same object, and whoever reads gets the newest."""
    sessions, link = await watching(stage, entity("a", 5), entity("b", 4))
    assert ids(sessions) == ["a", "b"]
    a = sessions.items[0]
    seen = aiter(sessions)
    assert await anext(seen) == sessions.items
    await say(link, entity("b", 6, title="B"))
    await say(link, entity("c", 7), removed=["b"])
    await sessions.until(lambda: ids(sessions) == ["c", "a"])
    assert (await anext(seen))[1] is a
    sessions.close()
    assert [items async for items in seen] == []


@on_every_network
async def test_the_old_list_is_shown_until_the_new_connection_has_an_answer(stage: Stage) -> None:
    """Then what went meanwhile is gone, and one call was made on each connection."""
    sessions, link = await watching(stage, entity("a", 5), entity("b", 4))
    states = {sessions.state}
    link.drop()
    link = await stage.peer.accept()
    asked = await link.asked("sessions.watch")
    states.add(sessions.state)
    assert ids(sessions) == ["a", "b"]
    await asked.result(ListResult(items=[entity("b", 4)]))
    await sessions.until(lambda: ids(sessions) == ["b"])
    assert states == {"live", "syncing"}
    assert await link.is_quiet()


@on_every_network
async def test_a_call_that_was_put_off_is_made_again(stage: Stage) -> None:
    """`overloaded` is no end."""
    sessions = stage.client().watch_sessions()
    link = await stage.peer.accept()
    await (await link.asked("sessions.watch")).error(Overloaded("Wait."))
    await answer(link, entity("a", 1))
    await sessions.until_live()
    assert ids(sessions) == ["a"]


@on_every_network
async def test_a_list_that_was_loaded_far_down_comes_back_as_long(stage: Stage) -> None:
    """It is asked for with its length, and page by page, and shown when it is whole."""
    first = [entity(f"s{number}", 1000 - number) for number in range(200)]
    sessions, link = await watching(stage, *first, more="x", limit=200)
    loading = asyncio.ensure_future(sessions.load_more())
    asked = await link.asked("sessions.list")
    assert asked.as_(ListParams) == ListParams(limit=200, after="x")
    await asked.result(ListResult(items=[entity("low", 1)]))
    assert await loading
    assert not sessions.has_more
    assert not await sessions.load_more()
    link.drop()
    link = await stage.peer.accept()
    assert (await answer(link, *first, next_after="y")).limit == 200
    asked = await link.asked("sessions.list")
    await say(link, entity("s0", 2000))
    assert len(sessions.items) == 201
    assert sessions.state == "syncing"
    await asked.result(ListResult(items=[entity("low", 1)]))
    await sessions.until_live()
    assert (len(sessions.items), sessions.items[0].revision) == (201, 2000)


@on_every_network
async def test_a_page_that_was_asked_for_before_a_new_answer_is_asked_for_again(stage: Stage) -> None:
    """It belongs to the list that was replaced."""
    sessions, link = await watching(stage, entity("a", 9), more="x")
    loading = asyncio.ensure_future(sessions.load_more())
    await link.asked("sessions.list")
    link.drop()
    link = await stage.peer.accept()
    old, asked = await link.asked("sessions.list"), await link.asked("sessions.watch")
    await asked.result(ListResult(items=[entity("b", 10)], next_after="y"))
    await old.result(ListResult(items=[entity("a", 9)]))
    again = await link.asked("sessions.list")
    assert again.as_(ListParams).after == "y"
    await again.result(ListResult(items=[entity("c", 3)]))
    assert await loading
    assert ids(sessions) == ["b", "c"]


@on_every_network
async def test_the_last_list_that_closes_ends_the_watch(stage: Stage) -> None:
    """Lists of one client share the frames."""
    client = stage.client()
    lists = [client.watch_sessions(), client.watch_sessions(archived=True)]
    link = await stage.peer.accept()
    assert not (await answer(link, entity("a", 1))).archived
    assert (await answer(link)).archived
    await say(link, entity("a", 2, archived_at=2), entity("b", 3))
    await lists[0].until(lambda: ids(lists[0]) == ["b"])
    await lists[1].until(lambda: ids(lists[1]) == ["a"])
    lists[0].close()
    lists[0].close()
    assert await link.is_quiet()
    await say(link, entity("c", 4, archived_at=4))
    await lists[1].until(lambda: ids(lists[1]) == ["c", "a"])
    assert ids(lists[0]) == ["b"]
    lists[1].close()
    await (await link.asked("sessions.unwatch")).result(EmptyResult())
    with pytest.raises(ClientError):
        await lists[1].load_more()


@on_every_network
async def test_a_server_without_the_call_closes_the_list_and_nothing_else(stage: Stage) -> None:
    """It says why, to whoever waits."""
    client = stage.client()
    sessions = client.watch_sessions()
    link = await stage.peer.accept()
    waiting = asyncio.ensure_future(sessions.until_live())
    await (await link.asked("sessions.watch")).error(UnknownMethod("sessions.watch"))
    with pytest.raises(UnknownMethod):
        await waiting
    assert sessions.state == "closed"
    assert client.state == "live"
    with pytest.raises(UnknownMethod):
        _ = [items async for items in sessions]


@on_every_network
async def test_a_list_closes_with_its_client(stage: Stage) -> None:
    """Nobody waits for ever."""
    client = stage.client()
    sessions = client.watch_sessions()
    waiting = asyncio.ensure_future(sessions.until_live())
    await stage.peer.accept()
    await client.close()
    with pytest.raises(ClientError):
        await waiting
    with pytest.raises(ClientClosed):
        client.watch_sessions()
