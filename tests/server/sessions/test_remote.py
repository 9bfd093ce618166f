"""A turn that a worker runs: who may attach, what is taken, and what is there afterwards (SPEC 14)."""

from __future__ import annotations

import asyncio

from midstream.protocol.agents import AbsorbInputs, AddInternal, EndStep, EndText, EndTurn, MoveTool
from midstream.protocol.frames import Ack, Answered, InputsWaiting, WriteRefused, Wrote
from midstream.protocol.limits import Limits
from midstream.protocol.model import ApprovalResponse, TextPart, TurnFailure
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import Street, in_simulation, refusal
from tests.server.sessions.workers import COMPLETED, Link, Remote, begin, reason, remote_agents, texts

APPROVED = ApprovalResponse(decision="approved")


# Writing


@in_simulation
async def test_a_worker_runs_a_turn_as_an_agent_in_the_server_does(street: Street) -> None:
    """Text, a tool with an approval, steering, the end: and readers see all of it."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        assert remote.attached.prompt.message_id == "a"
        assert (remote.attached.generation, remote.attached.next_n) == (1, 1)
        remote.say("Hello")
        remote.call_tool()
        remote.ask()
        await remote.acknowledged(durable=True)
        await house.respond("ask", APPROVED, subject="bob")
        [answered] = link.of(Answered)
        assert (answered.interaction.status, answered.interaction.resolved_by) == ("resolved", "bob")
        await house.prompt("b")
        assert [frame.count for frame in link.of(InputsWaiting)] == [1]
        remote.run()
        remote.write(MoveTool(part_id="tool", state="completed", output=2))
        n = remote.write(AbsorbInputs())
        await remote.acknowledged()
        [wrote] = link.of(Wrote)
        assert (wrote.n, [message.message_id for message in wrote.result.messages]) == (n, ["b"])
        remote.say("World", "p2")
        remote.write(COMPLETED)
        await link.until(lambda: link.detached)
        assert link.detached == ["ended"]
        messages = await house.equal(recorder)
        assert texts(messages) == ["Hello", "World"]
        assert [message.role for message in messages] == ["user", "agent", "user", "agent"]
        assert (await house.turn(remote.attached.turn.turn_id)).turn.state == "completed"  # type: ignore[union-attr]  # there is one


@in_simulation
async def test_a_refused_write_changes_nothing_and_the_next_ones_are_taken(street: Street) -> None:
    """It uses up its number, and says why."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        remote.call_tool()
        bad = [
            remote.append(7, "to no part"),
            remote.write(EndText(part_id="tool")),
            remote.run("p1"),
            remote.write(MoveTool(part_id="p1", state="waiting-user")),
        ]
        remote.open_text("p1", 2)  # the id is taken
        bad.append(remote.n - 1)
        remote.append(1, "good")
        remote.write(EndStep(step_id="step"))
        await remote.acknowledged(durable=True)
        assert [frame.n for frame in link.of(WriteRefused)] == bad
        assert texts(await house.messages()) == ["good"]


@in_simulation
async def test_results_come_before_the_acknowledgement_of_their_write(street: Street) -> None:
    """So that a worker that hears of the one knows the other."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        numbers = [remote.write(AddInternal(parts=[TextPart(text=str(i))])) for i in range(5)]
        await remote.acknowledged()
        for n in numbers:
            wrote = next(i for i, one in enumerate(link.frames) if isinstance(one, Wrote) and one.n == n)
            acked = next(i for i, one in enumerate(link.frames) if isinstance(one, Ack) and one.n >= n)
            assert wrote < acked


@in_simulation
async def test_text_goes_to_the_part_that_its_handle_stood_for_when_it_was_sent(street: Street) -> None:
    """Also where the text has to wait, and the handle is given to another part meanwhile."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text("p1")  # a commit: all that follows waits for it
        remote.append(1, "one")
        remote.open_text("p2")
        remote.append(1, "two")
        remote.write(COMPLETED)
        await link.until(lambda: link.detached)
        assert texts((await house.page()).items) == ["one", "two"]


@in_simulation
async def test_what_was_taken_is_not_taken_again_and_a_gap_ends_the_attachment(street: Street) -> None:
    """The numbers of one turn are consecutive."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        n = remote.append(1, "once")
        await remote.acknowledged()
        remote.append(1, "twice", n)
        remote.append(1, "too early", n + 2)
        await link.until(lambda: link.detached)
        assert link.detached == ["gap"]
        again = await Remote.attach(house, link, remote.attached.turn.turn_id, generation=1)
        assert (again.attached.generation, again.n) == (2, n + 1)
        again.handle("p1")
        again.append(1, ".")
        again.write(EndStep(step_id="step"))
        await again.acknowledged()
        assert texts(await house.messages()) == ["once."]


@in_simulation
async def test_a_worker_that_ignores_its_window_is_detached(street: Street) -> None:
    """What waits for a session is bounded."""
    agents = remote_agents(window_bytes=100)
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        for _ in range(11):
            remote.call_tool(f"tool {remote.n}")
        await link.until(lambda: link.detached)
        assert link.detached == ["overloaded"]


@in_simulation
async def test_a_worker_that_does_not_read_is_detached(street: Street) -> None:
    """Else what it is told would wait without bound."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        link.is_behind = True
        remote.append(7, "refused")
        await link.until(lambda: link.detached)
        assert link.detached == ["overloaded"]


@in_simulation
async def test_what_waited_is_carried_out_with_turns_for_others_between(street: Street) -> None:
    """A window holds tens of thousands of short texts, and each may be refused."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()  # a commit: what follows waits for it
        for _ in range(1000):
            remote.append(7, "refused")
        seen: set[int] = set()
        while 1000 not in seen:
            await asyncio.sleep(0)
            seen.add(len(link.of(WriteRefused)))
        assert len(seen) > 4  # in the simulation others may have had several turns by then


# Who holds the turn


@in_simulation
async def test_of_two_workers_the_first_to_attach_runs_the_turn(street: Street) -> None:
    """The other is told, and what it sends to a channel of its own fancy is nothing."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        first, second = Link("first"), Link("second")
        agents.register(second, 1)
        remote = await begin(house, agents, first)
        turn_id = remote.attached.turn.turn_id
        assert reason(await refusal(Remote.attach(house, second, turn_id))) == "turn_taken"
        remote.say("mine")
        await remote.acknowledged()
        assert texts(await house.messages()) == ["mine"]


@in_simulation
async def test_at_once_only_one_gets_it(street: Street) -> None:
    """The mailbox decides."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        links = [Link(str(number)) for number in range(5)]
        for link in links:
            agents.register(link, 1)
        await house.create()
        turn_id = str((await house.prompt("a")).turn_id)
        tries = await asyncio.gather(
            *(Remote.attach(house, link, turn_id) for link in links), return_exceptions=True
        )
        assert sum(isinstance(one, Remote) for one in tries) == 1
        assert {reason(one) for one in tries if not isinstance(one, Remote)} == {"turn_taken"}


@in_simulation
async def test_an_instance_is_its_names_own(street: Street) -> None:
    """Two workers that call their lives alike, by a number of the process say, are two workers."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        remote = await begin(house, agents, Link("first", instance="1"))
        other = Link("second", instance="1")
        error = await refusal(Remote.attach(house, other, remote.attached.turn.turn_id))
        assert reason(error) == "turn_taken"


@in_simulation
async def test_the_holder_comes_back_by_its_generation_and_fences_its_old_self(street: Street) -> None:
    """Also while the server has not noticed that the old connection is dead."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        old, new = Link("w"), Link("w")
        remote = await begin(house, agents, old)
        remote.open_text()
        remote.append(1, "old ")
        await remote.acknowledged()
        again = await Remote.attach(house, new, remote.attached.turn.turn_id, generation=1)
        assert old.detached == ["fenced"]
        remote.append(1, "nothing of this")
        again.handle("p1")
        again.append(1, "new")
        again.write(EndStep(step_id="step"))
        await again.acknowledged()
        assert texts(await house.messages()) == ["old new"]
        new.lose()
        other = Link("w", instance="of another process")
        await Remote.attach(house, other, remote.attached.turn.turn_id)
        stale = refusal(Remote.attach(house, old, remote.attached.turn.turn_id, generation=2))
        assert reason(await stale) == "fenced"


@in_simulation
async def test_a_turn_that_has_ended_takes_nobody(street: Street) -> None:
    """Whoever comes learns that it is over."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.write(COMPLETED)
        await link.until(lambda: link.detached)
        error = await refusal(Remote.attach(house, link, remote.attached.turn.turn_id, generation=1))
        assert reason(error) == "turn_ended"


@in_simulation
async def test_a_server_with_an_agent_of_its_own_takes_no_worker(street: Street) -> None:
    """It says so."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        assert reason(await refusal(Remote.attach(house, Link("w"), turn.turn_id))) == "not_remote"


# The end of a turn


@in_simulation
async def test_a_stop_reaches_the_worker_at_once_and_nothing_enters_after_it(street: Street) -> None:
    """Partial text stays, a tool whose input streamed is failed, and no timer had to pass."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        remote.open_text()
        remote.append(1, "partial")
        await remote.acknowledged()
        before = street.loop.time()
        await house.stop()
        assert link.detached == ["ended"]
        assert street.loop.time() == before
        remote.append(1, " and more")
        remote.say("late", "p2")
        await asyncio.sleep(1)
        assert texts(await house.equal(recorder)) == ["partial"]


@in_simulation
async def test_an_end_that_says_too_much_is_refused(street: Street) -> None:
    """Its failure becomes a part, which has a limit."""
    agents = remote_agents()
    settings = Settings(limits=Limits(part_bytes=100))
    async with street.house(remote=agents, settings=settings) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        failure = TurnFailure(code="long", message="x" * 101)
        remote.write(EndTurn(state="failed", failure=failure))
        await remote.acknowledged()
        [refused] = link.of(WriteRefused)
        assert refused.error.details["limit"] == "part_bytes"


@in_simulation
async def test_the_next_turn_is_offered_when_one_ends(street: Street) -> None:
    """Queued input starts it in the same commit."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        await house.prompt("b", delivery="queue")
        remote.write(COMPLETED)
        await link.until(lambda: len(link.offers) == 2)
        again = await Remote.attach(house, link, link.offers[1][0])
        assert again.attached.prompt.message_id == "b"
