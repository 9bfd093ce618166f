"""Races of workers that attach, are lost, and replace each other (SPEC 14.11), made to happen for certain."""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol.agent_calls import AttachResult
from midstream.protocol.errors import Refused
from tests.laws.workers import LEASE, REMOTE, TAKEOVER, Hand, Hold, Shop, reason, until_lost
from tests.laws.world import World, in_world, pause


@in_world(config=REMOTE)
async def test_r31_two_workers_attach_to_an_offered_turn_at_once(world: World) -> None:
    """The first in the session's order has it; the other is refused, and no part of it."""
    shop = await Shop.open(world)
    hands = [await Hand(world, name).connect() for name in ("a", "b", "c")]
    turn_id = await shop.new_turn()
    tries = await asyncio.gather(*(hand.attach(turn_id) for hand in hands), return_exceptions=True)
    [hold] = [one for one in tries if isinstance(one, Hold)]
    assert [reason(one) for one in tries if isinstance(one, BaseException)] == ["turn_taken"] * 2
    assert hold.result.generation == 1
    await hold.end()
    assert await hold.detached() == "ended"


@in_world(config=REMOTE)
async def test_r32_the_answer_to_an_attach_is_lost_and_the_worker_attaches_again(world: World) -> None:
    """It gets in under the next generation, though it knows of none; no other worker does meanwhile."""
    shop = await Shop.open(world)
    hand, other = await Hand(world).connect(), await Hand(world, "other").connect()
    turn_id = await shop.new_turn()
    gate = world.database.hold("write", "after")
    await hand.line.begin("agent.attach", {"session_id": "s", "turn_id": turn_id})
    await gate.reached()
    hand.line.cut()
    gate.open()
    await until_lost()
    with pytest.raises(Refused) as refused:
        await other.attach(turn_id)
    assert reason(refused.value) == "turn_taken"
    await hand.connect()
    assert (await hand.attach(turn_id)).result.generation == 2


@in_world(config=REMOTE)
async def test_r34_writes_of_an_older_connection_arrive_after_the_attach_on_a_new_one(world: World) -> None:
    """They are ignored: their attachment is over, and their numbers are the new one's."""
    shop = await Shop.open(world)
    hand, old = await shop.work()
    await old.open_text()
    await old.append("once ")
    await old.acknowledged()
    new = await hand.back(old)
    assert await old.detached() == "fenced"
    assert new.n == old.n
    await old.append("never ")
    await old.write("end_turn", state="completed")
    await pause()
    await new.name()
    await new.append("and once")
    await new.acknowledged()
    assert await shop.said() == ["once and once"]
    assert (await shop.turn_of(new)).state == "running"


@pytest.mark.parametrize("other_comes", [False, True])
@in_world(config=REMOTE, heartbeat_ms=1_000)
async def test_r41_a_worker_stands_still_for_longer_than_its_lease(
    world: World, *, other_comes: bool
) -> None:
    """What it wrote meanwhile does not enter, and its attach is refused: the turn is over, or another's."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.open_text()
    await hold.append("before ")
    await hold.acknowledged()
    hand.line.link.half_open("up")
    await hold.append("meanwhile ")
    await pause(3 + TAKEOVER)
    if other_comes:
        other = await Hand(world, "other").connect()
        taken = await other.attach(hold.turn_id)
        await taken.name()
        await taken.append("after")
        await taken.acknowledged()
    await pause(LEASE + 1)
    hand.line.link.heal()
    with pytest.raises(Refused) as refused:
        await hand.back(hold)
    assert reason(refused.value) == ("fenced" if other_comes else "turn_ended")
    assert await shop.said() == ["before after" if other_comes else "before "]
    turn = await shop.turn_of(hold)
    assert turn.state == ("running" if other_comes else "failed")
    assert other_comes or (turn.error and turn.error.code) == "agent_lost"


@in_world(config=REMOTE)
async def test_r43_a_second_worker_goes_on_and_then_the_server_is_killed(world: World) -> None:
    """What the first one wrote is there: it was stored with the second one's attach."""
    shop = await Shop.open(world)
    first, hold = await shop.work()
    await hold.open_text()
    await hold.append("streamed, not stored")
    await hold.acknowledged()
    assert hold.acks()[-1].durable < hold.n - 1
    first.line.cut()
    await pause(TAKEOVER + 0.1)
    second = await Hand(world, "second").connect()
    taken = await second.attach(hold.turn_id)
    assert taken.result.durable_n == taken.result.next_n - 1 == hold.n - 1
    await shop.crash()
    again = await second.back(taken)
    assert again.n == taken.n
    assert await shop.said() == ["streamed, not stored"]


@pytest.mark.parametrize("first", ["attach", "end"])
@in_world(config=REMOTE)
async def test_r44_the_lease_ends_in_the_moment_of_an_attach(world: World, first: str) -> None:
    """One is first: the turn goes on, or it has failed and the attach is refused."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.open_text()
    await hold.acknowledged(durable=True)
    hand.line.cut()
    await until_lost()
    await hand.connect()
    asked = {"session_id": "s", "turn_id": hold.turn_id}
    if first == "attach":
        gate = world.database.hold("write", "before")
        attaching = await hand.line.begin("agent.attach", {**asked})
        await gate.reached()
        await pause(LEASE + 1)
        gate.open()
        result = await attaching
        assert isinstance(result, AttachResult)
        assert result.generation == 2
        assert (await shop.turn_of(hold)).state == "running"
        return
    gate = world.database.hold("write", "before")
    await gate.reached()
    attaching = await hand.line.begin("agent.attach", {**asked})
    await pause()
    gate.open()
    with pytest.raises(Refused) as refused:
        await attaching
    assert reason(refused.value) == "turn_ended"
    assert (await shop.turn_of(hold)).state == "failed"


@in_world(config=REMOTE)
async def test_r46_a_process_registers_the_name_of_one_that_is_still_connected(world: World) -> None:
    """The older connection is closed with 4506, and its turns may be taken by the newer one at once."""
    shop = await Shop.open(world)
    old, hold = await shop.work()
    await hold.open_text()
    await hold.append("old ")
    await hold.acknowledged()
    new = await Hand(world, instance="2").connect()
    await old.line.until(lambda: not old.line.is_open)
    assert old.line.code == 4506
    await new.line.until(lambda: bool(new.offers))
    assert new.offers == [hold.turn_id]
    taken = await new.attach(hold.turn_id)
    await taken.name()
    await taken.append("new")
    await taken.acknowledged()
    assert await shop.said() == ["old new"]
