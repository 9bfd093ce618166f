"""A stop reaches the model's task at once: no timer, tick or poll lies between (SPEC 8.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from midstream.protocol import calls
from midstream.protocol.model import ToolPart
from midstream.protocol.values import Value
from midstream.server import Turn
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import House, Street, in_simulation

MOST_SECONDS = 0.1
HOUR = 3_600.0


async def for_ever() -> None:
    """Be a request to a model that never answers."""
    await asyncio.get_running_loop().create_future()


async def between_steps(turn: Turn) -> None:
    """Wait for a model, with nothing open."""
    await for_ever()


async def in_a_text(turn: Turn) -> None:
    """Wait for the next token of a text."""
    async with turn.step() as step, step.text() as text:
        await text.append("so far")
        await for_ever()


async def in_arguments(turn: Turn) -> None:
    """Wait for the rest of a tool's arguments."""
    async with turn.step() as step:
        call = await step.tool("t")
        await call.append_input('{"so": "f')
        await for_ever()


async def in_a_tool(turn: Turn) -> None:
    """Wait for a tool that executes."""
    async with turn.step() as step:
        call = await step.tool("t", input=1)

    async def never(given: Value) -> Value:
        await for_ever()
        return given

    await call.execute(never)


async def in_an_approval(turn: Turn) -> None:
    """Wait for a person."""
    async with turn.step() as step:
        call = await step.tool("t", input=1)
    await turn.ask_approval(call, title="May I?")


async def in_many_tasks(turn: Turn) -> None:
    """Wait for several models at once."""
    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(for_ever())


async def ahead_of_the_readers(turn: Turn) -> None:
    """Stream faster than anything is published: the tick is an hour long."""
    async with turn.step() as step, step.text() as text:
        while True:
            await text.append("x" * 10_000)


STATES: list[Callable[[Turn], Awaitable[None]]] = [
    between_steps,
    in_a_text,
    in_arguments,
    in_a_tool,
    in_an_approval,
    in_many_tasks,
    ahead_of_the_readers,
]


async def cancelled_after(street: Street, house: House, end: Callable[[], Awaitable[object]]) -> float:
    """Let a turn come to rest, end it, and return the seconds until its agent was cancelled."""
    await asyncio.sleep(10)
    start = street.loop.time()
    await end()
    await house.agents.finished(HOUR)
    return street.loop.time() - start


@in_simulation
async def test_a_stop_reaches_the_agent_without_a_timer_wherever_it_waits(street: Street) -> None:
    """Text is published hourly here, and still nothing has to wait for that."""
    for agent in STATES:
        cancelled: list[str] = []

        async def watched(
            turn: Turn,
            agent: Callable[[Turn], Awaitable[None]] = agent,
            cancelled: list[str] = cancelled,
        ) -> None:
            with pytest.raises(asyncio.CancelledError) as stopped:
                await agent(turn)
            cancelled.append(turn.turn_id)
            raise stopped.value

        async with street.house(watched, settings=Settings(tick_seconds=HOUR)) as house:
            session_id = agent.__name__
            await house.create(session_id)
            turn_id = str((await house.prompt("m", session_id=session_id)).turn_id)
            params = calls.StopParams(session_id=session_id, turn_id=turn_id)
            stop = partial(house.call, calls.StopResult, "stop", params)
            took = await cancelled_after(street, house, stop)
            assert (agent, took < MOST_SECONDS) == (agent, True)
            assert cancelled == [turn_id]


@in_simulation
async def test_an_interrupt_and_a_deletion_reach_the_agent_as_a_stop_does(street: Street) -> None:
    """Whoever ends a turn, its model is not paid for any longer."""
    for method in ("interrupt", "delete"):
        async with street.house(in_a_text, settings=Settings(tick_seconds=HOUR)) as house:
            await house.create(method)
            await house.prompt("m", session_id=method)
            await asyncio.sleep(10)
            [running] = [task for task in asyncio.all_tasks() if task.get_name().startswith("turn_")]
            start = street.loop.time()
            if method == "interrupt":
                await house.prompt("n", delivery="interrupt", session_id=method)
            else:
                params = calls.SessionParams(session_id=method)
                await house.call(calls.EmptyResult, "sessions.delete", params)
            await asyncio.wait([running])
            assert running.cancelled()
            assert street.loop.time() - start < MOST_SECONDS


@in_simulation
async def test_a_stop_during_tool_input_leaves_a_failed_call_with_what_was_streamed(street: Street) -> None:
    """For readers, in the store, and in what the next turn's agent is given."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin("a")
        step = await turn.step().__aenter__()
        for name in ("one", "two"):
            call = await step.tool("t", tool_call_id=name)
            await call.append_input('{"so": "f')
        assert (await house.stop(turn.turn_id)).stopped
        following = await house.begin("b")
        for messages in (await house.equal(recorder), (await following.context()).messages):
            tools = [part for message in messages for part in message.parts if isinstance(part, ToolPart)]
            assert [(tool.tool_call_id, tool.state, tool.error, tool.input_text) for tool in tools] == [
                ("one", "failed", "turn_stopped", '{"so": "f'),
                ("two", "failed", "turn_stopped", '{"so": "f'),
            ]
