"""Agents whose turns are traced; without tracing there are none of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.protocol.agent_calls import AttachParams, AttachResult
    from midstream.protocol.agents import Write
    from midstream.protocol.frames import DetachCode
    from midstream.protocol.model import Message, Turn
    from midstream.server.sessions.commands import WorkerLink
    from midstream.server.sessions.projection import FinishedDraft
    from midstream.server.sessions.services import Agents, Run
    from midstream.server.sessions.state import LoadedState
    from midstream.server.storage.records import AttachmentRow
    from midstream.server.tracing import Tracing, TurnTrace


class TracedAgents:
    """Passes everything on, and makes a span of each turn."""

    def __init__(self, agents: Agents, tracing: Tracing) -> None:
        """Trace what these agents run."""
        self.outlive_server = agents.outlive_server
        self._agents = agents
        self._tracing = tracing

    def start(
        self, state: LoadedState, turn: Turn, prompt: Message | None, kept: AttachmentRow | None
    ) -> Run:
        """Begin to run a turn; an agent in this process runs inside the turn's span."""
        trace = self._tracing.turn(state.loop.session_id, turn.turn_id)
        with trace.current:
            run = self._agents.start(state, turn, prompt, kept)
        run.watch(trace.wrote)
        return _TracedRun(run, turn.turn_id, trace)


class _TracedRun:
    """Passes everything on, and ends the span."""

    def __init__(self, run: Run, turn_id: str, trace: TurnTrace) -> None:
        self._run = run
        self._turn_id = turn_id
        self._trace = trace
        self._state = ""

    def mark(self) -> AttachmentRow | None:
        return self._run.mark()

    def stored(self, mark: AttachmentRow) -> None:
        self._run.stored(mark)

    def committed(self, mark: AttachmentRow | None, finished: FinishedDraft) -> None:
        for turn in finished.turns:
            if turn.turn_id == self._turn_id:
                self._state = turn.state
        self._run.committed(mark, finished)

    def ending(self) -> None:
        self._run.ending()

    def watch(self, wrote: Callable[[Write], None]) -> None:
        self._run.watch(wrote)

    def over(self, code: DetachCode) -> None:
        self._run.over(code)
        self._trace.ended(self._state if code == "ended" else code)

    async def attach(self, link: WorkerLink, params: AttachParams) -> AttachResult:
        return await self._run.attach(link, params)
