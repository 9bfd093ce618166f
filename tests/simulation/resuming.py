"""The agent of a simulated worker: it also goes on with what another process left of a turn.

How far the script was played is in the record, as an application of the real world would have it in a
database of its own. Everything else it learns from the turn.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from midstream.agents.outcomes import Approval
from midstream.protocol.model import InteractionPart
from midstream.protocol.transitions import TERMINAL_INTERACTION
from midstream.worker.writer import RemoteWriter
from tests.simulation.agent import Performance, claim, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.agents import Step, TextStream, ToolCall, Turn
    from tests.simulation.record import TurnRecord

NEEDS_APPROVAL = "delete"
CUT_OFF = "its process was lost"


class WorkerAgent:
    """Runs turns in one process of a worker."""

    def __init__(
        self,
        seed: int,
        process: str,
        recall: Callable[[Turn, str], TurnRecord],
        complain: Callable[[str], None],
    ) -> None:
        """``recall`` gives the record of a turn that a process begins to run."""
        self._seed = seed
        self._process = process
        self._recall = recall
        self._complain = complain

    async def __call__(self, turn: Turn) -> None:
        """Run one turn, or the rest of it."""
        record = self._recall(turn, self._process)
        run = f"{self._process}-{len(record.processes)}"  # a process may lose a turn, and get it again
        rng = Random(f"{self._seed} {turn.prompt.message_id} {run}")
        part = RemotePerformance(turn, record, rng, run, self._complain)
        if turn.resumed:
            await part.take_over()
        words = turn.prompt_text.split()
        for number in range(record.at, len(words)):
            await part.act(number, words[number])
        record.finished = True


def generation_of(turn: Turn) -> int:
    """Return the generation under which a worker holds a turn: the higher, the later it got it."""
    writer = turn._writer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - agents are not told
    assert isinstance(writer, RemoteWriter)
    return writer._attachment.params().generation or 0  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - likewise


class RemotePerformance(Performance):
    """What one process plays of a turn."""

    def __init__(
        self, turn: Turn, record: TurnRecord, rng: Random, process: str, complain: Callable[[str], None]
    ) -> None:
        super().__init__(turn, record, rng, process)
        self._complain = complain
        self._number = 0
        self._asks = 0

    async def act(self, number: int, word: str) -> None:
        """Do the act of this number."""
        self._number, self._asks = number, 0
        await self.do(word)
        self._record.at = max(self._record.at, number + 1)

    async def take_over(self) -> None:
        """Go on with what is open, or let it be undone; then bring the tool calls to their ends."""
        step = self._turn.open_step() if self._rng.random() < 0.6 else None
        if step is not None:
            await self._go_on(step)
        for call in self._turn.calls():
            if call.state != "input-streaming":
                await self._end(call)
        if self._rng.random() < 0.3:
            self._record.at += self._record.at < len(self._record.script.split()) - 1

    # Going on

    async def _go_on(self, step: Step) -> None:
        texts, tools = step.open_texts(), step.open_tools()
        async with step:
            whole = {text.part_id: await self._go_on_with_text(step, text) for text in texts}
            for call in tools:
                self._takes_over(call.part_id, call.input_text)
                await self._ended(call, "ready", None, call.ready({"taken": "over"}))
                await self._end(call)
        self._record.whole |= whole

    async def _go_on_with_text(self, step: Step, text: TextStream) -> str:
        self._takes_over(text.part_id, text.text)
        async with text:
            return text.text + await self._scene(step).stream(text, self._rng.randint(0, 4))

    def _takes_over(self, part_id: str, text: str) -> None:
        problem = self._record.takes_over(self._process, generation_of(self._turn), part_id, text)
        if problem is not None:
            self._complain(problem)

    async def _end(self, call: ToolCall) -> None:
        """Bring a call to its end; one that was claimed may have been executed, and is not executed again."""
        if call.state == "running":
            await self._ended(call, "failed", CUT_OFF, call.fail(CUT_OFF))
            return
        if call.tool_name == NEEDS_APPROVAL:
            title = self._record.titles.get(call.tool_call_id) or self._ask_title(call)
            approval: Approval = await self._turn.ask_approval(call, title=title)
            self._record.asked[title] = approval.status
            if not approval.approved:
                await self._ended(call, "failed", "denied", call.fail("denied"))
                return
        await claim(call, self._record)
        await pause(self._rng)
        await self._ended(call, "completed", "late", call.complete("late"))

    # What no two processes may give twice

    def _ask_title(self, call: ToolCall | None) -> str:
        if call is not None:
            title = f"{self._turn.turn_id} {call.tool_call_id}"
            self._record.titles[call.tool_call_id] = title
            return title
        self._asks += 1
        return f"{self._turn.turn_id} {self._number}.{self._asks}"

    async def _outcome(self, title: str) -> InteractionPart | None:
        if not self._turn.resumed:
            return None
        for message in (await self._turn.context()).messages:
            for part in message.parts:
                if (
                    isinstance(part, InteractionPart)
                    and part.request.title == title
                    and part.status in TERMINAL_INTERACTION
                ):
                    self._record.asked[title] = part.status
                    return part
        return None

    def _title(self) -> str:
        return f"{super()._title()} {self._process}"
