"""A tool runs at most once: whoever claims its call runs it, and nobody else (SPEC 8.9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from midstream.agents import ToolCall, Turn, TurnEnded, TurnFailed
from midstream.protocol.errors import IllegalTransition, Unavailable
from midstream.protocol.model import ApprovalResponse, InteractionPart, Message, ToolPart
from midstream.protocol.values import Value
from tests.server.sessions.house import House, Street, in_simulation

APPROVED = ApprovalResponse(decision="approved")


class Lamp:
    """A tool with an effect: how often it was executed, and with what."""

    def __init__(self, result: Value = "on") -> None:
        self.inputs: list[Value] = []
        self._result = result

    async def __call__(self, given: Value) -> Value:
        """Have the effect; other tasks run in the middle of it."""
        self.inputs.append(given)
        await asyncio.sleep(0.01)
        return self._result


async def call_of(turn: Turn) -> ToolCall:
    """Return a tool call that is ready."""
    async with turn.step() as step:
        return await step.tool("lamp", input="on")


def tool_of(messages: list[Message]) -> ToolPart:
    """Return the last tool part."""
    tools = [part for message in messages for part in message.parts if isinstance(part, ToolPart)]
    return tools[-1]


async def approved(house: House, turn: Turn, call: ToolCall) -> None:
    """Ask about a call, and answer."""
    asking = asyncio.create_task(turn.ask_approval(call, title="May I?"))
    while not (asked := await house.asked()):
        pass
    await house.respond(asked[0].interaction.interaction_id, APPROVED)
    assert (await asking).approved


@in_simulation
async def test_a_second_claim_is_refused_says_so_and_changes_nothing(street: Street) -> None:
    """While the tool runs, while it shows something, and when it has ended."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        call = await call_of(turn)
        await call.run()
        with pytest.raises(IllegalTransition, match=r"claimed already.*at most once"):
            await call.run()
        await call.progress("half")
        before = await house.messages()
        with pytest.raises(IllegalTransition, match="claimed already"):
            await call.run()
        assert await house.messages() == before
        await call.complete("on")
        with pytest.raises(IllegalTransition, match="'completed' to 'running'"):
            await call.run()
        assert (await house.complete(turn)).state == "completed"


@in_simulation
async def test_of_claims_at_once_one_executes(street: Street) -> None:
    """However many tasks saw the same approval."""
    async with street.house() as house:
        await house.create()
        turn, lamp = await house.begin(), Lamp()
        call = await call_of(turn)
        await approved(house, turn, call)
        results = await asyncio.gather(*(call.execute(lamp) for _ in range(5)), return_exceptions=True)
        assert sum(isinstance(result, IllegalTransition) for result in results) == 4
        assert lamp.inputs == ["on"]
        assert tool_of(await house.messages()).output == "on"


@in_simulation
async def test_a_call_that_asks_while_it_runs_is_claimed_anew_after_the_answer(street: Street) -> None:
    """The answer puts it back to ready, and again one claim is taken."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        call = await call_of(turn)
        await call.run()
        await approved(house, turn, call)
        await call.run()
        with pytest.raises(IllegalTransition, match="claimed already"):
            await call.run()


@in_simulation
async def test_executing_completes_the_call_with_what_the_function_returns(street: Street) -> None:
    """A function that is async, and one that is not; the call was claimed when it was called."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        states: list[str] = []

        async def look(given: Value) -> Value:
            states.append(tool_of(await house.messages()).state)
            return {"was": given}

        functions: list[Callable[[Value], Awaitable[Value] | Value]] = [look, lambda given: {"was": given}]
        for function in functions:
            outcome = await (await call_of(turn)).execute(function)
            assert (outcome.completed, outcome.output, outcome.error) == (True, {"was": "on"}, None)
            part = tool_of(await house.messages())
            assert (part.state, part.output) == ("completed", {"was": "on"})
        assert states == ["running"]


@in_simulation
async def test_what_a_function_raises_fails_its_call_and_the_turn_goes_on(street: Street) -> None:
    """So does an output that the protocol does not carry; the model and people see why."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()

        def burn(given: Value) -> Value:
            raise ValueError(f"no bulb for {given}\ud83d")

        def silent(given: Value) -> Value:
            raise KeyError

        def too_large(given: Value) -> Value:
            return 2**60

        expected = {
            burn: "ValueError: no bulb for on?",
            silent: "KeyError",
            too_large: "InvalidRequest: output: ",
        }
        for function, text in expected.items():
            outcome = await (await call_of(turn)).execute(function)
            assert not outcome.completed
            part = tool_of(await house.messages())
            assert (part.state, part.error) == ("failed", outcome.error)
            assert str(part.error).startswith(text)
        async with turn.step() as step:
            unparsed = await step.tool("lamp")
            await unparsed.ready(raw_input='{"on')
        lamp = Lamp()
        assert not (await unparsed.execute(lamp)).completed
        assert (lamp.inputs, tool_of(await house.messages()).state) == ([], "failed")
        assert (await house.complete(turn)).state == "completed"


@in_simulation
async def test_a_function_that_fails_the_turn_fails_it(street: Street) -> None:
    """The error is the agent's to raise on, and its call is closed with the turn."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()

        def give_up(given: Value) -> Value:
            raise TurnFailed("no_power", "There is no power.")

        with pytest.raises(TurnFailed) as failed:
            await (await call_of(turn)).execute(give_up)
        ended = await house.complete(turn, failed.value)
        assert ended.error
        assert ended.error.code == "no_power"
        assert tool_of(await house.messages()).error == "turn_failed"


@in_simulation
async def test_a_stop_cuts_an_execution_off(street: Street) -> None:
    """The function is cancelled with the agent; where it goes on, nothing of it enters."""
    async with street.house() as house:
        await house.create()
        turn, lamp = await house.begin(), Lamp()
        call = await call_of(turn)
        executing = asyncio.create_task(call.execute(lamp))
        while not lamp.inputs:
            await house.settled()
        await house.stop()
        with pytest.raises(TurnEnded):
            await executing
        part = tool_of(await house.messages())
        assert (part.state, part.error) == ("failed", "turn_stopped")


@in_simulation
async def test_a_server_that_dies_between_the_answer_and_the_execution_never_executes(street: Street) -> None:
    """The answer stays; the call is closed, and asked about no more; a claim by the old agent is lost."""
    lamp = Lamp()
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        call = await call_of(turn)
        await approved(house, turn, call)
        await house.crash()
    async with street.house() as house:
        messages = await house.messages()
        part = tool_of(messages)
        assert (part.state, part.error) == ("failed", "runtime_interrupted")
        [asked] = [one for message in messages for one in message.parts if isinstance(one, InteractionPart)]
        assert (asked.status, asked.response) == ("resolved", APPROVED)
        assert await house.asked() == []
        with pytest.raises(Unavailable):
            await call.execute(lamp)
        following = await house.begin("again")
        context = (await following.context()).messages
        assert tool_of(context).state == "failed"
        assert lamp.inputs == []


@in_simulation
async def test_a_server_that_dies_in_the_middle_of_an_execution_does_not_execute_again(
    street: Street,
) -> None:
    """It may have had its effect; the call says that it was interrupted."""
    lamp = Lamp()
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        executing = asyncio.create_task((await call_of(turn)).execute(lamp))
        while not lamp.inputs:
            await house.settled()
        await house.crash()
        assert executing.done()
    async with street.house() as house:
        part = tool_of(await house.messages())
        assert (part.state, part.error) == ("failed", "runtime_interrupted")
        await house.settled()
        assert lamp.inputs == ["on"]
