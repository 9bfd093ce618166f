"""What is promised to workers (SPEC 14.10: G23, G24, G27, G29)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from midstream.protocol.agent_calls import AttachResult
from midstream.protocol.model import ToolPart
from tests.disk import broken_disk
from tests.laws.workers import LEASE, REMOTE, TAKEOVER, Hand, Hold, Shop, until_lost
from tests.laws.world import World, in_world, pause, play


@in_world(config=REMOTE)
async def test_g23_a_generation_is_on_disk_before_it_is_told(world: World) -> None:
    """A server that was killed between the two never gives it again."""
    shop = await Shop.open(world)
    hand = await Hand(world).connect()
    turn_id = await shop.new_turn()
    gate = world.database.hold("write", "before")
    attaching = await hand.line.begin("agent.attach", {"session_id": "s", "turn_id": turn_id})
    await gate.reached()
    await pause()
    assert not attaching.done()
    gate.open()
    result = await attaching
    assert isinstance(result, AttachResult)
    assert result.generation == 1
    await shop.crash()
    await hand.connect()
    assert (await hand.attach(turn_id, generation=1)).result.generation == 2


async def ended_step(hold: Hold) -> int:
    """Commit a step."""
    return await hold.write("end_step", step_id="s1")


async def ready_tool(hold: Hold) -> int:
    """Call a tool."""
    return await hold.call_tool()


async def refused_claim(hold: Hold) -> int:
    """Claim what is not there."""
    return await hold.write("move_tool", part_id="none", state="running")


async def nothing_absorbed(hold: Hold) -> int:
    """Ask for input where none waits."""
    return await hold.write("absorb_inputs")


STORED = [ended_step, ready_tool, refused_claim, nothing_absorbed]
Make = Callable[[Hold], Coroutine[None, None, int]]


@pytest.mark.parametrize("make", STORED, ids=lambda make: make.__name__)
def test_g24_what_was_acknowledged_as_durable_survives_power_loss(make: Make, tmp_path: Path) -> None:
    """Of the disk only what was synced remains, and the writes are there, refused ones too."""
    left = tmp_path / "left"
    left.mkdir()
    held: list[Hold] = []

    async def before(world: World) -> None:
        shop = await Shop.open(world)
        _, hold = await shop.work()
        await hold.open_text()
        await hold.append("Kept")
        await make(hold)
        await hold.acknowledged(durable=True)
        disk.after_power_loss(left)
        held.append(hold)

    with broken_disk(remember=True) as disk:
        play(before, tmp_path, vfs=disk.name, synchronous="FULL", config=REMOTE)
    [hold] = held

    async def after(world: World) -> None:
        hand = await Hand(world).connect()
        again = await hand.attach(hold.turn_id, generation=1)
        assert again.n == hold.n
        assert [n for n, _ in again.result.refused] == list(hold.refused)
        assert "Kept" in str(again.result.messages)

    play(after, left, config=REMOTE)


@in_world(config=REMOTE)
async def test_g24_a_stored_write_is_acknowledged_when_it_is_on_disk(world: World) -> None:
    """Not before, whether it changes something or is refused; and then it is durable."""
    shop = await Shop.open(world)
    _, hold = await shop.work()
    await hold.open_text()
    await hold.acknowledged(durable=True)
    for make in STORED:
        gate = world.database.hold("write", "before")
        n = await make(hold)
        await gate.reached()
        await pause()
        assert not [ack for ack in hold.acks() if ack.n >= n]
        gate.open()
        await hold.acknowledged()
        assert not [ack for ack in hold.acks() if ack.n >= n > ack.durable]


@pytest.mark.parametrize("what", ["connection", "worker", "server killed", "server stopped"])
@in_world(config=REMOTE)
async def test_g27_no_turn_ends_before_its_lease_whatever_is_lost(world: World, what: str) -> None:
    """It runs until the end of the lease, and then it fails with what was taken."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.open_text()
    await hold.append("Taken")
    await hold.write("end_step", step_id="s1")
    await hold.acknowledged(durable=True)
    if what == "connection":
        hand.line.cut()
        await until_lost()
    elif what == "worker":
        await hand.line.close()
        await until_lost()
    elif what == "server killed":
        await shop.crash()
    else:
        await shop.restart()
    await pause(LEASE - 1)
    assert (await shop.turn_of(hold)).state == "running"
    await pause(2)
    turn = await shop.turn_of(hold)
    assert (turn.state, turn.error and turn.error.code) == ("failed", "agent_lost")
    assert await shop.said() == ["Taken"]


@pytest.mark.parametrize("next_claim", ["same process", "after a restart", "another process"])
@in_world(config=REMOTE)
async def test_g29_a_claim_is_on_disk_before_it_is_acknowledged_and_is_the_only_one(
    world: World, next_claim: str
) -> None:
    """No other one succeeds, wherever it comes from."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.call_tool()
    await hold.acknowledged(durable=True)
    gate = world.database.hold("write", "before")
    claim = await hold.write("move_tool", part_id="tool", state="running")
    await gate.reached()
    await pause()
    assert all(ack.n < claim for ack in hold.acks())
    gate.open()
    await hold.acknowledged(claim, durable=True)
    if next_claim == "after a restart":
        await shop.crash()
        hold = await hand.back(hold)
    elif next_claim == "another process":
        hand.line.cut()
        await pause(TAKEOVER + 0.1)
        hold = await (await Hand(world, "other").connect()).attach(hold.turn_id)
    again = await hold.write("move_tool", part_id="tool", state="running")
    await hold.acknowledged()
    assert hold.refused == {again: "illegal_transition"}
    [tool] = [
        part for message in await shop.messages() for part in message.parts if isinstance(part, ToolPart)
    ]
    assert tool.state == "running"
