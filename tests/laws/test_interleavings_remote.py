"""Races of what workers write (SPEC 14.11), made to happen for certain."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from midstream.protocol.calls import SessionResult, StopResult
from midstream.protocol.errors import Refused
from midstream.protocol.limits import Limits
from midstream.worker import Worker
from tests.clock import SimClock
from tests.laws.workers import LEASE, REMOTE, TAKEOVER, Hand, Shop, reason, until_lost
from tests.laws.world import World, in_world, pause

if TYPE_CHECKING:
    from midstream.agents import Turn
    from midstream.protocol.values import Value
    from tests.laws.gate import When

APPROVED: Value = {"kind": "approval", "decision": "approved"}
SMALL_WINDOW = 2_000


@pytest.mark.parametrize("taken", range(4))
@in_world(config=REMOTE)
async def test_r33_the_connection_is_lost_while_writes_are_on_their_way(world: World, taken: int) -> None:
    """However many of them were taken: `next_n` says it, the rest is sent again, and each is there once."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.open_text()
    first = hold.n
    pieces = ["zero ", "one ", "two "]
    for piece in pieces[:taken]:
        await hold.append(piece)
    await hold.acknowledged()
    hand.line.link.stall("up")
    for piece in pieces[taken:]:
        await hold.append(piece)
    hand.line.cut()
    await until_lost()
    again = await hand.back(hold)
    assert again.n == first + taken
    assert again.result.durable_n == again.n - 1
    await again.name()
    for piece in pieces[again.n - first :]:
        await again.append(piece)
    await again.write("end_step", step_id="s1")
    await again.acknowledged()
    assert await shop.said() == ["zero one two "]


@in_world(config=REMOTE)
async def test_r35_the_server_is_killed_after_it_took_live_writes(world: World) -> None:
    """`next_n` follows the last one on disk; sent again, they make the same parts and the same text."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    stored = await hold.open_text()
    await hold.acknowledged(stored, durable=True)
    await hold.append("first")
    await hold.open_text("p2", 2)
    await hold.append("second", 2)
    await hold.acknowledged()
    await pause()
    shown = await shop.messages()
    await shop.crash()
    again = await hand.back(hold)
    assert (again.n, again.result.durable_n) == (stored + 1, stored)
    await again.name()
    await again.append("first")
    await again.open_text("p2", 2)
    await again.append("second", 2)
    await again.acknowledged()
    parts = [message.parts for message in await shop.messages()]
    assert parts == [message.parts for message in shown]
    reader = await shop.reader()
    await shop.proves(reader)


@in_world(config=REMOTE)
async def test_r36_the_server_is_killed_between_a_commit_and_its_ack(world: World) -> None:
    """The write is not applied again, and what it gave back comes with the attach."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    waiting = str((await shop.prompt()).message_id)
    gate = world.database.hold("write", "after")
    n = await hold.write("absorb_inputs")
    await gate.reached()
    await shop.crash()
    again = await hand.back(hold)
    assert again.n == n + 1
    [(number, result)] = again.result.results
    assert (number, [message.message_id for message in result.messages]) == (n, [waiting])
    await again.write("end_turn", state="completed")
    await again.detached()
    assert [message.message_id for message in await shop.messages()].count(waiting) == 1


@in_world(config=REMOTE)
async def test_r37_absorbing_found_nothing_and_an_input_is_accepted_before_a_restart(world: World) -> None:
    """What was answered stays true: the write is on disk, and the input waits for the next one."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    n = await hold.write("absorb_inputs")
    await hold.acknowledged(durable=True)
    assert not hold.wrote
    waiting = str((await shop.prompt()).message_id)
    await shop.crash()
    again = await hand.back(hold)
    assert (again.n, again.result.results, again.result.inputs) == (n + 1, [], 1)
    n = await again.write("absorb_inputs")
    await again.acknowledged()
    assert again.wrote == {n: [waiting]}


@in_world(config=REMOTE)
async def test_r38_the_turn_is_stopped_while_writes_are_on_their_way(world: World) -> None:
    """Nothing of them enters, whether they come before the stop is on disk or after it."""
    shop = await Shop.open(world)
    _, hold = await shop.work()
    await hold.open_text()
    await hold.append("partial")
    await hold.acknowledged()
    gate = world.database.hold("write", "before")
    stopping = await shop.user.begin("stop", {"session_id": "s"})
    await gate.reached()
    await hold.append(" and more")
    await hold.call_tool()
    await pause()
    gate.open()
    stopped = await stopping
    assert isinstance(stopped, StopResult)
    assert stopped.stopped
    assert await hold.detached() == "ended"
    await hold.append(" and late")
    await hold.write("end_step", step_id="s1")
    await pause()
    assert await shop.said() == ["partial"]
    [_, answer] = await shop.messages()
    assert (len(answer.parts), answer.state) == (1, "done")
    assert (await shop.turn_of(hold)).state == "stopped"


@in_world(config=REMOTE)
async def test_r39_the_turn_is_stopped_while_the_worker_is_away(world: World) -> None:
    """Its attach is refused: it is to stop its agent."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.open_text()
    await hold.acknowledged()
    hand.line.cut()
    await until_lost()
    await shop.stop()
    with pytest.raises(Refused) as refused:
        await hand.back(hold)
    assert reason(refused.value) == "turn_ended"


@pytest.mark.parametrize("end", ["resolved", "expired"])
@pytest.mark.parametrize("away", ["worker", "server"])
@in_world(config=REMOTE)
async def test_r40_an_interaction_ends_while_the_worker_or_the_server_is_away(
    world: World, away: str, end: str
) -> None:
    """The attach has the outcome, also of a message that is not open any more; nothing is asked again."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.call_tool()
    await hold.ask(expires_in_ms=8_000)
    await shop.prompt()
    await hold.write("absorb_inputs")
    await hold.acknowledged()
    if away == "worker":
        hand.line.cut()
        await until_lost()
    else:
        await world.kill()
        await pause(9 if end == "expired" else 0)
        await world.start()
        shop.user = await world.line()
    if end == "resolved":
        await shop.approve()
    elif away == "worker":
        await pause(9)
    again = await hand.back(hold, waiting=("ask",))
    [asked] = again.result.interactions
    assert (asked.interaction_id, asked.status) == ("ask", end)
    n = await again.write("move_tool", part_id="tool", state="running")
    await again.acknowledged(n, durable=True)
    assert not again.refused


@in_world(config=REMOTE)
async def test_r42_a_worker_dies_with_a_tool_running_and_another_goes_on(world: World) -> None:
    """The tool is not claimed again; the new holder sees that it was, and ends it."""
    shop = await Shop.open(world)
    first, hold = await shop.work()
    await hold.call_tool()
    claim = await hold.write("move_tool", part_id="tool", state="running")
    await hold.acknowledged(claim, durable=True)
    first.line.cut()
    await pause(TAKEOVER + 0.1)
    second = await Hand(world, "second").connect()
    taken = await second.attach(hold.turn_id)
    [message] = taken.result.messages
    assert [getattr(part, "state", None) for part in message.parts] == ["running"]
    again = await taken.write("move_tool", part_id="tool", state="running")
    await taken.write("move_tool", part_id="tool", state="failed", error="Its worker was lost.")
    await taken.acknowledged(durable=True)
    assert taken.refused == {again: "illegal_transition"}


@in_world(config=REMOTE)
async def test_r45_the_ack_of_the_end_is_lost(world: World) -> None:
    """The attach is refused, and the turn ended once."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.open_text()
    await hold.append("All")
    await hold.acknowledged()
    gate = world.database.hold("write", "after")
    await hold.end()
    await gate.reached()
    hand.line.cut()
    await pause()
    gate.open()
    with pytest.raises(Refused) as refused:
        await hand.back(hold)
    assert reason(refused.value) == "turn_ended"
    await pause(LEASE + 1)
    turn = await shop.turn_of(hold)
    assert turn.state == "completed"
    assert await shop.said() == ["All"]


@pytest.mark.parametrize("when", ["before", "after"])
@in_world(config=REMOTE)
async def test_r47_a_commit_fails_while_a_worker_writes(world: World, when: When) -> None:
    """Whether it is on disk or not: after attaching anew, what follows from `next_n` on is there once."""
    shop = await Shop.open(world)
    hand, hold = await shop.work()
    await hold.open_text()
    await hold.append("once")
    await hold.acknowledged()
    world.database.fail(when)
    ended = await hold.write("end_step", step_id="s1")
    assert await hold.detached() == "reload"
    again = await hand.attach(hold.turn_id, generation=1)
    assert again.n == (ended + 1 if when == "after" else 2)
    await again.name()
    for n in range(again.n, ended + 1):
        if n == ended:
            await again.write("end_step", step_id="s1")
        else:
            await again.append("once")
    await again.end()
    assert await again.detached() == "ended"
    assert await shop.said() == ["once"]


@in_world(config=REMOTE)
async def test_r48_a_write_cannot_be_read(world: World) -> None:
    """It is refused by its number, and the ones behind it are taken."""
    shop = await Shop.open(world)
    _, hold = await shop.work()
    await hold.open_text()
    bad = [await hold.write("no such op"), await hold.write("end_text", part_id=7)]
    bad.append(await hold._send(["a", hold.result.channel, hold.n, 1, None]))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] # what no worker sends
    await hold.append("good")
    await hold.acknowledged()
    assert hold.refused == dict.fromkeys(bad, "invalid")
    assert await shop.said() == ["good"]
    assert hold.line.is_open


@in_world(config=REMOTE, limits=Limits(agent_window_bytes=SMALL_WINDOW))
async def test_r49_the_agent_appends_faster_than_the_server_can_take(world: World) -> None:
    """It waits at its window while the server's disk stands still; then all of it is there, in order."""
    pieces = [f"{number} " for number in range(2_000)]
    appended = 0

    async def agent(turn: Turn) -> None:
        nonlocal appended
        for start in range(0, len(pieces), 100):
            async with turn.step() as step, step.text() as text:
                for piece in pieces[start : start + 100]:
                    await text.append(piece)
                    appended += len(piece)

    shop = await Shop.open(world)
    worker = Worker(f"ws://127.0.0.1:{world.port}", agent, clock=SimClock(world.loop), random=Random(1))
    running = asyncio.create_task(worker.run())
    turn_id = await shop.new_turn()
    while appended == 0:
        await pause(0.001)
    gate = world.database.hold("write", "before")
    await gate.reached()
    await pause(5)
    stood_at = appended
    await pause(5)
    assert appended == stood_at < len("".join(pieces)) - SMALL_WINDOW
    gate.open()
    while (await shop.ask(SessionResult, "sessions.get")).session.running_turn_id == turn_id:
        await pause()
    assert "".join(await shop.said()) == "".join(pieces)
    await worker.close()
    await running
