"""What must be true when all is quiet: of the file, of every replica, of every promise that was made."""

from collections.abc import Iterable
from typing import Any

from midstream.protocol.model import Message
from midstream.protocol.transitions import TOOL
from tests.simulation import produced
from tests.simulation.diary import Diary
from tests.simulation.oracle import Oracle, Prompt
from tests.simulation.record import TurnRecord
from tests.simulation.script import LAST
from tests.simulation.stored import StoredSession, Wire, canonical

LOST = {"agent_lost", "no_agent"}
"""How a turn fails whose worker did not come (back) in time; watched in `leases.py`."""
OPEN_STATES = {"streaming", "input-streaming", "ready", "waiting-user", "running", "pending"}


class Verdict:
    """Holds the stored sessions against the oracle; whatever does not agree becomes a complaint."""

    def __init__(
        self, stored: dict[str, StoredSession], oracle: Oracle, diary: Diary, *, remote: bool = False
    ) -> None:
        """``remote`` says that the turns were run by workers."""
        self._stored = stored
        self._remote = remote
        self._oracle = oracle
        self._complain = diary.complain

    def pronounce(self) -> None:
        """Check everything but the replicas."""
        for session_id in self._oracle.lasting():
            session = self._stored.get(session_id)
            if session is not None:
                self._session(session_id, session)
        for prompt in self._oracle.prompts.values():
            session = self._lasting(prompt.session_id)
            if session is not None:
                self._prompt(prompt, session)
        for (session_id, interaction_id), part in self._oracle.answers.items():
            session = self._lasting(session_id)
            if session is not None:
                self._answer(interaction_id, canonical(part), session)
        for record in self._oracle.turns.values():
            session = self._lasting(record.session_id)
            if session is not None:
                self._turn(record, session)
        self._ends()

    def replica(self, who: str, session_id: str, first: int, internal: bool, shown: list[Message]) -> None:  # noqa: FBT001 - of the view
        """Hold what a replica shows against the file: byte by byte, and nothing more or less."""
        session = self._stored.get(session_id)
        if session is None:
            return
        first = max(first, session.row["first_sequence"])
        expected = {
            sequence: canonical(message)
            for sequence, message in session.messages.items()
            if sequence >= first and (internal or message["visibility"] == "visible")
        }
        found = {message.sequence: canonical(message) for message in shown}
        for sequence in sorted(expected.keys() | found.keys()):
            if expected.get(sequence) != found.get(sequence):
                self._complain(
                    f"{who}'s {session_id} shows message {sequence} as {found.get(sequence)!r}, "
                    f"the file has {expected.get(sequence)!r}"
                )

    def _lasting(self, session_id: str) -> StoredSession | None:
        record = self._oracle.session(session_id)
        return None if record.deleted else self._stored.get(session_id)

    # The file

    def _session(self, session_id: str, session: StoredSession) -> None:
        row = session.row
        problems = [
            (row["running_turn_id"] is not None, f"runs {row['running_turn_id']}"),
            (bool(session.opened), f"has open messages {session.opened}"),
            (row["dirty"] != 0, "is marked dirty after a clean end"),
            (row["pending_interactions"] != 0, f"counts {row['pending_interactions']} pending interactions"),
            (row["revision"] > row["version"], "has a revision above its version"),
            (row["version"] > row["ceiling"], "has a version above its ceiling"),
        ]
        sequences = sorted(session.messages)
        expected = list(range(row["first_sequence"], row["message_count"] + 1))
        problems.append((sequences != expected, f"has messages {sequences}, not {expected}"))
        queued = [message_id for message_id, (state, _) in session.inputs.items() if state == "queued"]
        problems.append((bool(queued), f"has queued inputs {queued} and no turn"))
        running = [turn_id for turn_id, turn in session.turns.items() if turn["state"] == "running"]
        problems.append((bool(running), f"has running turns {running}"))
        for wrong, what in problems:
            if wrong:
                self._complain(f"session {session_id} {what}")
        last_time = 0
        for sequence, message in sorted(session.messages.items()):
            self._message(message, session)
            if message["created_at"] < last_time or message["updated_at"] < message["created_at"]:
                self._complain(f"the times of {session_id} go back at message {sequence}: {message}")
            last_time = message["created_at"]

    def _message(self, message: Wire, session: StoredSession) -> None:
        parts: list[Wire] = message["parts"]
        name = message["message_id"]
        if [part["sequence"] for part in parts] != list(range(1, len(parts) + 1)):
            self._complain(f"{name} has parts {[part['sequence'] for part in parts]}")
        if any(_state(part) in OPEN_STATES for part in parts) or message.get("state") == "streaming":
            self._complain(f"{name} is open for ever: {message}")
        revisions = session.part_revisions[message["sequence"]]
        if any(revision > message["revision"] for revision in revisions):
            self._complain(f"{name} has revision {message['revision']}, its parts {revisions}")
        if message["revision"] > session.row["version"]:
            self._complain(f"{name} has a revision above the version {session.row['version']}")
        turn = session.turns.get(message.get("turn_id", ""))
        if "turn_id" in message and turn is None:
            self._complain(f"{name} is of {message['turn_id']}, which is not there")
        elif turn is not None and message["revision"] > turn["revision"]:
            self._complain(f"{name} changed after the end of its turn: {message['revision']}, {turn}")

    # Promises to people

    def _prompt(self, prompt: Prompt, session: StoredSession) -> None:
        message_id = prompt.message_id
        found = session.inputs.get(message_id)
        messages = [one for one in session.messages.values() if one["message_id"] == message_id]
        if found is None:
            if prompt.accepted is not None or messages:
                self._complain(f"prompt {message_id} is no input; it was {prompt}, and became {messages}")
            return
        state, turn_id = found
        if prompt.certainly_refused:
            self._complain(f"prompt {message_id} was refused every time, and is {state}")
        if prompt.final is not None and prompt.final != (state, turn_id or ""):
            self._complain(f"prompt {message_id} was said to be {prompt.final}, and is {found}")
        if state == "cancelled":
            self._cancelled(prompt, messages)
        else:
            self._taken(prompt, state, turn_id, messages, session)

    def _cancelled(self, prompt: Prompt, messages: list[Wire]) -> None:
        if not self._oracle.session(prompt.session_id).cancelled:
            self._complain(f"prompt {prompt.message_id} was cancelled, and nobody asked for it")
        if messages:
            self._complain(f"prompt {prompt.message_id} was cancelled, and is {messages}")

    def _taken(
        self, prompt: Prompt, state: str, turn_id: str | None, messages: list[Wire], session: StoredSession
    ) -> None:
        name = f"prompt {prompt.message_id}, {state} in {turn_id},"
        if turn_id not in session.turns:
            self._complain(f"{name} has a turn that is not there")
        if not messages and not self._oracle.session(prompt.session_id).cleared:
            self._complain(f"{name} is no message")
        texts = {prompt.accepted} if prompt.accepted is not None else prompt.texts
        for message in messages:
            if message.get("turn_id") != turn_id or message["parts"][0]["text"] not in texts:
                self._complain(f"{name} became {message}; it said {texts}")

    def _answer(self, interaction_id: str, expected: bytes, session: StoredSession) -> None:
        part = session.interactions.get(interaction_id)
        if part is None and session.row["first_sequence"] == 1:
            self._complain(f"{interaction_id} was answered as {expected!r}, and is lost")
        if part is not None and canonical(part) != expected:
            self._complain(f"{interaction_id} was answered as {expected!r}, the file has {part}")

    def _ends(self) -> None:
        turns = {
            turn_id: turn for session in self._stored.values() for turn_id, turn in session.turns.items()
        }
        for turn_id, cancelled in self._oracle.stops.items():
            turn = turns.get(turn_id)
            if turn is not None and turn["state"] != "stopped":
                self._complain(f"{turn_id} was stopped, and is {turn}")
            for session in self._stored.values():
                for message_id in cancelled:
                    if session.inputs.get(message_id, ("cancelled",))[0] != "cancelled":
                        self._complain(f"{message_id} was cancelled with {turn_id}, and is not")
        for turn_id, told in self._oracle.ends.items():
            turn = turns.get(turn_id)
            if turn is not None and canonical(turn) != canonical(told):
                self._complain(f"{turn_id} was said to have ended as {told}, the file has {turn}")

    # Promises to agents

    def _turn(self, record: TurnRecord, session: StoredSession) -> None:
        turn = session.turns.get(record.turn_id)
        if turn is None:
            self._complain(f"{record.turn_id} was run, and is not there")
            return
        self._outcome(record, turn)
        messages = [one for one in session.messages.values() if one.get("turn_id") == record.turn_id]
        if session.row["first_sequence"] > 1 and not messages:
            return  # cleared
        parts: list[Wire] = [
            part for one in sorted(messages, key=lambda one: one["sequence"]) for part in one["parts"]
        ]
        self._texts(record, parts)
        produced.hold(record, parts, self._complain)
        tools = {part["tool_call_id"]: part for part in parts if part["type"] == "tool"}
        for call_id, (state, value) in record.tools.items():
            self._tool(call_id, state, value, tools.get(call_id))
        asked = {part["request"]["title"]: part["status"] for part in parts if part["type"] == "interaction"}
        for title, status in record.asked.items():
            if asked.get(title) != status:
                self._complain(f"the agent was told that {title} is {status}; it is {asked.get(title)}")
        actions = {part["action_type"]: part["state"] for part in parts if part["type"] == "action"}
        for kind, state in record.actions.items():
            if actions.get(kind) != state and (state != "running" or kind not in actions):
                self._complain(f"action {kind} was {state}; it is {actions.get(kind)}")
        self._there("error", record.errors, (part["code"] for part in parts if part["type"] == "error"))
        self._there("internal message", record.internal, (one["message_id"] for one in messages))
        self._there("absorbed input", record.absorbed, (one["message_id"] for one in messages))
        unheard = [one["message_id"] for one in messages[1:] if one["role"] == "user"]
        if turn["state"] == "completed" and self._remote and len(record.processes) == 1:
            self._there("input", unheard, [*record.absorbed, *record.internal])

    def _outcome(self, record: TurnRecord, turn: Wire) -> None:
        state, code = turn["state"], turn.get("error", {}).get("code")
        words = record.script.split()
        last = words[-1] if words else ""
        if state == "completed" and not record.finished:
            self._complain(f"{turn} completed, and its agent had not come to its end")
        if state == "stopped" and not self._oracle.session(record.session_id).stopped:
            self._complain(f"{turn} was stopped, and nobody asked for it")
        if state == "failed":
            by_script = last in LAST and code == ("scripted" if last == "fail" else "agent_failed")
            lost = (
                code in LOST if self._remote else code == "runtime_interrupted" and self._oracle.interrupted
            )
            if not by_script and not lost:
                self._complain(f"{turn} failed, and neither its script {record.script!r} nor the server did")

    def _texts(self, record: TurnRecord, parts: list[Wire]) -> None:
        for step_id, texts in record.steps.items():
            found = [
                (part["type"], part["text"])
                for part in parts
                if part.get("step_id") == step_id and part["type"] in {"text", "reasoning"}
            ]
            if found != texts:
                self._complain(f"step {step_id} was committed with {texts}; the file has {found}")

    def _tool(self, call_id: str, state: str, value: Any, part: Wire | None) -> None:  # noqa: ANN401 - a value
        if part is None:
            self._complain(f"tool {call_id} was {state}, and is lost")
        elif part["state"] != state and part["state"] not in _after(state):
            self._complain(f"tool {call_id} was {state}, and is {part}")
        elif part["state"] == state == "completed" and canonical(part["output"]) != canonical(value):
            self._complain(f"tool {call_id} was completed with {value}; the file has {part}")
        elif part["state"] == state == "failed" and part["error"] != value:
            self._complain(f"tool {call_id} failed with {value}; the file has {part}")

    def _there(self, what: str, promised: Iterable[str], found: Iterable[str]) -> None:
        missing = set(promised) - set(found)
        if missing:
            self._complain(f"{what} was written, and is lost: {sorted(missing)}")


def _state(part: Wire) -> Any:  # noqa: ANN401 - a value
    return part.get("status") if part["type"] == "interaction" else part.get("state")


def _after(state: str) -> set[str]:
    """Return the states that a tool may come to from a state."""
    found: set[str] = set()
    waiting = [state]
    while waiting:
        for following in TOOL[waiting.pop()]:
            if following not in found:
                found.add(following)
                waiting.append(following)
    return found
