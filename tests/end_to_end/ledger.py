"""What was acknowledged to anybody, and whether it is all there (SPEC 1.3: G1, G2, G3, G10, G11, G12)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from midstream.protocol.calls import PromptResult, StopResult
from midstream.protocol.merge import Replica
from midstream.protocol.model import ActionPart, InteractionPart, Message, Part, TextPart, ToolPart


class Ledger:
    """Everything that was acknowledged.

    Attributes:
        sent: the text of each prompt by message id, acknowledged or not.
        accepted: the last answer to each acknowledged prompt.
        answers: the interaction part of each acknowledged response, by its id.
        stopped: the turns that a call said it stopped.
        journal: where agents note their commits.
    """

    def __init__(self, journal: Path) -> None:
        self.sent: dict[str, dict[str, str]] = {}
        self.accepted: dict[str, dict[str, PromptResult]] = {}
        self.answers: dict[str, dict[str, InteractionPart]] = {}
        self.stopped: dict[str, set[str]] = {}
        self.journal = journal

    def prompts(self, session_id: str) -> dict[str, str]:
        """Return what was sent to a session, by message id."""
        return self.sent.setdefault(session_id, {})

    def accept(self, session_id: str, result: PromptResult) -> None:
        """Note the answer of a prompt; what is final never changes."""
        accepted = self.accepted.setdefault(session_id, {})
        before = accepted.get(result.message_id)
        if before is not None and before.state != "queued":
            assert (before.state, before.turn_id) == (result.state, result.turn_id)
        accepted[result.message_id] = result

    def stop(self, session_id: str, result: StopResult) -> None:
        """Note the answer of a stop."""
        if result.turn_id:
            self.stopped.setdefault(session_id, set()).add(result.turn_id)
        for message_id in result.cancelled:
            self.accept(session_id, PromptResult(state="cancelled", message_id=message_id))

    def answer(self, session_id: str, part: InteractionPart) -> None:
        """Note the answer of a respond: whoever asks, the outcome is one."""
        answers = self.answers.setdefault(session_id, {})
        assert answers.setdefault(part.interaction_id, part) == part

    def commits(self) -> list[dict[str, Any]]:
        """Return what agents noted; a last line that was cut off was not noted."""
        if not self.journal.exists():
            return []
        text = self.journal.read_text("utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def totals(self) -> Counter[str]:
        """Count what was acknowledged."""
        count: Counter[str] = Counter(commit["kind"] for commit in self.commits())
        count["prompts"] = sum(map(len, self.accepted.values()))
        count["answers"] = sum(map(len, self.answers.values()))
        count["stops"] = sum(map(len, self.stopped.values()))
        return count

    # Checks

    def check(self, replica: Replica) -> None:
        """Hold a session, read whole and at rest, against everything that was acknowledged in it."""
        session_id, messages = replica.session_id, replica.messages()
        self._check_inputs(session_id, messages)
        parts = [part for message in messages for part in message.parts]
        interactions = {part.interaction_id: part for part in parts if isinstance(part, InteractionPart)}
        for name, answered in self.answers.get(session_id, {}).items():
            assert interactions[name] == answered, f"the answer to {name} was lost"
        assert all(turn.state != "running" for turn in replica.turns.values())
        for turn_id in self.stopped.get(session_id, ()):
            assert turn_id not in replica.turns or replica.turns[turn_id].state == "stopped"
        for commit in self.commits():
            if commit["session_id"] == session_id:
                check_commit(commit, messages, parts)

    def _check_inputs(self, session_id: str, messages: list[Message]) -> None:
        """Each acknowledged input is one message, or none where it was cancelled; no other is there."""
        users = Counter(message.message_id for message in messages if message.role == "user")
        assert not [name for name, count in users.items() if count > 1]
        assert set(users) <= set(self.prompts(session_id))
        turns = {message.message_id: message.turn_id for message in messages}
        for name, result in self.accepted.get(session_id, {}).items():
            if result.state == "cancelled":
                assert name not in users, f"{name} was cancelled, and is a message"
                continue
            assert name in users, f"{name} was acknowledged as {result.state}, and was lost"
            if result.turn_id:
                assert turns[name] == result.turn_id


def check_commit(commit: dict[str, Any], messages: list[Message], parts: list[Part]) -> None:
    """Look whether what an agent was told is stored is there."""
    match commit["kind"]:
        case "step":
            texts = [
                part for part in parts if part.step_id == commit["step_id"] and isinstance(part, TextPart)
            ]
            assert [(part.text, part.state) for part in texts] == [(commit["text"], "done")], commit
        case "running" | "completed":
            tool = next(
                part
                for part in parts
                if isinstance(part, ToolPart) and part.tool_call_id == commit["tool_call_id"]
            )
            ended = {"completed"} if commit["kind"] == "completed" else {"completed", "failed"}
            assert tool.state in ended, (commit, tool)
            if commit["kind"] == "completed":
                assert tool.output == commit["output"]
        case "asked":
            asked = next(
                part
                for part in parts
                if isinstance(part, InteractionPart) and part.tool_call_id == commit["tool_call_id"]
            )
            decision = getattr(asked.response, "decision", None)
            assert (decision == "approved") == commit["approved"], (commit, asked)
        case "action":
            done = [part for message in messages for part in message.parts if isinstance(part, ActionPart)]
            assert any(part.state == "completed" for part in done), commit
        case "absorbed":
            message = next(one for one in messages if one.message_id == commit["message_id"])
            assert message.turn_id == commit["turn_id"]
        case _:
            raise AssertionError(commit)
