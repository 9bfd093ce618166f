"""However an agent ends, its turn ends with it, and nothing it does harms the server."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple, cast

import pytest

from midstream.agents import Agent, Turn, TurnEnded, TurnFailed
from midstream.protocol.model import (
    ActionPart,
    ErrorPart,
    InteractionPart,
    TextPart,
    ToolPart,
)
from tests.server.sessions.house import Street, in_simulation, parts_of


async def returns(turn: Turn) -> None:
    """End well."""


async def raises(turn: Turn) -> None:
    """Fail with a secret in the error's text."""
    raise ValueError("the key is hunter2")


async def fails(turn: Turn) -> None:
    """Fail with an error of its own."""
    raise TurnFailed("no_credit", "Your credit is used up.", recoverable=True)


async def exits(turn: Turn) -> None:
    """End the process, or try to."""
    sys.exit(3)


class Strange(BaseException):
    """Not even an Exception."""


async def raises_strangely(turn: Turn) -> None:
    """Fail with what nobody catches."""
    raise Strange


async def cancels_itself(turn: Turn) -> None:
    """Cancel its own task."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


async def writes_nonsense(turn: Turn) -> None:
    """Give what the protocol does not carry."""
    async with turn.step() as step:
        await step.data("d", float("inf"))


async def waits_for_nobody(turn: Turn) -> None:
    """Await something that is cancelled."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def fails_unspeakably(turn: Turn) -> None:
    """Fail with a code that is no text of the protocol."""
    raise TurnFailed("bad\ud800", "text \ud800")


async def fails_with_a_number(turn: Turn) -> None:
    """Fail with a code of the wrong type."""
    raise TurnFailed(5, "text")  # type: ignore[arg-type]  # what an untyped agent does


async def leaves_it_open(turn: Turn) -> None:
    """Return in the middle of everything."""
    step = await turn.step().__aenter__()
    await (await step.text().__aenter__()).append("half")
    await step.tool("t", input=1)
    await turn.action("a", "doing")


def is_no_agent(turn: Turn) -> None:
    """Forget to be async."""


class Outcome(NamedTuple):
    """An agent, and what becomes of its turn: its state, the error's code, and something of its text."""

    agent: Callable[[Turn], object]
    state: str
    code: str | None
    text: str


OUTCOMES = [
    Outcome(returns, "completed", None, ""),
    Outcome(leaves_it_open, "completed", None, ""),
    Outcome(raises, "failed", "agent_failed", "ValueError"),
    Outcome(fails, "failed", "no_credit", "credit is used up"),
    Outcome(exits, "failed", "agent_failed", "SystemExit"),
    Outcome(raises_strangely, "failed", "agent_failed", "Strange"),
    Outcome(cancels_itself, "failed", "agent_failed", "cancelled itself"),
    Outcome(waits_for_nobody, "failed", "agent_failed", "cancelled itself"),
    Outcome(writes_nonsense, "failed", "invalid", "not a finite number"),
    Outcome(fails_unspeakably, "failed", "agent_failed", ""),
    Outcome(fails_with_a_number, "failed", "agent_failed", ""),
    Outcome(is_no_agent, "failed", "agent_failed", "not async"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.agent.__name__)
def test_however_an_agent_ends_its_turn_ends_and_the_session_goes_on(
    outcome: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A failure leaves an error part that names its kind and nothing of its text; the next turn runs."""
    agent, state, code, text = outcome

    async def story(street: Street) -> None:
        async with street.house(cast("Agent", agent)) as house:
            await house.create()
            recorder = await house.subscribe()
            for name in ("a", "b"):
                await house.prompt(name)
                await recorder.until(lambda: recorder.replica.running_turn is None)
                ended = list(recorder.replica.turns.values())[-1]
                assert (ended.state, ended.error.code if ended.error else None) == (state, code)
            messages = await house.equal(recorder)
            errors = [part for message in messages for part in message.parts if isinstance(part, ErrorPart)]
            assert [(error.code, error.scope) for error in errors] == [(code, "turn")] * (2 if code else 0)
            for error in errors:
                assert text in error.message
                assert "hunter2" not in error.message
            for message in messages:
                assert message.state != "streaming"
                for part in message.parts:
                    if isinstance(part, ToolPart):
                        assert part.error == "turn_completed"
                    if isinstance(part, InteractionPart | ActionPart):
                        assert isinstance(part, ActionPart)
                        assert part.state == "failed"

    for seed in (0, 1):
        in_simulation(story)(tmp_path_factory.mktemp("agent"), seed)


@in_simulation
async def test_without_an_agent_every_turn_fails_with_no_agent(street: Street) -> None:
    """The input is not lost: it is a message."""
    async with street.house(has_agent=False) as house:
        await house.create()
        await house.prompt("a")
        while (await house.turn()).turn is not None:
            pass
        _, failed = await house.messages()
        assert parts_of(failed)[0]["code"] == "no_agent"


@in_simulation
async def test_an_agent_that_swallows_its_stop_writes_nothing_more(street: Street) -> None:
    """Whatever it calls, and however long it goes on; the next turn is not disturbed."""
    refused: list[str] = []

    async def stubborn(turn: Turn) -> None:
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        call = await step.tool("t", input=1)
        await text.append("before")
        if turn.prompt.message_id == "b":
            await text.append(" and after")
            return
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3_600)
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: text.append("late"),
            text.done,
            lambda: call.complete(1),
            lambda: turn.error("late", "late"),
            lambda: turn.action("late", "late"),
            lambda: turn.internal(TextPart(text="late")),
            lambda: turn.ask_approval(title="late?"),
            lambda: turn.phase("streaming"),
            turn.take_inputs,
            turn.context,
            step.marker,
            step.abandon,
            turn.step().__aenter__,
        ]
        for write in writes:
            try:
                await write()
            except TurnEnded as error:
                refused.append(type(error).__name__)
        await turn.error("late", "and to the end")

    async with street.house(stubborn) as house:
        await house.create()
        recorder = await house.subscribe()
        first = (await house.prompt("a")).turn_id
        assert isinstance(first, str)
        await recorder.until(lambda: recorder.deltas)
        assert (await house.stop(first)).stopped
        await house.prompt("b")
        await recorder.until(lambda: recorder.replica.running_turn is None)
        await house.agents.finished(None)
        assert len(refused) == 13
        messages = await house.equal(recorder)
        assert [message.role for message in messages] == ["user", "agent", "user", "agent"]
        assert [parts_of(message)[0]["text"] for message in messages[1::2]] == ["before", "before and after"]
        assert recorder.replica.turns[first].state == "stopped"


@in_simulation
async def test_agents_that_do_not_end_do_not_hold_up_the_end_of_the_server(street: Street) -> None:
    """They are cancelled once more, and after a second left alone."""
    for ignored, seconds in ((0, 0), (1, 0), (5, 1)):
        times = iter(range(ignored))
        released = asyncio.Event()

        async def agent(turn: Turn, times: Iterator[int] = times, released: asyncio.Event = released) -> None:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    if next(times, None) is None:
                        raise

        async with street.house(agent) as house:
            await house.create(f"s{ignored}")
            await house.prompt("a", session_id=f"s{ignored}")
            start = street.loop.time()
            await house.agents.finished(5)
            assert street.loop.time() - start == pytest.approx(5)
            await house.registry.stop()
            await house.agents.close()
            assert street.loop.time() - start == pytest.approx(5 + seconds)
            released.set()
