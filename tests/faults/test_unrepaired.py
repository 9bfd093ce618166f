"""While the disk takes no commit, what is stored is served, and nothing else; then all goes on by itself."""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol.errors import Unavailable
from midstream.protocol.model import ErrorPart, TextPart
from tests.disk import Fault, broken_disk
from tests.server.sessions.house import Street, in_simulation, refusal


@in_simulation
async def test_a_session_whose_turn_was_cut_off_is_read_while_the_disk_is_full(street: Street) -> None:
    """As it is stored, by who comes and who comes back; writes are refused; then it is repaired, unasked."""
    await _outage(street, Fault.DISK_FULL)


@in_simulation
async def test_a_session_whose_turn_was_cut_off_is_read_while_writes_fail(street: Street) -> None:
    """Likewise."""
    await _outage(street, Fault.WRITE_ERROR)


@in_simulation
async def test_a_session_whose_turn_was_cut_off_is_read_while_fsync_fails(street: Street) -> None:
    """Likewise; what an fsync refused is not shown, though it may be in the file."""
    await _outage(street, Fault.FSYNC_ERROR)


async def _outage(street: Street, fault: Fault) -> None:
    with broken_disk() as disk:
        async with street.house(vfs=disk.name, synchronous="FULL") as house:
            await house.create()
            seen = await house.subscribe()
            turn = await house.begin()
            async with turn.step() as step, step.text() as text:
                await text.append("stored")
            step = await turn.step().__aenter__()
            streaming = await step.text().__aenter__()
            await streaming.append("lost")
            await house.settled()
            shown = seen.replica.version
            disk.fail(fault)
            with pytest.raises(Unavailable):
                await step.tool("t", input=1)
            back, fresh = await house.resume(seen), await house.subscribe()
            messages = await house.equal(back)
            assert await house.equal(fresh) == messages
            assert [part.text for part in messages[1].parts if isinstance(part, TextPart)] == ["stored"]
            assert back.replica.version >= shown
            error = await refusal(house.prompt("another"))
            assert (error.code, error.retryable) == ("unavailable", True)
            frames = len(back.frames), len(fresh.frames)
            await asyncio.sleep(60)
            assert (len(back.frames), len(fresh.frames)) == frames
            disk.repair()
            await back.until(lambda: back.replica.running_turn is None)
            messages = await house.equal(back)
            assert [part.code for part in messages[1].parts if isinstance(part, ErrorPart)] == [
                "runtime_interrupted"
            ]
            assert back.closed == fresh.closed == []
            assert (await house.prompt("another")).state == "started"


@in_simulation
async def test_a_call_that_writes_repairs_at_once_what_can_be_repaired(street: Street) -> None:
    """Nobody waits for the next try."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            await house.begin()
            disk.fail(Fault.DISK_FULL)
            for name in ("a", "b"):
                assert (await refusal(house.prompt(name))).code == "unavailable"
            await asyncio.sleep(100)
            before = street.clock.now()
            disk.repair()
            assert (await house.prompt("a")).state == "started"
            assert street.clock.now() == before


@in_simulation
async def test_a_server_that_stops_with_sessions_unrepaired_leaves_them_to_the_next(street: Street) -> None:
    """It does not wait for the disk; the next start ends what was cut off."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            await house.begin()
            disk.fail(Fault.DISK_FULL)
            assert (await refusal(house.prompt("a"))).code == "unavailable"
            await house.session()
            await house.registry.stop()
            disk.repair()
        async with street.house() as house:
            parts = [part for message in await house.messages() for part in message.parts]
            assert [part.code for part in parts if isinstance(part, ErrorPart)] == ["runtime_interrupted"]
