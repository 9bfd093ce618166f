"""How a person answers an interaction line by line. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.cli.lines import options_of
from midstream.cli.pieces import Line, clean
from midstream.protocol.model import ApprovalResponse, QuestionAnswer, QuestionResponse

if TYPE_CHECKING:
    from midstream.protocol.model import InteractionPart, InteractionResponse, Question

NOTHING = "-"
"""What stands for an empty answer, so that one slip of Enter answers nothing."""
_APPROVAL = re.compile(r"(y|yes|n|no)\b[\s:,;.!-]*(.*)", re.IGNORECASE | re.DOTALL)


class NoAnswer(Exception):
    """The line does not answer what was asked; the text says what would."""


class Dialog:
    """One interaction, asked question by question until the response is whole."""

    def __init__(self, interaction: InteractionPart) -> None:
        self.interaction = interaction
        self._answers: list[QuestionAnswer] = []

    @property
    def interaction_id(self) -> str:
        """Which interaction this is."""
        return self.interaction.interaction_id

    @property
    def _questions(self) -> list[Question]:
        questions = self.interaction.request.questions
        return [] if questions is UNSET else questions

    def ask(self) -> list[Line]:
        """Return what to show before the next line is typed."""
        if self.interaction.interaction_type == "approval":
            return [Line("ask", "[y]es or [n]o? A reason may follow: n, too risky")]
        question = self._questions[len(self._answers)]
        lines = [Line("ask", clean(question.question))]
        lines += [
            Line("ask", f"  {number}. {option}") for number, option in enumerate(options_of(question), 1)
        ]
        return [*lines, Line("ask", f"({_how(question)})")]

    def answer(self, line: str) -> InteractionResponse | None:
        """Take a typed line; return the whole response, or None where another question follows.

        Raises:
            NoAnswer: the line does not fit; ask again.

        """
        if self.interaction.interaction_type == "approval":
            return _decision(line)
        question = self._questions[len(self._answers)]
        self._answers.append(QuestionAnswer(question_id=question.question_id, value=_value(question, line)))
        if len(self._answers) < len(self._questions):
            return None
        return QuestionResponse(answers=self._answers)


def _decision(line: str) -> ApprovalResponse:
    match = _APPROVAL.fullmatch(line.strip())
    if not match:
        raise NoAnswer("Please type y or n (a reason may follow), or /later to leave this open.")
    return ApprovalResponse(
        decision="approved" if match[1].lower().startswith("y") else "denied",
        reason=match[2].strip() or UNSET,
    )


def _value(question: Question, line: str) -> str | list[str]:
    text = line.strip()
    if not text:
        raise NoAnswer(f"Please type an answer ({_how(question)}), or /later to leave this open.")
    if question.multiple is not True:
        return _choice(question, text)
    items = [] if text == NOTHING else re.split(r"\s*,\s*|\s+(?=\d+\b)", text)
    return list(dict.fromkeys(_choice(question, item) for item in items if item))


def _choice(question: Question, text: str) -> str:
    if question.options is UNSET:
        return "" if text == NOTHING else text
    for number, option in enumerate(question.options, 1):
        names = {str(number), option.value.lower(), option.label.lower() if option.label is not UNSET else ""}
        if text.lower() in names:
            return option.value
    raise NoAnswer(
        f"{clean(text)!r} is not offered. {_how(question).capitalize()}, or /later to leave this open."
    )


def _how(question: Question) -> str:
    several = question.multiple is True
    if question.options is UNSET:
        return f"{'answers with commas between them' if several else 'free text'}; {NOTHING} for nothing"
    if several:
        return f"numbers with commas between them, such as 1, 2; {NOTHING} for none"
    return f"a number from 1 to {len(question.options)}"
