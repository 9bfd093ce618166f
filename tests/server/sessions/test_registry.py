"""The registry: each session is loaded once, those with work at start, and all end with the server."""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol import calls
from midstream.protocol.errors import MidstreamError, Unavailable
from midstream.protocol.model import TextPart
from midstream.server.storage import store
from tests.disk import Fault, broken_disk
from tests.server.sessions.house import House, Street, decoded, in_simulation, refusal
from tests.server.sessions.recorder import Recorder
from tests.server.storage.books import tables


async def leave_work(house: House, count: int) -> None:
    """Make sessions of which each has a turn that runs, and an input that waits."""
    for number in range(count):
        await house.create(f"s{number}")
        await house.begin("runs", f"s{number}")
        await house.prompt("waits", session_id=f"s{number}")


@in_simulation
async def test_a_session_is_loaded_once_whoever_asks(street: Street) -> None:
    """Its channel is one for all of its subscribers; another load has another."""
    async with street.house() as house:
        await house.create()
        params = calls.SubscribeParams(session_id="s")
        readers = [Recorder() for _ in range(5)]
        answers = [house.post("subscribe", params, subscriber=reader) for reader in readers]
        channels = {decoded(calls.SubscribeResult, await answer).channel for answer in answers}
        assert len(channels) == 1
        assert house.registry.loaded == 1
        for reader in readers:
            house.registry.leave("s", reader)
        await asyncio.sleep(100)
        assert house.registry.loaded == 0
        answer = decoded(calls.SubscribeResult, await house.post("subscribe", params, subscriber=readers[0]))
        assert answer.channel not in channels


@in_simulation
async def test_sessions_with_work_are_loaded_at_start_and_others_are_not(street: Street) -> None:
    """However many; their waiting input runs though nobody connects."""
    async with street.house() as house:
        await house.create("idle")
        await leave_work(house, 70)
        await house.crash()
    async with street.house() as house:
        started = {(await house.puppet.next()).session_id for _ in range(70)}
        assert started == {f"s{number}" for number in range(70)}
        assert house.registry.loaded == 70
        for name in started:
            session = (await house.session(name)).session
            assert session.queue == []
            assert session.running_turn_id


@in_simulation
async def test_what_an_earlier_run_could_not_remove_is_removed_at_start(street: Street) -> None:
    """Of a deleted session and of a cleared one; the call itself was stored, and answered as done."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            for name, method in (("a", "sessions.delete"), ("b", "sessions.clear"), ("c", "")):
                await house.create(name)
                await house.complete(await house.begin("m", name))
                if method:
                    params = calls.SessionParams(session_id=name)
                    answer = house.post(method, params, replied=lambda _: disk.fail(Fault.WRITE_ERROR))
                    assert not isinstance(await answer, MidstreamError)
                    await asyncio.sleep(1)
                    disk.repair()
            assert (await house.database.read(tables))["parts"] == 3
    async with street.house() as house:
        await asyncio.sleep(1)
        assert (await house.database.read(tables))["parts"] == 1
        assert await house.database.read(store.sessions_to_clean) == []


@in_simulation
async def test_a_server_that_stops_ends_everything_and_takes_nothing_more(street: Street) -> None:
    """All turns, of however many sessions; calls that come then are told to come back."""
    async with street.house() as house:
        await leave_work(house, 5)
        readers = [await house.subscribe(session_id=f"s{number}") for number in range(5)]
        await house.registry.stop()
        assert house.registry.loaded == 0
        for reader in readers:
            assert reader.replica.running_turn is None
            assert reader.replica.session is not None
            assert reader.replica.session.queue == ["waits"]
        with pytest.raises(Unavailable):
            house.post("sessions.get", calls.SessionParams(session_id="s0"))
        await house.registry.stop()
    async with street.house(start=False) as house:
        loaded = await house.database.read(lambda connection: store.load_session(connection, "s0"))
        assert loaded is not None
        assert not loaded.ledger.dirty


@in_simulation
async def test_a_fork_does_not_hold_up_the_end_of_the_server(street: Street) -> None:
    """It is given up and answered as such; the next start removes what there is of it."""
    async with street.house() as house:
        await house.create()
        for number in range(500):
            await house.prompt(f"m{number}", TextPart(text="x"), delivery="interrupt")
        answer = house.post("sessions.fork", calls.ForkParams(session_id="s", new_session_id="f"))
        while (await house.database.read(tables))["sessions"] == 1:
            pass
        await house.registry.stop()
        given_up = await answer
        assert isinstance(given_up, Unavailable)
    async with street.house() as house:
        await asyncio.sleep(1)
        assert (await house.database.read(tables))["sessions"] == 1
        assert (await refusal(house.session("f"))).code == "not_found"


@in_simulation
async def test_a_reader_of_a_session_that_is_not_loaded_is_owed_nothing(street: Street) -> None:
    """Its connection may ask after the session was let go of; nothing is loaded for that."""
    async with street.house() as house:
        await house.create()
        recorder = Recorder()
        house.registry.resync("s", recorder)
        house.registry.leave("s", recorder)
        assert house.registry.loaded == 0
        assert recorder.frames == []
