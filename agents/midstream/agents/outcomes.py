"""What became of a question to a person, and of a tool (SPEC 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.protocol.model import ApprovalResponse, InteractionStatus, QuestionResponse

if TYPE_CHECKING:
    from midstream.protocol.model import InteractionPart
    from midstream.protocol.values import Value


class Approval:
    """The outcome of an approval."""

    def __init__(self, part: InteractionPart) -> None:
        """Read it from the interaction's terminal state."""
        response = part.response
        self.status: InteractionStatus = part.status
        self.approved = isinstance(response, ApprovalResponse) and response.decision == "approved"
        """True only where somebody said so; an expired approval was not given."""
        self.reason = response.reason if isinstance(response, ApprovalResponse) and response.reason else None
        self.resolved_by = part.resolved_by or None
        self.by_mode = part.approval_mode is not UNSET
        """True where nobody was asked: ``resolved_by`` set the session's mode to ``always-allow``."""


class Answers:
    """The outcome of questions."""

    def __init__(self, part: InteractionPart) -> None:
        """Read it from the interaction's terminal state."""
        response = part.response
        self.status: InteractionStatus = part.status
        self.answered = isinstance(response, QuestionResponse)
        self.values: dict[str, str | list[str]] = (
            {answer.question_id: answer.value for answer in response.answers}
            if isinstance(response, QuestionResponse)
            else {}
        )
        """The answers by question; empty where nobody answered in time."""
        self.resolved_by = part.resolved_by or None


class ToolOutcome:
    """What became of a tool that was executed."""

    def __init__(self, *, output: Value = None, error: str | None = None) -> None:
        """Give the output, or why there is none."""
        self.output = output
        self.error = error
        self.completed = error is None
