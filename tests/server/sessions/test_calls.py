"""The calls about input and turns: what each does, what a repeat of it does, and how it is refused."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import UNSET

from midstream.agents import TurnEnded
from midstream.protocol import calls
from midstream.protocol.limits import Limits
from midstream.protocol.model import (
    TextPart,
)
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import House, Street, in_simulation, parts_of, refusal


async def cancel(house: House, message_id: str) -> calls.PromptResult:
    """Take an input back."""
    params = calls.CancelInputParams(session_id="s", message_id=message_id)
    return await house.call(calls.PromptResult, "cancel_input", params)


# Prompt


@in_simulation
async def test_a_prompt_says_where_the_input_is_now_however_often_it_is_sent(street: Street) -> None:
    """Twice at once, while it waits, after its turn, a clear and a restart: one message, one turn."""
    async with street.house() as house:
        await house.create()
        twice = await asyncio.gather(house.prompt("a"), house.prompt("a"))
        assert twice[0] == twice[1]
        turn = await house.puppet.next()
        assert (twice[0].state, twice[0].turn_id, twice[0].position) == ("started", turn.turn_id, UNSET)
        places = [(await house.prompt(name)).position for name in ("b", "c", "b", "c")]
        assert places == [1, 2, 1, 2]
        await house.complete(turn)
        for name in ("b", "c"):
            assert (await house.prompt(name)).state == "started"
            await house.complete(await house.puppet.next())
        await house.clear()
        assert await house.prompt("a") == twice[0]
        assert await house.messages() == []
    async with street.house() as house:
        assert await house.prompt("a", delivery="interrupt") == twice[0]
        assert await house.messages() == []


@in_simulation
async def test_an_id_with_other_content_is_a_conflict_and_changes_nothing(street: Street) -> None:
    """The input's own id, and that of any message, an agent's too."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        async with turn.step() as step, step.text() as text:
            await text.append("x")
        before = await house.messages()
        for message_id in ("a", before[1].message_id):
            error = await refusal(house.prompt(message_id, TextPart(text="other")))
            assert (error.code, error.details) == (
                "idempotency_conflict",
                {"field": "message_id", "id": message_id},
            )
        assert await house.messages() == before


@in_simulation
async def test_a_refused_input_is_not_remembered(street: Street) -> None:
    """The same id may be used again, with the same or other content."""
    async with street.house(settings=Settings(limits=Limits(queue=1))) as house:
        await house.create()
        turn = await house.begin("a")
        assert (await refusal(house.prompt("b", delivery="reject"))).details == {"reason": "turn_running"}
        await house.prompt("waits")
        assert (await refusal(house.prompt("b"))).details == {"reason": "queue_full"}
        await house.complete(turn)
        assert (await house.prompt("b", TextPart(text="other"))).state == "queued"


@in_simulation
async def test_an_interrupt_stops_the_agent_and_runs_its_own_turn(street: Street) -> None:
    """In one change; what was said stays, and what waited goes on waiting."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin("a")
        async with turn.step() as step, step.text() as text:
            await text.append("half")
        await house.prompt("waits")
        frames = len(recorder.frames)
        result = await house.prompt("now", delivery="interrupt")
        assert len(recorder.frames) == frames + 1
        assert house.puppet.was_cut_off(turn)
        following = await house.puppet.next()
        assert (following.turn_id, following.prompt_text) == (result.turn_id, "text of now")
        assert (await house.ended(turn)).state == "stopped"
        assert (await house.session()).session.queue == ["waits"]
        await house.equal(recorder)


@in_simulation
async def test_input_accepted_around_a_turns_end_is_never_lost(street: Street) -> None:
    """Many times over: each starts a turn of its own, exactly once, in order."""
    async with street.house() as house:
        await house.create()
        names = [f"m{number}" for number in range(30)]

        async def play() -> None:
            for _ in names:
                turn = await house.puppet.next()
                house.puppet.finish(turn)

        async def write(names: list[str]) -> None:
            for name in names:
                await house.prompt(name)

        await asyncio.gather(play(), write(names[::2]), write(names[1::2]))
        while (await house.turn()).turn is not None:
            await house.settled()
        messages = await house.messages()
        assert sorted(message.message_id for message in messages) == sorted(names)
        assert len({message.turn_id for message in messages}) == len(names)


# Stop


@in_simulation
async def test_a_stop_ends_the_turn_and_the_callers_waiting_input(street: Street) -> None:
    """Its own by default, all or none where asked; whoever remains starts at once."""
    for cancel_queue, cancelled, following in (
        ("own", ["mine"], "theirs"),
        ("all", ["mine", "theirs"], None),
        ("none", [], "mine"),
    ):
        async with street.house() as house:
            name = f"s-{cancel_queue}"
            await house.create(name)
            turn = await house.begin("a", name)
            for who, message_id in (("ann", "mine"), ("bob", "theirs")):
                await house.prompt(message_id, session_id=name, subject=who)
            params = calls.StopParams(session_id=name, cancel_queue=cancel_queue)  # type: ignore[arg-type]  # each is one
            result = await house.call(calls.StopResult, "stop", params)
            assert (result.stopped, result.reason, result.turn_id) == (True, "stopped", turn.turn_id)
            assert result.cancelled == cancelled
            assert house.puppet.was_cut_off(turn)
            session = (await house.session(name)).session
            if following is None:
                assert (session.running_turn_id, session.queue) == (UNSET, [])
            else:
                assert (await house.puppet.next()).prompt_text == f"text of {following}"
            for message_id in cancelled:
                again = await house.prompt(message_id, session_id=name)
                assert (again.state, again.turn_id) == ("cancelled", UNSET)


@in_simulation
async def test_a_stop_that_names_another_turn_does_nothing(street: Street) -> None:
    """An ended one, an unknown one, and none that runs; no queue is touched."""
    async with street.house() as house:
        await house.create()
        idle = calls.StopResult(stopped=False, cancelled=[], reason="idle")
        assert await house.stop() == idle
        first = await house.begin("a")
        await house.prompt("b")
        await house.complete(first)
        second = await house.puppet.next()
        await house.prompt("waits")
        version = (await house.session()).version
        for name in (first.turn_id, "turn_never"):
            assert await house.stop(name, "all") == idle
        assert (await house.session()).version == version
        assert (await house.stop(second.turn_id)).stopped


@in_simulation
async def test_nothing_an_agent_writes_after_its_stop_enters(street: Street) -> None:
    """Also where it was writing when the stop was committed."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin("a")

        async def write() -> None:
            async with turn.step() as step, step.text() as text:
                while True:
                    await text.append("x")
                    await asyncio.sleep(0.001)

        writing = asyncio.create_task(write())
        await recorder.until(lambda: recorder.deltas)
        stopped = await house.stop()
        version = (await house.session()).version
        with pytest.raises(TurnEnded):
            await writing
        assert stopped.turn_id == turn.turn_id
        assert (await house.session()).version == version
        [text] = parts_of((await house.equal(recorder))[1])
        assert text["state"] == "done"


@in_simulation
async def test_a_stop_that_meets_an_open_commit_waits_for_it_and_lets_nothing_follow(street: Street) -> None:
    """At whatever moment: the move is stored or it is not, and the stop is the last that is seen."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        for moment in range(12):
            turn = await house.begin(f"m{moment}")
            async with turn.step() as step:
                call = await step.tool("t", input=1)
            move = asyncio.create_task(call.complete("moved"))
            for _ in range(moment):
                await asyncio.sleep(0)
            assert (await house.stop(turn.turn_id)).stopped
            version = (await house.session()).version
            outcome = (await asyncio.gather(move, return_exceptions=True))[0]
            tool = parts_of((await house.equal(recorder))[-1])[0]
            if outcome is None:
                assert (tool["state"], tool["output"]) == ("completed", "moved")
            else:
                assert isinstance(outcome, TurnEnded)
                assert (tool["state"], tool["error"]) == ("failed", "turn_stopped")
            assert (await house.session()).version == version
            assert recorder.replica.turns[turn.turn_id].state == "stopped"


# Cancelling an input


@in_simulation
async def test_a_queued_input_can_be_taken_back_and_only_that(street: Street) -> None:
    """One that has started stays what it is; an unknown one is not found."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin("a")
        await house.prompt("b")
        assert (await cancel(house, "b")).state == "cancelled"
        assert (await cancel(house, "b")).state == "cancelled"
        assert (await cancel(house, "a")).state == "started"
        error = await refusal(cancel(house, "never"))
        assert (error.code, error.details) == ("not_found", {"kind": "input", "id": "never"})
        assert recorder.replica.session is not None
        assert recorder.replica.session.queue == []
        await house.complete(turn)
        assert (await house.session()).session.message_count == 1
