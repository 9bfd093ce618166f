"""``respond``: of all answers, and of an answer and an expiry, one wins, and everybody learns which."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from midstream.protocol import calls
from midstream.protocol.errors import LimitExceeded, MidstreamError
from midstream.protocol.limits import Limits
from midstream.protocol.model import (
    ApprovalResponse,
    QuestionResponse,
    ToolPart,
)
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import Street, in_simulation, refusal

APPROVED = ApprovalResponse(decision="approved")
DENIED = ApprovalResponse(decision="denied")


@in_simulation
async def test_of_two_answers_at_once_one_wins_and_the_other_learns_it(street: Street) -> None:
    """The winner's repeat gets the same result, also after the turn, the clear of which ends it."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        async with turn.step() as step:
            call = await step.tool("t", input=1)
        asking = asyncio.create_task(turn.ask_approval(call, title="?"))
        await asyncio.sleep(0.1)
        [asked] = await house.asked()
        name = asked.interaction.interaction_id
        assert (asked.message_sequence, asked.turn_id) == (2, turn.turn_id)
        answers = {"ann": DENIED, "bob": APPROVED}
        outcomes = await asyncio.gather(
            *(house.respond(name, answer, subject=who) for who, answer in answers.items()),
            return_exceptions=True,
        )
        [winner] = [who for who, one in zip(answers, outcomes, strict=True) if not isinstance(one, Exception)]
        [won] = [one for one in outcomes if isinstance(one, calls.RespondResult)]
        [lost] = [one for one in outcomes if isinstance(one, MidstreamError)]
        assert (lost.code, lost.details["resolved_by"]) == ("interaction_closed", winner)
        approval = await asking
        assert (approval.approved, approval.status, approval.resolved_by) == (
            winner == "bob",
            "resolved",
            winner,
        )
        answer = answers.pop(winner)
        [other] = answers.values()
        assert await house.asked() == []
        tool = (await house.messages())[1].parts[0]
        assert isinstance(tool, ToolPart)
        assert tool.state == "ready"
        assert (await house.respond(name, answer, subject=winner)).interaction == won.interaction
        await house.complete(turn)
        assert (await house.respond(name, answer, subject=winner)).interaction == won.interaction
        assert (await refusal(house.respond(name, other))).code == "interaction_closed"
        await house.clear()
        error = await refusal(house.respond(name, answer, subject=winner))
        assert (error.code, error.details) == ("not_found", {"kind": "interaction", "id": name})


@in_simulation
async def test_an_answer_and_the_expiry_at_once_have_one_outcome(street: Street) -> None:
    """Whoever is first in the session's order; the other learns it."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        outcomes: set[str] = set()
        for delay in (0.9, 0.999, 1.0, 1.001, 1.1):
            asking = asyncio.create_task(turn.ask_approval(title="?", expires_in=1))
            while not await house.asked():
                pass
            [asked] = await house.asked()
            await asyncio.sleep(delay)
            answer = house.post(
                "respond",
                calls.RespondParams(
                    session_id="s", interaction_id=asked.interaction.interaction_id, response=APPROVED
                ),
            )
            approval = await asking
            given = await answer
            if approval.status == "resolved":
                assert approval.approved
                assert isinstance(given, calls.RespondResult)
            else:
                assert (approval.status, approval.approved) == ("expired", False)
                assert isinstance(given, MidstreamError)
                assert (given.code, given.details["status"]) == ("interaction_closed", "expired")
            outcomes.add(approval.status)
        assert outcomes == {"resolved", "expired"}


@in_simulation
async def test_expiry_does_not_wait_for_a_quiet_moment(street: Street) -> None:
    """In a session whose mailbox is not empty, an answer that comes after the time is late all the same."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        asking = asyncio.create_task(turn.ask_approval(title="?", expires_in=1))
        await asyncio.sleep(0.1)
        [asked] = await house.asked()
        name = asked.interaction.interaction_id
        busy = [house.post("sessions.get", calls.SessionParams(session_id="s")) for _ in range(5)]
        late = asyncio.create_task(house.respond(name, APPROVED))
        street.clock.skew_wall(2_000)
        await asyncio.gather(*busy)
        assert (await refusal(late)).details["status"] == "expired"
        assert (await asking).status == "expired"


@in_simulation
async def test_nothing_waits_longer_because_the_wall_is_set_back(street: Street) -> None:
    """What was said to expire in five seconds does; what the wall has passed expires too."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        for skew_ms, seconds in ((-600_000, 5.0), (0, 5.0), (3_000, 2.0), (600_000, 0.0)):
            start = street.loop.time()
            asking = asyncio.create_task(turn.ask_approval(title="?", expires_in=5))
            while not await house.asked():
                pass
            street.clock.skew_wall(skew_ms)
            await house.settled()
            assert (await asking).status == "expired"
            assert street.loop.time() - start == pytest.approx(seconds, abs=0.01)
            street.clock.skew_wall(-skew_ms)


@in_simulation
async def test_an_answer_that_does_not_fit_is_refused_and_leaves_it_pending(street: Street) -> None:
    """And one to nothing is not found."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        asking = asyncio.create_task(turn.ask_approval(title="?"))
        await asyncio.sleep(0.1)
        [asked] = await house.asked()
        name = asked.interaction.interaction_id
        error = await refusal(house.respond(name, QuestionResponse(answers=[])))
        assert (error.code, error.details) == ("invalid", {"field": "response.kind"})
        assert (await house.asked())[0].interaction == asked.interaction
        error = await refusal(house.respond("never", APPROVED))
        assert (error.code, error.details) == ("not_found", {"kind": "interaction", "id": "never"})
        await house.respond(name, APPROVED)
        assert (await asking).approved


@in_simulation
async def test_no_limit_keeps_an_interaction_from_expiring(street: Street) -> None:
    """The message was full when it was asked, and its end makes it longer; an end must not fail."""
    limit = 2_000
    async with street.house(settings=Settings(limits=Limits(message_bytes=limit))) as house:
        await house.create()
        statuses: list[str] = []
        for length in range(limit, 0, -4):
            turn = await house.begin(f"m{length}")
            async with turn.step() as step:
                with suppress(LimitExceeded):
                    await step.data("filler", "x" * length)
                    statuses.append((await turn.ask_approval(title="?", expires_in=1)).status)
            assert (await house.complete(turn)).state == "completed"
            if statuses:
                break
        assert statuses == ["expired"]


@in_simulation
async def test_no_limit_keeps_an_answer_out(street: Street) -> None:
    """A question that was asked can be answered, however full its message is by then."""
    limit = 2_000
    answer = ApprovalResponse(decision="approved", reason="because " * 40)
    async with street.house(settings=Settings(limits=Limits(message_bytes=limit))) as house:
        await house.create()
        turn = await house.begin("a")
        async with turn.step() as step:
            await step.data("filler", "x" * (limit - 500))
            asking = asyncio.create_task(turn.ask_approval(title="?"))
            await asyncio.sleep(0.1)
            [asked] = await house.asked()
            result = await house.respond(asked.interaction.interaction_id, answer)
            assert result.interaction.response == answer
            assert (await asking).approved
