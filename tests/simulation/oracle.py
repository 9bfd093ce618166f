"""What people and agents were told: a few dictionaries, which the store must agree with in the end.

The oracle knows nothing of versions, epochs, syncs or queues. It only keeps promises: this prompt was
accepted, this answer was taken, this turn was stopped, this tool had ended.
"""

from dataclasses import dataclass, field

from midstream.agents import Turn as Run
from midstream.protocol.calls import PromptResult, StopResult
from midstream.protocol.errors import IdempotencyConflict, MidstreamError, Refused
from midstream.protocol.model import InteractionPart, Turn
from tests.simulation.diary import Diary
from tests.simulation.record import TurnRecord

DEFINITE = (Refused, IdempotencyConflict)
"""Refusals that say for certain that a prompt was not taken."""


@dataclass
class Prompt:
    """One `message_id`, whoever sent it and however often.

    Attributes:
        texts: what it was sent with.
        attempts: how often somebody tried.
        refusals: how many of these were certainly not taken.
        accepted: the text that was accepted.
        final: its end, once somebody was told: the state, and the turn if there is one.
    """

    session_id: str
    message_id: str
    texts: set[str] = field(default_factory=set[str])
    attempts: int = 0
    refusals: int = 0
    accepted: str | None = None
    final: tuple[str, str] | None = None

    @property
    def certainly_refused(self) -> bool:
        """Whether every attempt was refused, so that nothing of it may exist."""
        return self.attempts == self.refusals


@dataclass
class SessionRecord:
    """What was tried with one session, whatever came of it.

    Attributes:
        stopped: somebody tried to stop a turn, or interrupted one.
        cancelled: somebody tried to take input back, by a stop or by itself.
        cleared, deleted: somebody tried to.
        fork_of: the session it was copied from.
    """

    session_id: str
    stopped: bool = False
    cancelled: bool = False
    cleared: bool = False
    deleted: bool = False
    fork_of: str | None = None


class Oracle:
    """The promises of one schedule.

    Attributes:
        sessions: by id, all that were asked for.
        prompts: by session and message id.
        answers: by session and interaction id, the outcome that a winner was told.
        turns: by id, what their agents were promised.
        stops: ids of turns that somebody was told he stopped, with the inputs cancelled with each.
        ends: turns that somebody was told had ended.
        interrupted: whether a server ended, or a commit failed, in the middle of work.
    """

    def __init__(self, diary: Diary) -> None:
        self.sessions: dict[str, SessionRecord] = {}
        self.prompts: dict[tuple[str, str], Prompt] = {}
        self.answers: dict[tuple[str, str], InteractionPart] = {}
        self.turns: dict[str, TurnRecord] = {}
        self.stops: dict[str, list[str]] = {}
        self.ends: dict[str, Turn] = {}
        self.interrupted = False
        self._diary = diary

    def session(self, session_id: str) -> SessionRecord:
        """Return the record of a session; a new one if it is the first that is heard of it."""
        return self.sessions.setdefault(session_id, SessionRecord(session_id))

    def lasting(self) -> list[str]:
        """Return the sessions that nobody tried to delete."""
        return [record.session_id for record in self.sessions.values() if not record.deleted]

    def remember_turn(self, record: TurnRecord) -> None:
        """Keep the record that an agent writes; a turn that runs twice is a broken promise."""
        if record.turn_id in self.turns:
            self._diary.complain(f"turn {record.turn_id} was run twice")
        self.turns[record.turn_id] = record

    def recall(self, turn: Run, process: str, generation: int, *, resumes: bool) -> TurnRecord:
        """Return the record of a turn that a process of a worker begins to run, or goes on with.

        It may learn that it holds the turn after one that got it later did.
        """
        record = self.turns.setdefault(
            turn.turn_id, TurnRecord(turn.session_id, turn.turn_id, turn.prompt_text)
        )
        is_latest = generation > record.generation
        record.generation = max(record.generation, generation)
        if is_latest and not turn.resumed and record.has_promises:
            self._diary.complain(f"{process} begins {turn.turn_id}, which {record.processes} have begun")
        if turn.resumed and not resumes:
            self._diary.complain(f"{process} is to go on with {turn.turn_id}, and cannot")
        self._diary.note(process, f"goes on with {turn.turn_id}" if turn.resumed else f"runs {turn.turn_id}")
        record.processes.append(process)
        return record

    def sent(self, session_id: str, message_id: str, text: str) -> Prompt:
        """Note that somebody is about to send a prompt."""
        prompt = self.prompts.setdefault((session_id, message_id), Prompt(session_id, message_id))
        prompt.texts.add(text)
        prompt.attempts += 1
        return prompt

    def refused(self, prompt: Prompt, error: MidstreamError) -> None:
        """Note why an attempt failed; most errors say nothing of what became of it."""
        if isinstance(error, DEFINITE):
            prompt.refusals += 1

    def accepted(self, prompt: Prompt, text: str, result: PromptResult) -> None:
        """Note the answer to a prompt, and hold it against earlier ones."""
        if result.message_id != prompt.message_id:
            self._diary.complain(f"prompt {prompt.message_id} was answered for {result.message_id}")
        if prompt.accepted is not None and prompt.accepted != text:
            self._diary.complain(f"prompt {prompt.message_id} was accepted with two contents")
        prompt.accepted = text
        self.ended(prompt, result)

    def ended(self, prompt: Prompt, result: PromptResult) -> None:
        """Note where an input is; once it has an end, every answer must give the same."""
        if result.state == "queued":
            return
        final = (result.state, result.turn_id or "")
        if prompt.final is not None and prompt.final != final:
            self._diary.complain(f"prompt {prompt.message_id} ended as {prompt.final} and as {final}")
        prompt.final = final

    def answered(self, session_id: str, part: InteractionPart) -> None:
        """Note that a response was taken: the interaction has this outcome and no other."""
        known = self.answers.setdefault((session_id, part.interaction_id), part)
        if known != part:
            self._diary.complain(f"interaction {part.interaction_id} has two outcomes: {known} and {part}")

    def stopped(self, result: StopResult) -> None:
        """Note that somebody was told that he stopped a turn."""
        if result.stopped and result.turn_id:
            if result.turn_id in self.stops:
                self._diary.complain(f"turn {result.turn_id} was stopped twice")
            self.stops[result.turn_id] = result.cancelled

    def saw_end(self, turn: Turn) -> None:
        """Note that somebody was told that a turn ended."""
        known = self.ends.setdefault(turn.turn_id, turn)
        if known != turn:
            self._diary.complain(f"turn {turn.turn_id} ended twice: {known} and {turn}")
