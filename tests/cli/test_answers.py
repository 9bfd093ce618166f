"""A dialog turns typed lines into exactly the response that was meant, or asks again."""

import pytest
from msgspec import UNSET

from midstream.cli.answers import Dialog, NoAnswer
from midstream.protocol.model import (
    ApprovalResponse,
    InteractionPart,
    InteractionRequest,
    Question,
    QuestionAnswer,
    QuestionOption,
    QuestionResponse,
)
from midstream.protocol.parts import check_response

SIZE = Question(
    question_id="size",
    question="How big?",
    options=[
        QuestionOption(value="s", label="Small"),
        QuestionOption(value="l", label="Large", description="36"),
    ],
)
TOPPINGS = Question(
    question_id="top",
    question="What on top?",
    options=[QuestionOption(value="olives"), QuestionOption(value="basil"), QuestionOption(value="ham")],
    multiple=True,
)
WISH = Question(question_id="wish", question="Anything else?")


def asked(*questions: Question) -> InteractionPart:
    """Build a pending interaction; an approval where there are no questions."""
    return InteractionPart(
        interaction_id="i",
        interaction_type="question" if questions else "approval",
        status="pending",
        request=InteractionRequest(title="?", questions=list(questions) if questions else UNSET),
    )


@pytest.mark.parametrize(
    ("line", "response"),
    [
        ("y", ApprovalResponse(decision="approved")),
        (" YES ", ApprovalResponse(decision="approved")),
        ("n", ApprovalResponse(decision="denied")),
        ("no, too risky", ApprovalResponse(decision="denied", reason="too risky")),
        ("y: it is mine", ApprovalResponse(decision="approved", reason="it is mine")),
    ],
)
def test_an_approval_is_answered_by_yes_or_no_and_a_reason(line: str, response: ApprovalResponse) -> None:
    """One letter is enough, and what follows it is the reason."""
    assert Dialog(asked()).answer(line) == response


@pytest.mark.parametrize("line", ["", "maybe", "yesterday", "nothing", "ok"])
def test_an_approval_is_not_given_by_accident(line: str) -> None:
    """Only a clear yes approves, and only a clear no denies."""
    with pytest.raises(NoAnswer):
        Dialog(asked()).answer(line)


def test_all_questions_are_asked_in_order_and_answered_in_one_response() -> None:
    """The response that comes out is one that the server takes."""
    dialog = Dialog(asked(SIZE, TOPPINGS, WISH))
    assert [line.text for line in dialog.ask()] == [
        "How big?",
        "  1. Small",
        "  2. Large (36)",
        "(a number from 1 to 2)",
    ]
    assert dialog.answer("2") is None
    assert dialog.answer("1, basil") is None
    response = dialog.answer("well done, please")
    assert response == QuestionResponse(
        answers=[
            QuestionAnswer(question_id="size", value="l"),
            QuestionAnswer(question_id="top", value=["olives", "basil"]),
            QuestionAnswer(question_id="wish", value="well done, please"),
        ]
    )
    assert response is not None
    check_response(dialog.interaction.request, "question", response)


@pytest.mark.parametrize(
    ("question", "line", "value"),
    [
        (SIZE, "large", "l"),
        (SIZE, "s", "s"),
        (TOPPINGS, "1 3", ["olives", "ham"]),
        (TOPPINGS, "2,2, basil", ["basil"]),
        (TOPPINGS, "-", []),
        (WISH, "-", ""),
        (WISH, " no onions ", "no onions"),
    ],
)
def test_options_are_chosen_by_number_value_or_label(question: Question, line: str, value: object) -> None:
    """A dash stands for nothing where nothing can be chosen."""
    response = Dialog(asked(question)).answer(line)
    assert isinstance(response, QuestionResponse)
    assert response.answers[0].value == value


@pytest.mark.parametrize(
    ("question", "line"), [(SIZE, "3"), (SIZE, ""), (SIZE, "1, 2"), (TOPPINGS, "1, cheese"), (WISH, "")]
)
def test_what_is_not_offered_is_asked_again(question: Question, line: str) -> None:
    """A wrong line answers nothing, and the same question stays open."""
    dialog = Dialog(asked(question))
    with pytest.raises(NoAnswer):
        dialog.answer(line)
    assert dialog.ask()[0].text == question.question
