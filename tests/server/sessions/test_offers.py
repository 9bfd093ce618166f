"""Which worker is offered which turn, and when (SPEC 14.3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from midstream.protocol.errors import Refused
from tests.server.sessions.house import House, Street, in_simulation, refusal
from tests.server.sessions.workers import COMPLETED, Link, Remote, remote_agents

if TYPE_CHECKING:
    from midstream.server.sessions.offers import RemoteAgents


async def prompted(house: House) -> str:
    """Create the session, prompt, and give the turn's id."""
    await house.create()
    return str((await house.prompt("a")).turn_id)


async def held(house: House, agents: RemoteAgents, link: Link) -> Remote:
    """A turn that a worker holds, and has written to."""
    agents.register(link, 1)
    remote = await Remote.attach(house, link, await prompted(house))
    remote.say("something")
    await remote.acknowledged()
    return remote


@in_simulation
async def test_a_turn_is_offered_to_one_worker_and_after_five_seconds_to_the_next(street: Street) -> None:
    """A worker that is well attaches at once; when all were asked, it begins anew."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        links = [Link(str(number)) for number in range(2)]
        for link in links:
            agents.register(link, 1)
        turn_id = await prompted(house)
        assert sorted(len(link.offers) for link in links) == [0, 1]
        await asyncio.sleep(5.1)
        assert [link.offers for link in links] == [[(turn_id, False)]] * 2
        await asyncio.sleep(5)
        assert sorted(len(link.offers) for link in links) == [1, 2]


@in_simulation
async def test_a_turn_is_offered_to_a_worker_that_reads_again(street: Street) -> None:
    """Though nothing else happens: a turn that began while it did not read is not forgotten."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        link.is_behind = True
        agents.register(link, 1)
        turn_id = await prompted(house)
        assert not link.offers
        link.is_behind = False
        await asyncio.sleep(5.1)
        assert link.offers == [(turn_id, False)]


@in_simulation
async def test_a_declined_offer_goes_to_the_next_at_once(street: Street) -> None:
    """And a decline of what was not offered is nothing."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        links = [Link(str(number)) for number in range(2)]
        for link in links:
            agents.register(link, 1)
        turn_id = await prompted(house)
        first, second = sorted(links, key=lambda link: -len(link.offers))
        agents.decline(second, turn_id)
        assert not second.offers
        agents.decline(first, turn_id)
        assert second.offers == [(turn_id, False)]


@in_simulation
async def test_who_declined_is_asked_again_only_after_a_while(street: Street) -> None:
    """However many decline, they are not asked in circles."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        links = [Link(str(number)) for number in range(2)]
        for link in links:
            agents.register(link, 1)
        turn_id = await prompted(house)
        for _ in range(3):
            for link in links * 2:
                agents.decline(link, turn_id)
        assert [len(link.offers) for link in links] == [1, 1]
        await asyncio.sleep(5.1)
        assert sorted(len(link.offers) for link in links) == [1, 2]
        late = Link("late")
        for link in links:
            agents.decline(link, turn_id)
        agents.register(late, 1)
        assert late.offers == [(turn_id, False)]


@in_simulation
async def test_nobody_is_offered_more_than_it_takes_at_a_time(street: Street) -> None:
    """Room is what neither is held nor offered; it comes back when a turn ends."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        agents.register(link, 2)
        for name in ("s", "t", "u"):
            await house.create(name)
            await house.prompt("a", session_id=name)
        assert len(link.offers) == 2
        remote = await Remote.attach(house, link, link.offers[0][0])
        assert len(link.offers) == 2
        remote.write(COMPLETED)
        await link.until(lambda: len(link.offers) == 3)


@in_simulation
async def test_who_registers_is_offered_what_waits(street: Street) -> None:
    """A turn may wait for its first worker."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        turn_id = await prompted(house)
        await asyncio.sleep(20)
        link = Link("w")
        agents.register(link, 1)
        assert link.offers == [(turn_id, False)]


@in_simulation
async def test_without_a_taker_the_turn_fails_in_thirty_seconds(street: Street) -> None:
    """Its failure says so."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        turn_id = await prompted(house)
        await asyncio.sleep(29.9)
        assert (await house.turn()).turn is not None
        await asyncio.sleep(0.2)
        turn = (await house.turn(turn_id)).turn
        assert turn is not None
        assert (turn.state, turn.error.code if turn.error else "") == ("failed", "no_agent")


@in_simulation
async def test_who_is_gone_is_offered_nothing(street: Street) -> None:
    """And what it was offered goes to another."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        first, second = Link("first"), Link("second")
        agents.register(first, 1)
        turn_id = await prompted(house)
        agents.unregister(first)
        agents.register(second, 1)
        assert second.offers == [(turn_id, False)]


@in_simulation
async def test_a_name_has_one_worker(street: Street) -> None:
    """The last to register has it; the one before is given back, to be sent away."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        old, new = Link("w", instance="1"), Link("w", instance="2")
        assert agents.register(old, 1) is None
        assert agents.register(new, 1) is old
        agents.unregister(old)  # its connection ends later, and takes nothing with it
        turn_id = await prompted(house)
        assert (old.offers, new.offers) == ([], [(turn_id, False)])


@in_simulation
async def test_a_lost_turn_is_offered_at_once_to_a_new_process_of_its_worker(street: Street) -> None:
    """If that can go on with what another process began."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        remote = await held(house, agents, old := Link("w", instance="1"))
        turn_id = remote.attached.turn.turn_id
        agents.unregister(old)
        old.lose()
        cannot, can = Link("w", instance="2"), Link("w", instance="3", resumes=True)
        agents.register(cannot, 1)
        assert not cannot.offers
        agents.register(can, 1)
        assert can.offers == [(turn_id, True)]
        again = await Remote.attach(house, can, turn_id)
        assert again.attached.generation == 2


@in_simulation
async def test_others_take_a_lost_turn_only_after_a_while(street: Street) -> None:
    """A short gap in the line must not cost the worker its turn."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        other = Link("other", resumes=True)
        remote = await held(house, agents, lost := Link("w"))
        agents.register(other, 1)
        turn_id = remote.attached.turn.turn_id
        agents.unregister(lost)
        lost.lose()
        await asyncio.sleep(4.9)
        assert not other.offers
        assert isinstance(await refusal(Remote.attach(house, other, turn_id)), Refused)
        await asyncio.sleep(0.2)
        assert other.offers == [(turn_id, True)]
        await Remote.attach(house, other, turn_id)
        error = await refusal(Remote.attach(house, Link("w"), turn_id, generation=1))
        assert isinstance(error, Refused)
        assert error.details["reason"] == "fenced"


@in_simulation
async def test_a_turn_that_kills_one_process_after_another_fails(street: Street) -> None:
    """Else it would take them down for ever, and their other turns with them."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        turn_id = await prompted(house)
        for life in range(8):
            assert (await house.turn()).turn is not None
            link = Link("w", instance=str(life))
            agents.register(link, 1)
            await Remote.attach(house, link, turn_id)
            agents.unregister(link)
            link.lose()
        await asyncio.sleep(0.1)
        turn = (await house.turn(turn_id)).turn
        assert turn is not None
        assert (turn.state, turn.error.code if turn.error else "") == ("failed", "agent_lost")


@in_simulation
async def test_processes_that_write_something_may_be_lost_for_ever(street: Street) -> None:
    """A long turn may see many deploys; and so may one whose worker keeps losing its line."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        turn_id = await prompted(house)
        for life in range(18):
            link = Link("w", instance=str(life // 9), resumes=True)
            remote = await Remote.attach(house, link, turn_id)
            if life % 9 == 0:
                remote.call_tool(f"tool {life}")
                await remote.acknowledged()
            link.lose()
        await asyncio.sleep(0.1)
        assert (await house.turn()).turn is not None


@in_simulation
async def test_a_turn_that_is_given_up_is_offered_at_once(street: Street) -> None:
    """A worker that goes down in good order says so."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        other = Link("other", resumes=True)
        remote = await held(house, agents, leaving := Link("w"))
        agents.register(other, 1)
        agents.unregister(leaving)
        leaving.give_up(remote.attached.channel)
        assert other.offers == [(remote.attached.turn.turn_id, True)]


@in_simulation
async def test_a_turn_that_was_held_and_not_begun_is_for_anybody(street: Street) -> None:
    """There is nothing to go on with."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        first, second = Link("first"), Link("second")
        agents.register(first, 1)
        turn_id = await prompted(house)
        await Remote.attach(house, first, turn_id)
        agents.register(second, 1)
        agents.unregister(first)
        first.lose()
        await asyncio.sleep(5.1)
        assert second.offers == [(turn_id, False)]
        await Remote.attach(house, second, turn_id)
