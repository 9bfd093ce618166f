"""The command `midstream worker` as a process: it works, is told to stop, and ends with the reason."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from midstream.cli.work import WORKING
from tests.cli.processes import DEAF, WAITING, serving, started

REMOTE = ("--agent", "remote", "--log-level", "error")


async def test_the_built_in_agent_works_for_a_server_that_has_none(tmp_path: Path) -> None:
    """A chat shows no difference."""
    async with (
        serving(tmp_path, *REMOTE) as (_, url),
        started("worker", url, "demo", "--speed", "0", "--name", "w", folder=tmp_path) as worker,
        started("chat", url, "s", folder=tmp_path, typing=True) as chat,
    ):
        assert f"{WORKING} {url} as w (agent demo)." in await worker.until("Ctrl-C")
        await chat.type("hello", "use a tool", "delete", "y, go on")
        ended = await chat.ended()
        assert ended.code == 0, ended
        assert "approved by local: go on" in ended.out
        worker.signal(signal.SIGTERM)
        assert (await worker.ended()).code == 0


async def test_a_worker_that_is_told_to_stop_gives_up_what_does_not_end_in_time(tmp_path: Path) -> None:
    """Another one has the turn then, and the first one has ended well."""
    (tmp_path / "waiting.py").write_text(WAITING)
    async with (
        serving(tmp_path, *REMOTE) as (_, url),
        started("worker", url, "waiting:agent", "--drain-seconds", "0", folder=tmp_path) as worker,
        started("chat", url, "s", folder=tmp_path, typing=True) as chat,
    ):
        await chat.type("tell me")
        await chat.until("one two three")
        (tmp_path / "second.py").write_text(WAITING.replace("one two three", "four five six"))
        async with started("worker", url, "second:agent", "--resume", folder=tmp_path) as second:
            await second.until_note("worker_registered")
            worker.signal(signal.SIGTERM)
            ended = await worker.ended()
            assert (ended.code, "Stopping" in ended.out) == (0, True)
            await chat.until("four five six")
            second.signal(signal.SIGKILL)


async def test_the_second_signal_ends_a_worker_at_once(tmp_path: Path) -> None:
    """Who does not want to wait sends another."""
    (tmp_path / "waiting.py").write_text(WAITING)
    async with (
        serving(tmp_path, *REMOTE) as (_, url),
        started("worker", url, "waiting:agent", folder=tmp_path) as worker,
        started("chat", url, "s", folder=tmp_path, typing=True) as chat,
    ):
        await chat.type("tell me")
        await chat.until("one two three")
        worker.signal(signal.SIGINT)
        await worker.until("Stopping")
        worker.signal(signal.SIGINT)
        assert (await worker.ended()).code == 128 + signal.SIGINT


async def test_a_worker_whose_agent_cannot_be_cancelled_ends_all_the_same(tmp_path: Path) -> None:
    """The agent ends with the process."""
    (tmp_path / "deaf.py").write_text(DEAF)
    async with (
        serving(tmp_path, *REMOTE) as (_, url),
        started("worker", url, "deaf:agent", "--drain-seconds", "0", folder=tmp_path) as worker,
        started("chat", url, "s", folder=tmp_path, typing=True) as chat,
    ):
        await chat.type("tell me")
        await chat.until("one two three")
        worker.signal(signal.SIGTERM)
        assert (await worker.ended()).code == 0


async def test_a_worker_whose_name_another_takes_ends_with_the_reason(tmp_path: Path) -> None:
    """In one line."""
    async with (
        serving(tmp_path, *REMOTE) as (_, url),
        started("worker", url, "demo", "--name", "w", folder=tmp_path) as first,
    ):
        await first.until_note("worker_registered")
        async with started("worker", url, "demo", "--name", "w", folder=tmp_path):
            ended = await first.ended()
    assert ended.code == 1
    assert "midstream: Another process works as 'w' now" in ended.err


async def test_a_worker_of_a_server_that_runs_its_agent_itself_ends_with_the_reason(tmp_path: Path) -> None:
    """It says how to start the server."""
    async with (
        serving(tmp_path) as (_, url),
        started("worker", url, "demo", folder=tmp_path) as worker,
    ):
        ended = await worker.ended()
    assert ended.code == 1
    assert "--agent remote" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ws://127.0.0.1:1", "nobody"), "Agent 'nobody' cannot be used"),
        (("http://127.0.0.1:1", "demo"), "must begin with ws://"),
        (("ws://127.0.0.1:1", "demo", "--log-level", "loud"), "log_level: is 'loud'"),
    ],
)
async def test_what_is_typed_wrongly_is_answered_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """With the exit code of a misuse."""
    async with started("worker", *arguments, folder=tmp_path) as worker:
        ended = await worker.ended()
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1


async def test_a_worker_says_that_it_works_only_when_the_server_knows_it(tmp_path: Path) -> None:
    """Where nothing listens it says so, and goes on trying."""
    (tmp_path / "waiting.py").write_text(WAITING)
    async with started("worker", "ws://127.0.0.1:9", "waiting:agent", folder=tmp_path) as worker:
        await worker.until_note("worker_not_connected")
        worker.signal(signal.SIGTERM)
        ended = await worker.ended()
        assert "Connecting to ws://127.0.0.1:9" in ended.out
        assert WORKING not in ended.out


async def test_a_server_that_has_no_worker_says_so_at_once(tmp_path: Path) -> None:
    """And not only when the turn has waited in vain."""
    async with (
        serving(tmp_path, "--agent", "remote", "--log-level", "warning") as (server, url),
        started("chat", url, "s", folder=tmp_path, typing=True) as chat,
    ):
        await chat.type("anybody?")
        await server.until_note("turn_waits_for_a_worker")
