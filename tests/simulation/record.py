"""What the agents of one turn were promised, and what they produced, by however many processes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from midstream.protocol.values import Value


@dataclass
class TurnRecord:
    """What the agent of one turn was promised.

    A turn whose worker is lost may be gone on with by another process, which writes here too.

    Attributes:
        script: what it was to do.
        steps: the texts of each step that was committed, in order: the part's type and all its text.
        tools: how far each tool call came, and its output or error.
        asked: the outcome of each interaction, by title.
        actions: how far each action came, by type.
        errors, internal, absorbed: codes of errors, ids of internal and of absorbed messages.
        finished: whether it came to the script's end.
        at: how many acts of the script are done.
        processes: who ran it, one after another.
        generation: the highest under which one of them got it.
        produced: by part, all that was appended to it, or is about to be.
        whole: by part, a text that another process went on with and that was committed.
        titles: by tool call, the title of the approval that it waits for.
        executed: how often each tool call was executed: claimed, and the claim was acknowledged.
    """

    session_id: str
    turn_id: str
    script: str
    steps: dict[str, list[tuple[str, str]]] = field(default_factory=dict[str, list[tuple[str, str]]])
    tools: dict[str, tuple[str, Value]] = field(default_factory=dict[str, tuple[str, Value]])
    asked: dict[str, str] = field(default_factory=dict[str, str])
    actions: dict[str, str] = field(default_factory=dict[str, str])
    errors: list[str] = field(default_factory=list[str])
    internal: list[str] = field(default_factory=list[str])
    absorbed: list[str] = field(default_factory=list[str])
    finished: bool = False
    at: int = 0
    processes: list[str] = field(default_factory=list[str])
    generation: int = 0
    produced: dict[str, str] = field(default_factory=dict[str, str])
    whole: dict[str, str] = field(default_factory=dict[str, str])
    titles: dict[str, str] = field(default_factory=dict[str, str])
    executed: Counter[str] = field(default_factory=Counter[str])
    _owners: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])

    @property
    def has_promises(self) -> bool:
        """Whether anything was acknowledged to an agent of this turn as stored."""
        return any(
            (self.steps, self.tools, self.asked, self.actions, self.errors, self.internal, self.absorbed)
        )

    def appends(self, process: str, part_id: str, piece: str) -> None:
        """Note what a process is about to append to a part that is its own, if it still is."""
        if self._owners.setdefault(part_id, (0, process))[1] == process:
            self.produced[part_id] = self.produced.get(part_id, "") + piece

    def takes_over(self, process: str, generation: int, part_id: str, text: str) -> str | None:
        """Note that a process goes on with a part that has this text; return what is wrong with that.

        A process may learn that it holds the turn after the next one has learned that it does.
        """
        produced = self.produced.get(part_id, "")
        if self._owners.get(part_id, (0, process))[0] > generation:
            return None
        self._owners[part_id] = generation, process
        self.produced[part_id] = text
        if not produced.startswith(text):
            return f"{process} was given {part_id} of {self.turn_id} as {text!r}, of {produced!r}"
        return None
