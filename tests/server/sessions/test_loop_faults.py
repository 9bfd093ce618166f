"""When the disk, the file's owner or our own code fails: nobody is told wrong, and the session comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest
from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.errors import Unavailable
from midstream.protocol.model import ErrorPart, TextPart
from midstream.server.sessions.broadcast import Broadcast
from midstream.server.sessions.services import Settings
from midstream.server.sessions.versions import CEILING_BLOCK, TIME_BLOCK_MS
from midstream.server.storage import owner
from tests.disk import Disk, Fault, broken_disk
from tests.server.sessions.house import House, Street, in_simulation, parts_of, refusal
from tests.server.sessions.recorder import Closed, Recorder

RELOAD = [Closed("reload", retryable=True)]


@contextmanager
def failing(disk: Disk, fault: Fault = Fault.WRITE_ERROR) -> Generator[None]:
    """Let the disk fail in the block."""
    disk.fail(fault)
    try:
        yield
    finally:
        disk.repair()


async def unavailable(house: House, message_id: str = "m") -> None:
    """Hand in an input that cannot be stored."""
    error = await refusal(house.prompt(message_id))
    assert (error.code, error.retryable) == ("unavailable", True)


@in_simulation
async def test_a_failed_commit_is_told_as_such_and_ends_every_subscription(street: Street) -> None:
    """Nothing of it is seen, and the same call carries it out once the disk works."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            recorder = await house.subscribe()
            with failing(disk):
                await unavailable(house)
            assert recorder.closed == RELOAD
            assert len(recorder.frames) == 1
            again = await house.resume(recorder)
            assert (await house.prompt("m")).state == "started"
            [message] = await house.equal(again)
            assert message.message_id == "m"


@in_simulation
async def test_a_failed_commit_in_a_turn_cuts_off_its_agent_and_the_session_recovers_by_itself(
    street: Street,
) -> None:
    """What was only streamed is lost; the turn is failed as interrupted; the epoch is another one."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            recorder = await house.subscribe()
            turn = await house.begin()
            async with turn.step() as step, step.text() as text:
                await text.append("stored")
            await house.prompt("waits")
            step = await turn.step().__aenter__()
            streaming = await step.text().__aenter__()
            await streaming.append("lost")
            await house.settled()
            seen, epoch = recorder.replica.version, recorder.replica.epoch
            with failing(disk), pytest.raises(Unavailable):
                await step.tool("t", input=1)
            assert recorder.closed == RELOAD
            assert house.puppet.was_cut_off(turn)
            with pytest.raises(Unavailable):
                await step.tool("t", input=1)
            next_turn = await house.puppet.next()
            assert next_turn.prompt_text == "text of waits"
            again = await house.resume(recorder)
            assert again.replica.version > seen
            assert again.replica.epoch != epoch
            messages = await house.equal(again)
            assert [part.text for part in messages[1].parts if isinstance(part, TextPart)] == ["stored"]
            assert [part.code for part in messages[1].parts if isinstance(part, ErrorPart)] == [
                "runtime_interrupted"
            ]
            assert again.replica.turns[turn.turn_id].state == "failed"


@in_simulation
async def test_a_session_that_cannot_be_recovered_is_tried_until_it_can(street: Street) -> None:
    """Every call is told so; what was accepted starts without anybody asking."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            await house.begin()
            await house.prompt("waits")
            with failing(disk):
                for _ in range(5):
                    await unavailable(house, "another")
                    await asyncio.sleep(20)
            turn = await house.puppet.next()
            assert turn.prompt_text == "text of waits"
            assert [message.role for message in await house.messages()] == ["user", "agent", "user"]


@in_simulation
async def test_a_start_on_a_disk_that_does_not_write_goes_on_once_it_does(street: Street) -> None:
    """The server starts; the sessions with work are loaded when that is possible."""
    async with street.house() as house:
        await house.create()
        await house.begin()
        await house.prompt("waits")
        await house.crash()
    with broken_disk() as disk:
        async with street.house(vfs=disk.name, start=False) as house:
            with failing(disk):
                await house.registry.start()
                await asyncio.sleep(100)
            assert (await house.puppet.next()).prompt_text == "text of waits"


@in_simulation
async def test_data_that_is_there_though_its_commit_failed_is_found_done(street: Street) -> None:
    """The sync failed after the write: after a crash the input may be there, and its repeat finds it once."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name, synchronous="FULL") as house:
            await house.create()
            with failing(disk, Fault.FSYNC_ERROR):
                await unavailable(house)
            await house.crash()
        async with street.house() as house:
            await house.prompt("m")
            await house.prompt("m")
            messages = [message for message in await house.messages() if message.role == "user"]
            assert [message.message_id for message in messages] == ["m"]


@in_simulation
async def test_streaming_past_the_ceiling_waits_for_its_write_and_fails_with_it(street: Street) -> None:
    """Nothing above the stored ceiling is published, whatever becomes of the disk."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name, settings=Settings(tick_seconds=0.001)) as house:
            await house.create()
            recorder = await house.subscribe()
            turn = await house.begin()
            step = await turn.step().__aenter__()
            text = await step.text().__aenter__()
            start = recorder.replica.version
            with failing(disk):
                while not recorder.closed:
                    await text.append("x")
                    await asyncio.sleep(0.001)
            assert recorder.closed == RELOAD
            assert start + CEILING_BLOCK // 4 <= recorder.replica.version <= start + CEILING_BLOCK
            again = await house.resume(recorder)
            assert again.replica.version > start + CEILING_BLOCK // 2
            await house.equal(again)


@in_simulation
async def test_streaming_past_the_ceiling_of_times_waits_for_its_write_and_fails_with_it(
    street: Street,
) -> None:
    """However few versions that takes; and while the disk lives, it costs a write in some seconds."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            recorder = await house.subscribe()
            turn = await house.begin()
            step = await turn.step().__aenter__()
            text = await step.text().__aenter__()
            for _ in range(60):
                await text.append("x")
                await asyncio.sleep(1)
            assert not recorder.closed
            last = street.clock.wall_ms()
            with failing(disk):
                while not recorder.closed:
                    await text.append("x")
                    await asyncio.sleep(1)
            assert recorder.closed == RELOAD
            shown = recorder.replica.messages()[-1].updated_at
            assert last - TIME_BLOCK_MS <= shown <= last + TIME_BLOCK_MS
            again = await house.resume(recorder)
            assert again.replica.messages()[-1].updated_at >= shown
            await house.equal(again)


@in_simulation
async def test_a_failed_read_costs_one_call(street: Street) -> None:
    """The session was not changed, so it goes on, and its subscriptions with it."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            recorder = await house.subscribe()
            for number in range(300):  # more than SQLite keeps in memory
                await house.prompt(f"m{number}", TextPart(text="x" * 20_000), delivery="interrupt")
            disk.fail(Fault.READ_ERROR, file="wal")
            disk.fail(Fault.READ_ERROR, file="main")
            error = await refusal(house.page(before=50, limit=200))
            assert (error.code, error.retryable) == ("unavailable", True)
            disk.repair()
            assert recorder.closed == []
            assert len((await house.page(before=50)).items) == 49


@in_simulation
async def test_a_sync_that_cannot_be_read_ends_the_subscription_that_is_owed_it(street: Street) -> None:
    """And no other, nor the turn: whoever reads slowly disturbs nobody."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name, settings=Settings(history_bytes=0)) as house:
            await house.create()
            slow, other = await house.subscribe(), await house.subscribe()
            for number in range(300):  # more than SQLite keeps in memory
                await house.prompt(f"m{number}", TextPart(text="x" * 20_000), delivery="interrupt")
                await house.puppet.next()
                slow.behind = True
            disk.fail(Fault.READ_ERROR, file="wal")
            disk.fail(Fault.READ_ERROR, file="main")
            house.registry.resync("s", slow)
            await slow.until(lambda: slow.closed)
            disk.repair()
            assert (slow.closed, other.closed) == (RELOAD, [])
            assert (await house.turn()).turn is not None


@in_simulation
async def test_a_failed_unload_is_a_crash_of_that_session(street: Street) -> None:
    """The next load starts above all that was published."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            await house.complete(await house.begin())
            before = await house.session()
            with failing(disk):
                await asyncio.sleep(100)
                assert house.registry.loaded == 0
            after = await house.session()
            assert after.version > before.version
            assert after.session == before.session
            assert (await house.prompt("next")).state == "started"


@in_simulation
async def test_whoever_lost_the_file_stops_writing_and_says_so(street: Street) -> None:
    """Another process took it over: calls are refused, and the server is told to stop."""
    async with street.house() as house:
        await house.create()
        other = apsw.Connection(str(street.path))
        other.execute("UPDATE owner SET generation = generation + 1")
        before = owner.stored_generation(other)
        await unavailable(house)
        assert house.ownership_lost
        house.ownership_lost = False
        assert (await refusal(house.create("another"))).code == "unavailable"
        assert house.ownership_lost
        assert owner.stored_generation(other) == before
        other.close()


class Broken(Recorder):
    """A subscriber that breaks at the next change."""

    def publish(self, broadcast: Broadcast) -> None:
        """Break."""
        raise RuntimeError(broadcast.cursor.version)


@in_simulation
async def test_a_change_that_cannot_be_told_to_everybody_reloads_the_session(street: Street) -> None:
    """It is stored, so nobody may go on without it, and its turn must not be left without an agent."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        await house.subscribe(Broken())
        error = await refusal(house.prompt())
        assert error.code == "internal"
        assert recorder.closed == RELOAD
        again = await house.resume(recorder)
        messages = await house.equal(again)
        assert messages[0].message_id == "m"
        assert parts_of(messages[-1])[-1]["code"] == "runtime_interrupted"
        session = await house.session()
        assert session.session.running_turn_id is UNSET
        assert (await house.prompt("m")).state == "started"


@in_simulation
async def test_calls_in_progress_are_answered_when_the_process_ends(street: Street) -> None:
    """Each exactly once, also the one that was being carried out."""
    async with street.house() as house:
        await house.create()
        await house.settled()
        answers = [
            house.post("sessions.update", calls.UpdateParams(session_id="s", title=title))
            for title in ("a", "b", "c")
        ]
        await asyncio.sleep(0)
        await house.crash()
        assert [isinstance(await answer, Unavailable) for answer in answers] == [True] * 3
