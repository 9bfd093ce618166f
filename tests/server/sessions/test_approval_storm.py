"""Approvals in a storm: answers, modes, stops and expiries at once, while every version is looked at."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from midstream.protocol import calls
from midstream.protocol.errors import InteractionClosed, NotFound
from midstream.protocol.model import (
    ActionPart,
    ApprovalMode,
    ApprovalResponse,
    InteractionPart,
    ToolPart,
)
from midstream.protocol.values import Value
from midstream.server import ToolCall, Turn
from tests.server.sessions.house import House, Street, in_simulation
from tests.server.sessions.recorder import Recorder

if TYPE_CHECKING:
    from random import Random

    from midstream.server.sessions.broadcast import Broadcast

P = TypeVar("P", InteractionPart, ToolPart, ActionPart)
TURNS = 30
DEVICES = ("ann", "bob", "carl")
MODES: tuple[ApprovalMode, ...] = ("ask", "ask", "always-allow")


class Watch(Recorder):
    """A reader that holds every version to what must be true of questions, tools and the mode in it.

    Attributes:
        outcomes: what became of each interaction; it never changes.
    """

    def __init__(self) -> None:
        super().__init__(limit=200)
        self.outcomes: dict[str, InteractionPart] = {}

    def publish(self, broadcast: Broadcast) -> None:
        """Take a frame, and look at what a person would see now."""
        super().publish(broadcast)
        asked = self.parts(InteractionPart)
        pending = [part for part in asked if part.status == "pending"]
        session, turn = self.replica.session, self.replica.running_turn
        assert session is not None
        assert session.pending_interactions == len(pending)
        assert turn is None or (turn.phase == "waiting-user") == bool(pending)
        waits = {part.tool_call_id for part in self.parts(ToolPart) if part.state == "waiting-user"}
        assert waits == {part.tool_call_id for part in pending}
        given = session.approval_mode == "always-allow"
        assert not (given and pending), "an approval waits, though the mode gives it"
        for part in asked:
            if part.status != "pending":
                assert self.outcomes.setdefault(part.interaction_id, part) == part, "another outcome"

    def parts(self, kind: type[P]) -> list[P]:
        """Return all parts of one kind."""
        messages = self.replica.messages()
        return [part for message in messages for part in message.parts if isinstance(part, kind)]


class Worker:
    """An agent that asks about several calls at once and executes those that it may.

    Attributes:
        executed: how often each call was.
        approved: the calls that it was told are approved.
    """

    def __init__(self, chance: Random) -> None:
        self.executed: Counter[str] = Counter()
        self.approved: set[str] = set()
        self._chance = chance

    async def __call__(self, turn: Turn) -> None:
        """Run one turn."""
        for _ in range(self._chance.randint(1, 3)):
            async with turn.step() as step:
                asked = [await step.tool("t", input=1) for _ in range(self._chance.randint(1, 5))]
            await asyncio.gather(*(self._one(turn, call) for call in asked))

    async def _one(self, turn: Turn, call: ToolCall) -> None:
        wait = self._chance.choice((None, 0.02, 5.0))
        approval = await turn.ask_approval(call, title="?", expires_in=wait)
        if not approval.approved:
            await call.fail(f"not approved: {approval.status}")
            return
        self.approved.add(call.tool_call_id)

        async def execute(given: Value) -> Value:
            self.executed[call.tool_call_id] += 1
            await asyncio.sleep(self._chance.choice((0, 0, 0.005)))
            return given

        assert (await call.execute(execute)).completed


class Device:
    """Somebody who answers what waits, changes the mode and stops, at random."""

    def __init__(self, house: House, watch: Watch, subject: str, chance: Random) -> None:
        self.won: dict[str, ApprovalResponse] = {}
        self._house = house
        self._watch = watch
        self._subject = subject
        self._chance = chance

    async def play(self, ended: asyncio.Event) -> None:
        """Do things until it is over."""
        while not ended.is_set():
            await self._chance.choice([self._answer] * 20 + [self._set_mode, self._stop])()
            await asyncio.sleep(self._chance.choice((0, 0.001, 0.01, 0.03)))

    async def _answer(self) -> None:
        asked = self._watch.parts(InteractionPart)
        if not asked:
            return
        pending = [part for part in asked if part.status == "pending"]
        part = self._chance.choice(pending or asked)
        response = ApprovalResponse(
            decision="approved" if self._chance.random() < 0.6 else "denied", reason=self._subject
        )
        params = calls.RespondParams(session_id="s", interaction_id=part.interaction_id, response=response)
        answer = await self._house.post("respond", params, subject=self._subject)
        if isinstance(answer, calls.RespondResult):
            self.won[part.interaction_id] = response
        else:
            assert isinstance(answer, InteractionClosed), answer
            outcome = self._watch.outcomes[part.interaction_id]
            assert answer.details["status"] == outcome.status
            assert answer.details["resolved_by"] == (outcome.resolved_by or None)

    async def _set_mode(self) -> None:
        params = calls.ApprovalModeParams(session_id="s", approval_mode=self._chance.choice(MODES))
        answer = await self._house.post("sessions.approval_mode", params, subject=self._subject)
        assert isinstance(answer, calls.SessionResult)

    async def _stop(self) -> None:
        if self._chance.random() < 0.2:
            await self._house.post("stop", calls.StopParams(session_id="s"), subject=self._subject)


@in_simulation
async def test_a_storm_of_answers_leaves_one_outcome_of_each_and_executes_what_was_approved_once(
    street: Street,
) -> None:
    """Every version agrees in what waits; an answer that was taken is the outcome; nothing runs unasked."""
    chance = street.loop.random
    worker = Worker(chance)
    async with street.house(worker) as house:
        await house.create()
        watch = Watch()
        await house.subscribe(watch)
        ended = asyncio.Event()
        devices = [Device(house, watch, subject, chance) for subject in DEVICES]
        playing = [asyncio.create_task(device.play(ended)) for device in devices]
        for number in range(TURNS):
            turn_id = (await house.prompt(f"m{number}")).turn_id
            await watch.until(partial(_is_over, watch, str(turn_id)))
        ended.set()
        await asyncio.gather(*playing)
        for device in devices:
            for name, response in device.won.items():
                assert watch.outcomes[name].response == response
        taken = [name for device in devices for name in device.won]
        assert len(taken) == len(set(taken))
        by_mode = {name for name, part in watch.outcomes.items() if part.approval_mode}
        assert not by_mode & set(taken)
        statuses = Counter(part.status for part in watch.outcomes.values())
        assert statuses.keys() >= {"resolved", "expired"}
        assert by_mode
        assert set(worker.executed.values()) == {1}
        assert worker.executed.keys() <= worker.approved
        allowed = {
            part.tool_call_id
            for part in watch.outcomes.values()
            if isinstance(part.response, ApprovalResponse) and part.response.decision == "approved"
        }
        assert worker.approved <= allowed
        completed = {part.tool_call_id for part in watch.parts(ToolPart) if part.state == "completed"}
        assert completed <= worker.executed.keys()
        await house.equal(watch)


def _is_over(watch: Watch, turn_id: str) -> bool:
    turn = watch.replica.turns.get(turn_id)
    return turn is not None and turn.state != "running"


@in_simulation
async def test_an_answer_and_a_stop_at_once_execute_the_tool_once_or_never(street: Street) -> None:
    """At any moment: what was answered stays answered, and what the stop closed executes nothing."""
    async with street.house() as house:
        await house.create()
        watch = Watch()
        await house.subscribe(watch)
        seen: set[tuple[str, int]] = set()
        for moment in range(24):
            executions: list[int] = []
            turn = await house.begin(f"m{moment}")
            async with turn.step() as step:
                call = await step.tool("t", input=moment)
            asking = asyncio.create_task(_ask_and_execute(turn, call, executions))
            while not (asked := await house.asked()):
                pass
            name = asked[0].interaction.interaction_id
            params = calls.RespondParams(
                session_id="s", interaction_id=name, response=ApprovalResponse(decision="approved")
            )
            answer = house.post("respond", params) if moment else None
            for _ in range(moment - 1):
                await asyncio.sleep(0)
            stopped = await house.stop(turn.turn_id)
            answer = answer or house.post("respond", params)
            given = await answer
            await asyncio.gather(asking, return_exceptions=True)
            outcome = watch.outcomes[name]
            assert stopped.stopped
            assert isinstance(given, calls.RespondResult) == (outcome.status == "resolved")
            assert isinstance(given, (calls.RespondResult, InteractionClosed, NotFound))
            tool = watch.parts(ToolPart)[-1]
            assert len(executions) <= 1
            assert (tool.state == "completed") <= (executions == [moment])
            assert (outcome.status == "resolved") or executions == []
            seen.add((outcome.status, len(executions)))
        assert seen == {("cancelled", 0), ("resolved", 0), ("resolved", 1)}
        await house.equal(watch)


async def _ask_and_execute(turn: Turn, call: ToolCall, executions: list[int]) -> None:
    approval = await turn.ask_approval(call, title="?")
    assert approval.approved

    async def execute(given: Value) -> Value:
        assert isinstance(given, int)
        executions.append(given)
        await asyncio.sleep(0)
        return given

    await call.execute(execute)
