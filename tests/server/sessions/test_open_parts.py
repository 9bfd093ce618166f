"""What an agent holds of a part reaches that part, or nothing: never another one in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.errors import IllegalTransition
from midstream.protocol.model import ToolPart
from tests.server.sessions.house import Street, in_simulation, parts_of, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from midstream.agents import ToolCall


@in_simulation
async def test_a_text_of_an_abandoned_step_never_writes_into_the_text_of_the_next_try(street: Street) -> None:
    """A provider's stream that broke may still say something; the part that took its place is another."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        first, second = turn.step(), turn.step()
        async with first:
            late = await first.text().__aenter__()
            await late.append("first")
            assert await first.abandon()
            async with second, second.text() as text:
                await text.append("second")
                assert isinstance(await refusal(late.append(" late")), IllegalTransition)
                await late.done()
                await text.append(", whole")
        await house.complete(turn)
        assert parts_of((await house.messages())[1]) == [
            {"type": "text", "text": "second, whole", "state": "done"}
        ]


MOVES: list[Callable[[ToolCall], Awaitable[object]]] = [
    lambda call: call.append_input("{"),
    lambda call: call.ready({"of": "the first"}),
    lambda call: call.fail("of the first"),
]


@in_simulation
async def test_a_call_of_an_abandoned_step_never_moves_the_call_of_the_next_try(street: Street) -> None:
    """Neither its arguments nor its outcome get into another call, and it cannot be asked about."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        async with turn.step() as step:
            late = await step.tool("search")
            assert await step.abandon()
            call = await step.tool("search")
            for move in MOVES:
                assert isinstance(await refusal(move(late)), IllegalTransition)
            assert isinstance(await refusal(turn.ask_approval(late, title="?")), IllegalTransition)
            await call.ready({"of": "the second"})
        (part,) = (await house.messages())[1].parts
        assert isinstance(part, ToolPart)
        assert (part.tool_call_id, part.state) == (call.tool_call_id, "ready")
        assert (part.input, part.input_text) == ({"of": "the second"}, "")
        await house.complete(turn)


@in_simulation
async def test_the_end_of_a_text_that_ended_or_is_gone_is_harmless(street: Street) -> None:
    """Input taken inside its block ended it, or abandon dropped it; to leave the block is no fault."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        await house.prompt("more")
        async with turn.step() as step:
            async with step.text() as text:
                await text.append("ended by what was taken")
                await turn.take_inputs()
            async with step.text():
                assert await step.abandon()
        assert (await house.complete(turn)).state == "completed"
        assert [parts_of(message) for message in await house.messages()][1] == [
            {"type": "text", "text": "ended by what was taken", "state": "done"}
        ]
