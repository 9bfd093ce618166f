"""Tool calls: each move is stored before it is seen, and no other move is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.protocol.errors import InvalidRequest
from midstream.protocol.limits import Limits
from midstream.protocol.model import ToolPart
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import Street, in_simulation, parts_of, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from midstream.agents import ToolCall
    from midstream.protocol.values import Value
from tests.server.sessions.agent_turn import answer, begin


@in_simulation
async def test_a_tool_streams_its_input_and_moves_to_its_outcome(street: Street) -> None:
    """Each move is stored before it is seen; the phase follows."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        seen: list[tuple[object, ...]] = []

        async def note() -> None:
            """Keep the tool's state as it is stored, and the phase."""
            part = (await house.page(stored=True)).items[1].parts[0]
            assert isinstance(part, ToolPart)
            running = (await house.turn()).turn
            assert running is not None
            seen.append((part.state, part.output, part.preliminary, running.phase))

        async with turn.step() as step:
            call = await step.tool("t")
            assert recorder.replica.running_turn is not None
            assert recorder.replica.running_turn.phase == "streaming"
            for piece in ('{"x"', ": 1}"):
                await call.append_input(piece)
            await call.ready({"x": 1})
            assert call.input == {"x": 1}
            await note()
            await call.run()
            await note()
            for progress in (10, 50):
                await call.progress(progress)
                await note()
            await call.complete(100)
            await note()
        assert seen == [
            ("ready", UNSET, UNSET, "waiting-model"),
            ("running", UNSET, UNSET, "running-tool"),
            ("running", 10, True, "running-tool"),
            ("running", 50, True, "running-tool"),
            ("completed", 100, UNSET, "waiting-model"),
        ]
        [tool] = await answer(house, recorder)
        assert (tool["input_text"], tool["input"]) == ('{"x": 1}', {"x": 1})


@in_simulation
async def test_arguments_that_cannot_be_parsed_are_kept_as_they_came(street: Street) -> None:
    """The call can then only fail."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            call = await step.tool("t")
            await call.append_input("{x")
            await call.ready(raw_input="{x")
            await call.fail("no JSON")
        [tool] = await answer(house, recorder)
        assert (tool["state"], tool["raw_input"], tool["error"]) == ("failed", "{x", "no JSON")
        assert "input" not in tool


@in_simulation
async def test_a_move_that_the_table_does_not_have_is_refused_and_changes_nothing(street: Street) -> None:
    """With both states named."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            call = await step.tool("t", input=1)
            await call.complete(2)
            before = recorder.replica.version
            moves: list[Callable[[ToolCall], Awaitable[None]]] = [
                lambda call: call.run(),
                lambda call: call.fail("late"),
                lambda call: call.complete(3),
                lambda call: call.ready(1),
            ]
            for move in moves:
                error = await refusal(move(call))
                assert (error.code, error.details["from"]) == ("illegal_transition", "completed")
            error = await refusal(call.append_input("x"))
            assert error.code == "illegal_transition"
            assert recorder.replica.version == before


@in_simulation
async def test_a_large_output_is_stored_and_shown(street: Street) -> None:
    """Five megabytes; the session goes on."""
    output = "x" * 5_000_000
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            call = await step.tool("t", input=1)
            await call.complete(output)
            async with step.text() as text:
                await text.append("done")
        [message] = (await house.page()).items  # a page of its own
        assert parts_of(message)[0]["output"] == output
        assert recorder.replica.messages()[1] == message


@in_simulation
async def test_what_is_no_value_of_the_protocol_is_refused_by_its_field(street: Street) -> None:
    """Nothing of it is stored or seen, and the turn can go on."""
    async with street.house(settings=Settings(limits=Limits(parts=3))) as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            call = await step.tool("t", input=1)
            before = recorder.replica.version
            bad: list[tuple[Value, str]] = [
                (float("nan"), "output"),
                ({"k": "\ud800"}, "output.k"),
                (2**53, "output"),
            ]
            for value, field in bad:
                error = await refusal(call.complete(value))
                assert isinstance(error, InvalidRequest)
                assert error.field == field
            # a wrong type on purpose
            assert (await refusal(step.file(5, "m"))).details == {"field": "url"}  # type: ignore[arg-type]
            assert (await refusal(step.data("", 1))).details == {"field": "data_type"}
            assert recorder.replica.version == before
            await call.complete(1)
            for _ in range(2):
                await step.marker()
            error = await refusal(step.marker())
            assert error.details == {"limit": "parts", "maximum": 3, "actual": 4}
        assert len(await answer(house, recorder)) == 3
