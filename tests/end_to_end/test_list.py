"""The list of sessions at a real server, over real sockets, networks that break, and ``kill -9``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from msgspec import UNSET

from midstream.client import Client, Options, SessionInfo, SessionList
from midstream.protocol.calls import EmptyResult, SessionResult
from tests.end_to_end.process import ServerProcess
from tests.end_to_end.stage import QUICK, OpenStage
from tests.proxy import Proxy, proxy_to

PATIENCE = 60.0


def client_of(url: str) -> Client:
    """A client in a hurry."""
    return Client(url, random=Random(1), options=Options(policy=QUICK))


def running(sessions: SessionList) -> list[str]:
    """The sessions that are shown with a running turn."""
    return [one.session_id for one in sessions.items if one.running_turn_id is not UNSET]


async def until_shows(sessions: SessionList, expected: list[SessionInfo]) -> None:
    """Wait until a list shows these."""
    await sessions.until(lambda: sessions.items == expected, PATIENCE)


async def test_a_list_over_a_line_that_is_cut_again_and_again_comes_to_equal_the_servers(
    open_stage: OpenStage,
) -> None:
    """Removals, archives and titles that it was not there for included."""
    stage = await open_stage(watch_ms=20)
    proxy: Proxy = await stage.proxy()
    client = await stage.client(proxy.url)
    sessions, archive = client.watch_sessions(), client.watch_sessions(archived=True)
    await sessions.until_live(PATIENCE)
    user, chance, alive = await stage.user(), Random(5), list[str]()
    for number in range(60):
        name = f"s{number}"
        await user.ask(SessionResult, "sessions.create", session_id=name, title=name)
        alive.append(name)
        if number % 3 == 1:
            await user.ask(SessionResult, "sessions.update", session_id=name, title="again")
        elif number % 3 == 2:
            await user.ask(SessionResult, "sessions.archive", session_id=name)
        else:
            gone = alive.pop(chance.randrange(len(alive)))
            await user.ask(EmptyResult, "sessions.delete", session_id=gone)
        if number % 10 == 5:
            proxy.cut()
    fresh = await stage.client()
    for shown, archived in ((sessions, False), (archive, True)):
        expected = await fresh.sessions(200, archived=archived)
        ordered = sorted(expected, key=lambda one: (-one.updated_at, one.session_id))
        await until_shows(shown, ordered)


async def test_a_running_turn_is_shown_no_more_when_its_server_was_killed(tmp_path: Path) -> None:
    """`kill -9` in mid-turn: while nobody answers the old list is shown, and then the truth."""
    server = await ServerProcess.start(tmp_path / "chat.db", "flood")
    try:
        async with proxy_to(server.url) as proxy, client_of(proxy.url) as client:
            sessions = client.watch_sessions()
            session = await client.session("s", create=True)
            await client.create("other")
            await session.prompt("9000000 word")
            await sessions.until(lambda: running(sessions) == ["s"], PATIENCE)
            seen = sessions.items[0].revision
            await server.kill()
            await sessions.until(lambda: sessions.state in {"offline", "connecting"}, PATIENCE)
            assert len(sessions.items) == 2
            server = await ServerProcess.start(tmp_path / "chat.db", "flood")
            proxy.lead_to(server.url)
            await sessions.until_live(PATIENCE)
            assert running(sessions) == []
            (repaired,) = [one for one in sessions.items if one.session_id == "s"]
            assert repaired.revision > seen
            assert repaired == (await client.sessions())[0]
    finally:
        await server.stop()


async def test_twenty_clients_see_what_one_does(open_stage: OpenStage) -> None:
    """Each change, in all of them."""
    stage = await open_stage(watch_ms=10)
    lists = [(await stage.client()).watch_sessions() for _ in range(20)]
    await asyncio.gather(*(sessions.until_live(PATIENCE) for sessions in lists))
    user = await stage.user()
    for title in ("one", "two", "three"):
        made = await user.ask(SessionResult, "sessions.update", session_id="s", title=title)
        await asyncio.gather(*(until_shows(sessions, [made.session]) for sessions in lists))
