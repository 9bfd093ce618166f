"""What an agent writes in steps: every kind of part, stored as one, undone as one."""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol.errors import IllegalTransition
from midstream.protocol.model import ProviderMetadata
from tests.server.sessions.agent_turn import answer, begin
from tests.server.sessions.house import Street, in_simulation, parts_of, refusal


@in_simulation
async def test_every_kind_of_part_is_written_with_all_that_was_given(street: Street) -> None:
    """In the order of their first appearance, and each with its step."""
    meta: ProviderMetadata = {"provider": {"id": "x"}}
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            await step.marker()
            async with step.reasoning(provider_metadata=meta) as reasoning:
                await reasoning.append("hm")
            async with step.text(provider_metadata=meta) as text:
                await text.append("said")
            await step.file("https://x.example/a.png", "image/png", filename="a.png", provider_metadata=meta)
            await step.data("chart", {"points": [1, 2.5, None]}, data_id="d1")
            await step.source_url("https://x.example", title="X", source_id="s1")
            await step.source_document("text/plain", "Notes", filename="n.txt", source_id="s2")
            call = await step.tool(
                "search",
                input={"q": "x"},
                tool_call_id="c1",
                title="Searching",
                dynamic=True,
                provider_executed=False,
                tool_metadata={"a": 1},
                call_provider_metadata=meta,
            )
            await call.complete([1], provider_metadata=meta)
        assert await answer(house, recorder) == [
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm", "state": "done", "provider_metadata": meta},
            {"type": "text", "text": "said", "state": "done", "provider_metadata": meta},
            {
                "type": "file",
                "url": "https://x.example/a.png",
                "media_type": "image/png",
                "filename": "a.png",
                "provider_metadata": meta,
            },
            {"type": "data", "data_type": "chart", "data": {"points": [1, 2.5, None]}, "data_id": "d1"},
            {
                "type": "source",
                "source_type": "url",
                "source_id": "s1",
                "url": "https://x.example",
                "title": "X",
            },
            {
                "type": "source",
                "source_type": "document",
                "source_id": "s2",
                "media_type": "text/plain",
                "title": "Notes",
                "filename": "n.txt",
            },
            {
                "type": "tool",
                "tool_call_id": "c1",
                "tool_name": "search",
                "state": "completed",
                "input": {"q": "x"},
                "output": [1],
                "title": "Searching",
                "dynamic": True,
                "provider_executed": False,
                "tool_metadata": {"a": 1},
                "call_provider_metadata": meta,
                "result_provider_metadata": meta,
            },
        ]
        steps = {part.step_id for part in (await house.messages())[1].parts}
        assert steps == {step.step_id}


@in_simulation
async def test_parts_that_run_side_by_side_keep_the_order_of_their_beginning(street: Street) -> None:
    """Reasoning begins, a tool begins and ends, reasoning ends; also after a reload."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.reasoning() as reasoning:
            await reasoning.append("think")
            call = await step.tool("t", input=1)
            await reasoning.append("ing")
            await call.complete(2)
            await reasoning.append(" on")
        expected = await answer(house, recorder)
        assert [(part["type"], part.get("text")) for part in expected] == [
            ("reasoning", "thinking on"),
            ("tool", None),
        ]
        await house.complete(turn)
        house.registry.leave("s", recorder)
        await asyncio.sleep(100)
        assert parts_of((await house.messages())[1]) == expected


@in_simulation
async def test_a_step_that_says_nothing_new_publishes_nothing(street: Street) -> None:
    """Its end takes no version."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            await step.marker()
        version = recorder.replica.version
        async with turn.step():
            pass
        assert recorder.replica.version == version


@in_simulation
async def test_what_a_failed_step_left_open_ends_with_the_next_or_with_the_turn(street: Street) -> None:
    """Nothing streams for ever."""
    async with street.house() as house:
        recorder, turn = await begin(house)

        async def fail() -> None:
            async with turn.step() as step, step.text() as text:
                await text.append("half")
                raise RuntimeError("the provider is gone")

        with pytest.raises(RuntimeError, match="provider"):
            await fail()
        ended = await house.complete(turn)
        assert ended.state == "completed"
        assert await answer(house, recorder) == [{"type": "text", "text": "half", "state": "done"}]


@in_simulation
async def test_an_abandoned_step_goes_back_to_what_was_before_it(street: Street) -> None:
    """For every reader and in the store, also where some of it was stored; the next try is another."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as text:
            await text.append("kept")
        for number in range(3):
            async with turn.step() as step:
                call = await step.tool("t")
                await call.append_input('{"half')
                async with step.text() as text:
                    await text.append(f"try {number}")
                    if number == 1:
                        await turn.error("provider", "It broke.")
                        stays = await step.abandon()
                        assert not stays
                        break
                    assert await step.abandon()
            assert [part.get("text") for part in await answer(house, recorder)] == ["kept"]
        tool, said = (await answer(house, recorder))[1:3]
        assert (tool["state"], tool["error"]) == ("failed", "step_abandoned")
        assert (said["text"], said["state"]) == ("try 1", "done")


@in_simulation
async def test_a_step_whose_tool_has_begun_cannot_be_undone(street: Street) -> None:
    """What is open in it is ended, and the agent is told."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            call = await step.tool("t", input=1)
            assert not await step.abandon()
        [tool] = await answer(house, recorder)
        assert (tool["state"], tool["error"]) == ("failed", "step_abandoned")
        assert isinstance(await refusal(call.complete(1)), IllegalTransition)


@in_simulation
async def test_abandoning_nothing_is_harmless(street: Street) -> None:
    """A provider that failed before it said anything."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            assert await step.abandon()
        assert len(await house.equal(recorder)) == 1
