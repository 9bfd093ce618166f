"""Workers and servers that are lost in the middle of a turn (SPEC 14.9)."""

from __future__ import annotations

import asyncio

from msgspec import UNSET

from midstream.protocol.agents import AbsorbInputs, AddInternal, Compact, EndStep
from midstream.protocol.errors import Overloaded
from midstream.protocol.frames import ErrorFrame, WriteRefused, Wrote
from midstream.protocol.limits import Limits
from midstream.protocol.model import ApprovalResponse, ErrorPart, InteractionPart, TextPart, ToolPart
from midstream.server.sessions.commands import TakesWrites
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import Street, in_simulation, refusal
from tests.server.sessions.workers import COMPLETED, Link, Remote, begin, reason, remote_agents, texts

APPROVED = ApprovalResponse(decision="approved")


class Flooded(Link):
    """A link that falls behind by what other sessions answer, while an attach is carried out."""

    def open(self, attachment: TakesWrites) -> int:
        """Give out a channel."""
        self.is_behind = True
        return super().open(attachment)


# A worker that is lost


@in_simulation
async def test_a_lost_worker_goes_on_within_its_lease(street: Street) -> None:
    """From the last write that was taken: the open message is there, streamed text and all."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        remote.open_text()
        remote.append(1, "before ")
        link.lose()
        await asyncio.sleep(29)
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert again.n == remote.n
        [message] = again.attached.messages
        assert texts([message]) == ["before "]
        again.handle("p1")
        again.append(1, "after")
        again.write(EndStep(step_id="step"))
        again.write(COMPLETED)
        await again.link.until(lambda: again.link.detached)
        assert texts(await house.equal(recorder)) == ["before after"]


@in_simulation
async def test_what_came_before_the_connection_was_lost_is_carried_out(street: Street) -> None:
    """A worker may send the end of its turn, and go."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.say("bye")
        remote.write(COMPLETED)
        link.lose()
        await asyncio.sleep(1)
        turn = (await house.turn(remote.attached.turn.turn_id)).turn
        assert turn is not None
        assert turn.state == "completed"
        assert texts(await house.messages()) == ["bye"]


@in_simulation
async def test_after_the_lease_the_turn_fails_and_keeps_its_text(street: Street) -> None:
    """The next one begins where input waits."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        remote.append(1, "partial")
        await remote.acknowledged()
        await house.prompt("b", delivery="queue")
        link.lose()
        await asyncio.sleep(29.9)
        assert (await house.turn()).turn is not None
        await asyncio.sleep(0.2)
        turn = (await house.turn(remote.attached.turn.turn_id)).turn
        assert turn is not None
        assert (turn.state, turn.error.code if turn.error else "") == ("failed", "agent_lost")
        messages = await house.messages()
        assert texts(messages) == ["partial"]
        assert [part.code for part in messages[1].parts if isinstance(part, ErrorPart)] == ["agent_lost"]
        assert (await house.turn()).turn is not None


@in_simulation
async def test_a_worker_that_is_lost_while_it_attaches_holds_nothing(street: Street) -> None:
    """Before its attach is carried out, or while it is stored: the turn does not wait for ever."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        await house.create()
        for steps in range(12):
            link = Link("w")
            turn_id = (await house.prompt(f"m{steps}")).turn_id
            attaching = asyncio.create_task(Remote.attach(house, link, str(turn_id)))
            for _ in range(steps):
                await asyncio.sleep(0)
            link.lose()
            await asyncio.gather(attaching, return_exceptions=True)
            await asyncio.sleep(31)
            assert (await house.turn()).turn is None


@in_simulation
async def test_an_attach_whose_answer_nobody_reads_is_refused_and_the_lease_runs(street: Street) -> None:
    """Its answer has whole messages: a worker that asks without reading must not make them heap up."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.say("Hello")
        await remote.acknowledged(durable=True)
        turn_id = remote.attached.turn.turn_id
        link.is_behind = True
        assert isinstance(await refusal(Remote.attach(house, link, turn_id)), Overloaded)
        assert isinstance(await refusal(Remote.attach(house, Flooded("w"), turn_id)), Overloaded)
        assert (await Remote.attach(house, Link("w"), turn_id)).attached.next_n == remote.n
        assert isinstance(await refusal(Remote.attach(house, Flooded("w"), turn_id)), Overloaded)
        await asyncio.sleep(31)
        assert (await house.turn(turn_id)).turn.state == "failed"  # type: ignore[union-attr]  # there is one


@in_simulation
async def test_answers_given_while_the_worker_is_away_are_there_when_it_is_back(street: Street) -> None:
    """Of an open message, and of one that a steering input has closed meanwhile."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.call_tool()
        remote.ask("one")
        await remote.acknowledged()
        await house.prompt("b")
        remote.write(AbsorbInputs())
        await remote.acknowledged()
        link.lose()
        await house.respond("one", APPROVED)
        again = await Remote.attach(
            house, Link("w"), remote.attached.turn.turn_id, generation=1, waiting=["one"]
        )
        assert [part.status for part in again.attached.interactions] == ["resolved"]
        again.run()
        await again.acknowledged(durable=True)
        assert not again.link.of(WriteRefused)


@in_simulation
async def test_results_that_were_lost_with_the_connection_are_told_again(street: Street) -> None:
    """And refusals."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        good = remote.write(AddInternal(parts=[TextPart(text="note")]))
        bad = remote.run("nothing")
        await remote.acknowledged()
        link.lose()
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert [(n, len(result.messages)) for n, result in again.attached.results] == [(good, 1)]
        assert [(n, error.code) for n, error in again.attached.refused] == [(bad, "illegal_transition")]


@in_simulation
async def test_a_summary_whose_answer_was_lost_is_told_again(street: Street) -> None:
    """Also after a restart of the server, and where it was a repeat."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        first = remote.write(Compact(through_sequence=1, summary="It began."))
        again = remote.write(Compact(through_sequence=1, summary="It began."))
        await remote.acknowledged(durable=True)
        made = [(frame.n, frame.result) for frame in link.of(Wrote)]
        assert [n for n, _ in made] == [first, again]
        link.lose()
        turn_id = remote.attached.turn.turn_id
        assert (await Remote.attach(house, Link("w"), turn_id, generation=1)).attached.results == made
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        assert (await Remote.attach(house, Link("w"), turn_id, generation=2)).attached.results == made


# A server that is lost


@in_simulation
async def test_after_a_crash_the_turn_stands_as_its_last_commit_left_it(street: Street) -> None:
    """What is sent again from there makes the text whole, and readers end equal."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        recorder = await house.subscribe()
        remote.open_text()
        remote.append(1, "stored ")
        remote.call_tool()  # a commit, in the middle of the text
        await remote.acknowledged(durable=True)
        sent = [remote.append(1, "lost "), remote.append(1, "too")]
        await remote.acknowledged()
        await asyncio.sleep(1)
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        new = Link("w")
        agents.register(new, 1)
        again = await Remote.attach(house, new, remote.attached.turn.turn_id, generation=1)
        assert (again.attached.next_n, again.attached.durable_n) == (sent[0], sent[0] - 1)
        assert texts(again.attached.messages) == ["stored "]
        again.handle("p1")
        again.append(1, "lost ")
        again.append(1, "too")
        again.write(EndStep(step_id="step"))
        await again.acknowledged(durable=True)
        recorder = await house.resume(recorder)
        assert texts(await house.equal(recorder)) == ["stored lost too"]


@in_simulation
async def test_who_goes_on_stores_what_the_one_before_had_streamed(street: Street) -> None:
    """It could not send that again, should the server be killed."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        first = Link("w", instance="1")
        remote = await begin(house, agents, first)
        remote.open_text()
        remote.append(1, "of the first")
        await remote.acknowledged()
        first.lose()
        second = await Remote.attach(
            house, Link("w", instance="2", resumes=True), remote.attached.turn.turn_id
        )
        assert (second.attached.next_n, second.attached.durable_n) == (remote.n, remote.n - 1)
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        third = Link("w", instance="2")
        again = await Remote.attach(house, third, remote.attached.turn.turn_id, generation=2)
        assert again.attached.next_n == remote.n
        assert texts(again.attached.messages) == ["of the first"]


@in_simulation
async def test_what_was_absorbed_is_told_also_after_a_crash(street: Street) -> None:
    """The input is in the conversation, so the agent must hear of it."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        await house.prompt("b")
        n = remote.write(AbsorbInputs())
        bad = remote.run("nothing")
        await remote.acknowledged(durable=True)
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert again.attached.next_n == bad + 1
        [(number, result)] = again.attached.results
        assert (number, [message.message_id for message in result.messages]) == (n, ["b"])
        assert [number for number, _ in again.attached.refused] == [bad]


@in_simulation
async def test_an_answer_of_nothing_stays_true_after_a_crash(street: Street) -> None:
    """An input that comes later waits for the next time."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        n = remote.write(AbsorbInputs())
        await remote.acknowledged(durable=True)
        await house.prompt("b")
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert (again.attached.next_n, again.attached.inputs) == (n + 1, 1)


@in_simulation
async def test_the_answer_to_an_attach_may_be_lost(street: Street) -> None:
    """The same process gets in again, whatever generation it knows of, and no other does."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        error = await refusal(Remote.attach(house, Link("other"), remote.attached.turn.turn_id))
        assert reason(error) == "turn_taken"
        again = await Remote.attach(house, link, remote.attached.turn.turn_id)
        assert (again.attached.generation, link.detached) == (2, ["fenced"])


@in_simulation
async def test_an_attachment_names_so_many_parts_and_no_more(street: Street) -> None:
    """What it remembers is bounded; a handle that is given again stands for the new part."""
    agents = remote_agents()
    settings = Settings(limits=Limits(parts=3))
    async with street.house(remote=agents, settings=settings) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        for handle in (1, 2, 3, 3, 1, 4):
            remote.handle(f"p{handle}", handle)
        [error] = link.of(ErrorFrame)
        assert (error.error.code, error.error.details["limit"]) == ("limit_exceeded", "parts")


@in_simulation
async def test_a_turn_with_a_pending_approval_survives_the_server(street: Street) -> None:
    """It can be answered before the worker is back, and the tool runs once."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        remote = await begin(house, agents, Link("w"))
        remote.call_tool()
        remote.ask()
        await remote.acknowledged(durable=True)
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        [pending] = await house.asked()
        assert pending.interaction.interaction_id == "ask"
        await house.respond("ask", APPROVED)
        new = Link("w")
        again = await Remote.attach(house, new, remote.attached.turn.turn_id, generation=1)
        [part] = again.attached.interactions
        assert isinstance(part, InteractionPart)
        assert part.status == "resolved"
        again.run()
        again.run()
        await again.acknowledged()
        assert len(new.of(WriteRefused)) == 1
        [tool] = [
            part for message in await house.messages() for part in message.parts if isinstance(part, ToolPart)
        ]
        assert tool.state == "running"


@in_simulation
async def test_a_stop_of_the_server_stores_what_was_streamed(street: Street) -> None:
    """Nothing has to be sent again after it."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.open_text()
        n = remote.append(1, "streamed")
        await remote.acknowledged()
    assert link.detached == ["reload"]
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        again = await Remote.attach(house, Link("w"), remote.attached.turn.turn_id, generation=1)
        assert (again.attached.next_n, again.attached.durable_n) == (n + 1, n)
        assert texts(again.attached.messages) == ["streamed"]


@in_simulation
async def test_after_a_crash_the_lease_runs_from_the_start(street: Street) -> None:
    """And a turn that nobody had taken is offered."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        remote = await begin(house, agents, Link("w"))
        remote.say("a")
        await remote.acknowledged(durable=True)
        await house.crash()
    async with street.house(remote=remote_agents()) as house:
        await asyncio.sleep(29)
        assert (await house.turn()).turn is not None
        await asyncio.sleep(2)
        turn = (await house.turn(remote.attached.turn.turn_id)).turn
        assert turn is not None
        assert turn.error is not UNSET
        assert turn.error.code == "agent_lost"
        await house.prompt("b")
        await house.crash()
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        agents.register(link, 1)
        [(turn_id, resumed)] = link.offers
        assert not resumed
        remote = await Remote.attach(house, link, turn_id)
        assert remote.attached.prompt.message_id == "b"
