"""What the Python client and the worker do with tokens, with real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.client import Client, ConnectionRejected, Options
from midstream.server import Config, Turn
from midstream.server.connections import standing
from midstream.worker import Worker, WorkerOptions
from tests.end_to_end.guests import server_with_tokens, token
from tests.end_to_end.stage import QUICK


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "midstream.db"


def purse(*tokens: Callable[[], str]) -> tuple[Callable[[], str], list[str]]:
    """A function that gives these tokens one after another, the last for ever, and what it gave."""
    given: list[str] = []

    def get() -> str:
        given.append(tokens[min(len(given), len(tokens) - 1)]())
        return given[-1]

    return get, given


async def test_a_client_renews_its_token_on_the_connection_that_it_has(path: Path) -> None:
    """In time, again and again, and the application sees nothing of it."""
    enough = asyncio.Event()

    def make() -> str:
        enough.set()
        return token("alice", ttl=2)

    get, given = purse(make)
    async with server_with_tokens(path) as server:
        async with Client(server.url, token=get, options=Options(policy=QUICK)) as client:
            session = await client.session((await client.create()).session_id)
            states = client.states()
            async with asyncio.timeout(60):
                while len(given) < 4:
                    await enough.wait()
                    enough.clear()
            await session.update(title="Still here")
        assert [state async for state in states] == ["closed"]


async def test_who_is_too_late_comes_back_with_a_new_token_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 4505, and after the first 4504."""
    monkeypatch.setattr(standing, "GRACE_SECONDS", 0.0)
    get, given = purse(
        lambda: token("alice", ttl=-5), lambda: "no token at all", lambda: token("alice", ttl=3_600)
    )
    async with (
        server_with_tokens(path) as server,
        Client(server.url, token=get, options=Options(policy=QUICK)) as client,
    ):
        await client.create()
        assert len(given) == 3


@pytest.mark.parametrize("again", [True, False], ids=["a function", "a text"])
async def test_a_token_that_is_refused_again_ends_the_client(path: Path, again: bool) -> None:  # noqa: FBT001 - a case
    """With an error that says so; a text is not tried twice."""
    given: list[str] = []

    def get() -> str:
        given.append("no token")
        return given[-1]

    async with (
        server_with_tokens(path) as server,
        Client(server.url, token=get if again else "no token", options=Options(policy=QUICK)) as client,
    ):
        with pytest.raises(ConnectionRejected) as caught:
            await client.create()
        assert caught.value.details["close_code"] == 4504
        assert len(given) == (2 if again else 0)


async def test_a_worker_runs_the_turns_of_others_and_reads_what_it_runs(path: Path) -> None:
    """With the scope `agent` alone; it sees no list of what it does not run."""
    read: list[int] = []

    async def agent(turn: Turn) -> None:
        read.append(len((await turn.context()).messages))
        async with turn.step() as step, step.text() as text:
            await text.append("Hello")

    async with server_with_tokens(path, agent=None, config=Config(agent="remote")) as server:
        worker = Worker(
            server.url, agent, options=WorkerOptions(token=token("worker", scopes=["agent"]), policy=QUICK)
        )
        running = asyncio.create_task(worker.run())
        async with Client(server.url, token=token("alice"), options=Options(policy=QUICK)) as client:
            session = await client.session((await client.create()).session_id)
            handle = await session.prompt("Hi")
            assert (await handle.finished()).state == "completed"
            assert read == [1]
        await worker.close()
        await running
