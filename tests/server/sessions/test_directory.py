"""Making sessions and listing them: a repeat makes no second one, and a list is walked whole."""

from __future__ import annotations

import asyncio
import base64

import pytest
from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.errors import MidstreamError
from tests.server.sessions.house import House, Street, in_simulation, refusal


async def create(house: House, params: calls.CreateParams) -> calls.SessionResult:
    """Make a session."""
    return await house.call(calls.SessionResult, "sessions.create", params)


async def listed(house: House, params: calls.ListParams | None = None) -> list[str]:
    """Walk the whole list; give the ids."""
    params = params or calls.ListParams()
    ids: list[str] = []
    while True:
        page = await house.call(calls.ListResult, "sessions.list", params)
        ids += [session.session_id for session in page.items]
        if page.next_after is UNSET:
            return ids
        params = calls.ListParams(limit=params.limit, archived=params.archived, after=page.next_after)


@in_simulation
async def test_a_session_is_made_as_asked_for(street: Street) -> None:
    """With id, title and metadata as given, at version 1; else with an id of the server's."""
    async with street.house() as house:
        made = await create(house, calls.CreateParams(session_id="s", title="t", metadata={"a": [1]}))
        session = made.session
        assert (session.session_id, session.title, session.metadata) == ("s", "t", {"a": [1]})
        assert (session.revision, made.version, session.first_sequence, session.message_count) == (1, 1, 1, 0)
        assert session.created_at == session.updated_at == street.clock.wall_ms()
        assert await house.session() == made
        other = await create(house, calls.CreateParams())
        assert other.session.session_id not in {"", "s"}
        assert (other.session.title, other.session.metadata) == (UNSET, {})
        assert other.epoch != made.epoch


@in_simulation
async def test_an_id_is_given_once_for_ever(street: Street) -> None:
    """Also after its session was deleted, and whoever asks."""
    async with street.house() as house:
        await house.create()
        assert (await refusal(house.create())).code == "already_exists"
        await house.call(calls.EmptyResult, "sessions.delete", calls.SessionParams(session_id="s"))
        await asyncio.sleep(10)
        error = await refusal(house.create())
        assert (error.code, error.details) == ("already_exists", {"id": "s"})
        assert await listed(house) == []


@in_simulation
async def test_a_key_makes_one_session_however_often_it_is_sent(street: Street) -> None:
    """Twice at once, after changes, and after a restart; with or without an id."""
    for session_id in (UNSET, "named"):
        params = calls.CreateParams(session_id=session_id, key=f"key of {session_id}", title="t")
        async with street.house() as house:
            first, second = await asyncio.gather(create(house, params), create(house, params))
            assert first == second
            name = first.session.session_id
            await house.prompt(session_id=name)
            assert (await create(house, params)).session.message_count == 1
        async with street.house() as house:
            again = await create(house, params)
            assert again.session.session_id == name
    async with street.house() as house:
        assert len(await listed(house)) == 2


@in_simulation
async def test_a_key_stands_for_one_content_and_one_method(street: Street) -> None:
    """Other content, another id, a fork by the same key, and a session that is gone."""
    async with street.house() as house:
        await create(house, calls.CreateParams(session_id="s", key="k"))
        for params in (
            calls.CreateParams(session_id="s", key="k", title="other"),
            calls.CreateParams(session_id="another", key="k"),
            calls.CreateParams(key="k"),
        ):
            error = await refusal(create(house, params))
            assert (error.code, error.details) == ("idempotency_conflict", {"field": "key", "id": "k"})
        fork = calls.ForkParams(session_id="s", key="k")
        assert (
            await refusal(house.call(calls.SessionResult, "sessions.fork", fork))
        ).code == "idempotency_conflict"
        error = await refusal(create(house, calls.CreateParams(session_id="s", key="another")))
        assert error.code == "already_exists"
        await house.call(calls.EmptyResult, "sessions.delete", calls.SessionParams(session_id="s"))
        error = await refusal(create(house, calls.CreateParams(session_id="s", key="k")))
        assert error.code == "idempotency_conflict"


@in_simulation
async def test_the_list_shows_the_last_changed_first_whatever_its_pages(street: Street) -> None:
    """Each session once; a change brings its session to the front."""
    async with street.house() as house:
        for number in range(7):
            await house.create(f"s{number}")
            await asyncio.sleep(1)
        expected = [f"s{number}" for number in reversed(range(7))]
        for limit in (1, 3, 7, 50):
            assert await listed(house, calls.ListParams(limit=limit)) == expected
        await house.prompt(session_id="s2")
        assert (await listed(house))[0] == "s2"


@in_simulation
async def test_sessions_that_changed_at_one_time_are_listed_by_id(street: Street) -> None:
    """As a client that watches orders them (SPEC 4.8): both show one order, also over a page's end."""
    async with street.house() as house:
        for name in ("c", "a", "d", "b"):
            await house.create(name)
        for limit in (1, 2, 3, 50):
            assert await listed(house, calls.ListParams(limit=limit)) == ["a", "b", "c", "d"]


@in_simulation
async def test_archived_sessions_are_listed_where_asked(street: Street) -> None:
    """Instead of the others."""
    async with street.house() as house:
        for name in ("a", "b"):
            await house.create(name)
        await house.call(calls.SessionResult, "sessions.archive", calls.ArchiveParams(session_id="a"))
        assert await listed(house) == ["b"]
        assert await listed(house, calls.ListParams(archived=True)) == ["a"]


def place(text: str) -> str:
    """A place as a list gives it, with this in it."""
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "after",
    [
        "",
        "?",
        "é",
        "%%%",
        place(""),
        place("[1]"),
        place('["a", 1]'),
        place("[1, -1]"),
        place("[1, 1]"),
        place(f'[{2**64}, "s"]'),
    ],
)
def test_a_place_that_no_list_gave_is_refused_by_its_field(
    after: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And not taken for a fault of the server."""
    errors: list[MidstreamError] = []

    @in_simulation
    async def story(street: Street) -> None:
        async with street.house() as house:
            call = house.call(calls.ListResult, "sessions.list", calls.ListParams(after=after))
            errors.append(await refusal(call))

    story(tmp_path_factory.mktemp("list"), 0)
    assert [(error.code, error.details) for error in errors] == [("invalid", {"field": "after"})]


@in_simulation
async def test_a_call_that_breaks_is_answered(street: Street) -> None:
    """A fault of ours costs one call, and says nothing of itself."""
    async with street.house() as house:
        error = await refusal(
            house.call(calls.ListResult, "sessions.list", calls.SessionParams(session_id="s"))
        )
        assert error.code == "internal"
        assert "limit" not in error.message
        assert await listed(house) == []


@in_simulation
async def test_no_other_call_is_without_a_session(street: Street) -> None:
    """Whoever lets it through."""
    async with street.house() as house:
        house.globals |= {"sessions.rename"}
        error = await refusal(house.call(calls.EmptyResult, "sessions.rename", calls.ListParams()))
        assert error.code == "unknown_method"
