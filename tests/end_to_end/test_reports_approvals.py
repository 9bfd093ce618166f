"""What similar systems get wrong, of approvals: two who answer at once, eight at once, and who comes back.

Real connections and a real file.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import msgspec
import pytest

from midstream.protocol.calls import RespondResult
from midstream.protocol.errors import InteractionClosed
from midstream.protocol.limits import Limits
from midstream.protocol.model import ApprovalResponse, InteractionPart
from midstream.protocol.values import Value
from midstream.server import ToolCall, Turn
from midstream.server.storage.database import Database
from midstream.server.storage.schema import migrate
from tests.end_to_end.approvals import answer, interactions, pending, respond, tools
from tests.end_to_end.stage import OpenStage, Stage, last_text, until_ended
from tests.laws.line import Line
from tests.laws.reader import Reader

DUELS = 1_000
AT_ONCE = 25
"""Duels of one step: as many approvals wait side by side."""
EIGHT = 8
HASTE = Limits(calls_per_second=100_000)


async def without_waiting_for_the_disk(path: str) -> Database:
    """Open a database that waits neither for the disk nor for a thread: this is about order, not death."""
    return await Database.open(path, migrate=migrate, inline=True, synchronous="OFF")


class Executions:
    """A tool that counts how often it was executed with each input."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    async def __call__(self, given: Value) -> Value:
        """Count, and let others run."""
        self.of[str(given)] += 1
        await asyncio.sleep(0)
        return given


async def ask_and_execute(turn: Turn, calls: Sequence[ToolCall], tool: Executions) -> int:
    """Ask about all calls at once; each that was approved is executed, the others fail; count those."""

    async def one(call: ToolCall) -> bool:
        approval = await turn.ask_approval(call, title=str(call.input))
        if approval.approved:
            return (await call.execute(tool)).completed
        await call.fail(f"denied: {approval.reason}")
        return False

    return sum(await asyncio.gather(*(one(call) for call in calls)))


async def test_two_clients_answer_at_the_same_instant_a_thousand_times(open_stage: OpenStage) -> None:
    """Both approve, or one denies: one outcome, at most one execution, and the loser learns whose it is."""
    tool = Executions()

    async def agent(turn: Turn) -> None:
        for start in range(0, DUELS, AT_ONCE):
            async with turn.step() as step:
                calls = [await step.tool("t", input=str(number)) for number in range(start, start + AT_ONCE)]
            await ask_and_execute(turn, calls, tool)

    stage = await open_stage(limits=HASTE, open_database=without_waiting_for_the_disk)
    stage.agent = agent
    await stage.restart()
    watcher, other = await stage.reader(chronicle=None), await stage.reader(chronicle=None)
    handle = await stage.prompt()
    rivals = [await stage.line(), await stage.line()]
    approved: set[str] = set()
    for _ in range(DUELS // AT_ONCE):
        await watcher.line.until(lambda: waiting(watcher) == AT_ONCE)
        duels = [await Duel.begin(rivals, asked, number) for number, asked in enumerate(pending(watcher))]
        for duel in duels:
            winner = await duel.winner()
            if duel.decisions[winner] == "approved":
                approved.add(duel.input)
    for reader in (watcher, other):
        await until_ended(reader, str(handle.turn_id))
        assert len(interactions(reader)) == DUELS
        assert {part.status for part in interactions(reader)} == {"resolved"}
    assert tool.of == Counter(approved)
    states = Counter(part.state for part in tools(watcher).values())
    assert states == {"completed": len(approved), "failed": DUELS - len(approved)}
    assert min(states["completed"], states["failed"]) > 0
    await watcher.prove()


def waiting(reader: Reader) -> int:
    """Return how many interactions wait, as the session says."""
    return reader.replica.session.pending_interactions if reader.replica.session else 0


DECISIONS = {
    0: ("approved", "denied"),
    1: ("approved", "approved"),
    2: ("denied", "approved"),
    3: ("approved", "approved"),
}
"""Whichever of the two lines is the faster one, it approves at times and denies at others."""


class Duel:
    """Two answers to one approval, sent in the same instant over two connections."""

    def __init__(self, asked: InteractionPart, decisions: tuple[str, str]) -> None:
        self.input = str(asked.request.title)
        self.decisions = decisions
        self._asked = asked
        self._answers: dict[int, asyncio.Future[msgspec.Struct]] = {}

    @classmethod
    async def begin(cls, rivals: Sequence[Line], asked: InteractionPart, number: int) -> Duel:
        """Send both: two that approve, or one that denies; now this one first, now the other."""
        duel = cls(asked, DECISIONS[number % 4])
        for who in (0, 1) if number % 4 < 2 else (1, 0):
            response = answer(duel.decisions[who], f"of {who}")
            duel._answers[who] = await respond(rivals[who], asked.interaction_id, response)
        return duel

    async def winner(self) -> int:
        """Wait for both outcomes and hold them against each other; return who won."""
        outcomes = await asyncio.gather(*(self._answers[who] for who in (0, 1)), return_exceptions=True)
        winners = [who for who, outcome in enumerate(outcomes) if isinstance(outcome, RespondResult)]
        assert len(winners) == 1
        won, lost = outcomes[winners[0]], outcomes[1 - winners[0]]
        assert isinstance(won, RespondResult)
        assert isinstance(lost, InteractionClosed)
        response = won.interaction.response
        assert isinstance(response, ApprovalResponse)
        assert response.reason == f"of {winners[0]}"
        assert lost.details == {
            "id": self._asked.interaction_id,
            "status": "resolved",
            "response": msgspec.to_builtins(response),
            "resolved_by": "local",
        }
        return winners[0]


Order = Callable[[list[str]], list[str]]


def drawn(seed: int) -> Order:
    """Return an order of a lot."""
    return lambda names: Random(seed).sample(names, EIGHT)


ORDERS: dict[str, Order] = {
    "as asked": lambda names: names,
    "the last first": lambda names: names[::-1],
    "every other one first": lambda names: names[1::2] + names[::2],
    "from both ends": lambda names: [names[n // 2 if n % 2 else -1 - n // 2] for n in range(EIGHT)],
    "from the middle": lambda names: sorted(names, key=lambda name: abs(names.index(name) * 2 - 7)),
    **{f"drawn {seed}": drawn(seed) for seed in range(2)},
}


async def one_by_one(stage: Stage, reader: Reader, names: list[str]) -> None:
    """Answer each when the one before has been seen."""
    for left, name in zip(range(EIGHT - 1, -1, -1), names, strict=True):
        running = reader.replica.running_turn
        assert running is not None
        assert running.phase == "waiting-user"
        await (await respond(reader.line, name, answer("approved", name)))
        assert stage.running.connections
        session = reader.replica.session
        assert session is not None
        assert session.pending_interactions == left


async def in_one_go(stage: Stage, reader: Reader, names: list[str]) -> None:
    """Send all answers over one connection, and wait for none in between."""
    assert stage.running.connections
    await asyncio.gather(*[await respond(reader.line, name, answer("approved", name)) for name in names])


async def from_eight_devices(stage: Stage, reader: Reader, names: list[str]) -> None:
    """Send each answer over a connection of its own, all at once."""
    assert reader.line.is_open
    lines = [await stage.line() for _ in names]
    sent = [
        await respond(line, name, answer("approved", name)) for line, name in zip(lines, names, strict=True)
    ]
    await asyncio.gather(*sent)


Answering = Callable[[Stage, Reader, list[str]], Awaitable[None]]
WAYS: dict[str, Answering] = {
    "one by one": one_by_one,
    "in one go": in_one_go,
    "from eight devices": from_eight_devices,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ORDERS)
async def test_eight_approvals_of_one_step_in_any_order_are_all_kept_and_continue_once(
    open_stage: OpenStage, order: str, way: str
) -> None:
    """The agent goes on when the last one is answered, and not before."""
    tool, continued = Executions(), list[int]()

    async def agent(turn: Turn) -> None:
        async with turn.step() as step:
            calls = [await step.tool("t", input=str(number)) for number in range(EIGHT)]
        done = await ask_and_execute(turn, calls, tool)
        continued.append(done)
        async with turn.step() as step, step.text() as text:
            await text.append(f"{done} done")

    stage = await open_stage(limits=HASTE)
    stage.agent = agent
    await stage.restart()
    reader = await stage.reader()
    handle = await stage.prompt()
    await reader.line.until(lambda: len(pending(reader)) == EIGHT)
    names = [part.interaction_id for part in pending(reader)]
    assert continued == []
    await WAYS[way](stage, reader, ORDERS[order](names))
    await until_ended(reader, str(handle.turn_id))
    assert (continued, last_text(reader)) == ([EIGHT], f"{EIGHT} done")
    assert [part.response for part in interactions(reader)] == [
        ApprovalResponse(decision="approved", reason=name) for name in names
    ]
    assert tool.of == Counter(str(number) for number in range(EIGHT))
    assert [part.state for part in tools(reader).values()] == ["completed"] * EIGHT
    await stage.proves(reader)
