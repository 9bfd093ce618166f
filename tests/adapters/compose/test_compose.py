"""What holds for every provider that is composed for."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from msgspec import structs
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from midstream.adapters.compose import COMPOSERS, Context, compose
from midstream.adapters.compose.results import (
    ENDINGS,
    MAY_HAVE_RUN,
    NO_ARGUMENTS,
    NO_RESULT,
    NOT_FINISHED,
    NOT_RUN,
)
from midstream.protocol.model import (
    ApprovalResponse,
    ContextPart,
    InteractionPart,
    InteractionRequest,
    Message,
    StepStartPart,
    Summary,
    TextPart,
    ToolPart,
)
from tests import specification
from tests.adapters.compose.histories import HIDDEN, histories, only, said

OWN_WORDS = {"openai-responses": "openai"}
"""The names that metadata is kept under, where they are not those of the composers."""

every = pytest.mark.parametrize("provider", COMPOSERS)


def composed(context: Context | list[Message], provider: str) -> list[object]:
    """Return the input for a provider, as JSON holds it."""
    items = cast("list[object]", compose(context, provider))  # type: ignore[call-overload]  # any of them
    return cast("list[object]", json.loads(json.dumps(items, default=dumped)))


def dumped(message: object) -> object:
    """Return a message of a library's own as that library writes it."""
    if isinstance(message, BaseMessage):
        return message.model_dump(mode="json")
    return ModelMessagesTypeAdapter.dump_python([cast("ModelMessage", message)], mode="json")[0]


@every
@given(history=histories())
def test_data_is_never_shown_to_a_model(provider: str, history: list[Message]) -> None:
    """It is for the user interface alone."""
    assert HIDDEN not in json.dumps(composed(history, provider))


@every
@given(history=histories())
def test_what_another_provider_said_of_its_own_changes_nothing(provider: str, history: list[Message]) -> None:
    """Signatures, ids and encrypted content go back to where they came from, and nowhere else."""
    own = OWN_WORDS.get(provider, provider)
    assert composed(only(history, own), provider) == composed(history, provider)


@every
@given(history=histories(), cut=st.integers(0, 5))
def test_more_messages_leave_the_beginning_as_it_was(provider: str, history: list[Message], cut: int) -> None:
    """A provider's prompt cache holds: only the last of what was sent may have grown."""
    before, after = composed(history[:cut], provider)[:-1], composed(history, provider)
    assert after[: len(before)] == before


@every
@given(words=st.text())
def test_context_is_escaped_exactly_once(provider: str, words: str) -> None:
    """Nothing in it can end its tag, and the model can read what it was."""
    (given,) = texts_in(composed([said("user", ContextPart(tag="page", context=words))], provider))
    held = given.removeprefix("<page>").removesuffix("</page>")
    assert given == f"<page>{held}</page>"
    assert not {"<", ">"} & set(held)
    assert held.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == words


def texts_in(value: object) -> list[str]:
    """Return the texts in what was composed that have a tag in them."""
    if isinstance(value, str):
        return [value] if "<" in value else []
    if isinstance(value, dict):
        return texts_in(list(cast("dict[str, object]", value).values()))
    return [text for item in cast("list[object]", value) for text in texts_in(item)] if value else []


@every
def test_a_summary_stands_before_what_follows_it(provider: str) -> None:
    """It is escaped as context is, and said by people: no provider has another form for it."""
    summary = Summary(
        from_sequence=1, through_sequence=4, text="They spoke of <b> & co.", created_at=1_700_000_000_000
    )
    context = Context(messages=[said("user", TextPart(text="Go on."))], summary=summary)
    (first,) = composed(context, provider)
    assert texts_in(first)[0].startswith("<summary>They spoke of &lt;b&gt; &amp; co.</summary>")
    assert json.dumps(first).index("summary") < json.dumps(first).index("Go on.")


@every
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolPart(tool_call_id="c", tool_name="t", state="input-streaming", input_text='{"a'), NO_ARGUMENTS),
        (ToolPart(tool_call_id="c", tool_name="t", state="ready", input={}), NO_RESULT),
        (ToolPart(tool_call_id="c", tool_name="t", state="waiting-user", input={}), NO_RESULT),
        (ToolPart(tool_call_id="c", tool_name="t", state="running", input={}), NOT_FINISHED),
        (ToolPart(tool_call_id="c", tool_name="t", state="running", input={}, output="half"), "half"),
        (ToolPart(tool_call_id="c", tool_name="t", state="failed", input={}, error="No disk."), "No disk."),
        (ToolPart(tool_call_id="c", tool_name="t", state="failed", raw_input="{x", error="Bad."), "{x"),
        (ToolPart(tool_call_id="c", tool_name="t", state="failed", error="turn_stopped"), NOT_RUN),
        (ToolPart(tool_call_id="c", tool_name="t", state="failed", input=1, error="forked"), MAY_HAVE_RUN),
        (ToolPart(tool_call_id="c", tool_name="t", state="failed", error=" "), "The call failed."),
        (ToolPart(tool_call_id="c", tool_name="t", state="completed", input={}, output="Done."), "Done."),
    ],
)
def test_the_model_is_told_what_became_of_a_call(provider: str, call: ToolPart, told: str) -> None:
    """Why there is no output, and what there was of one."""
    history = [said("user", TextPart(text="Do it.")), said("agent", call, sequence=2)]
    assert json.dumps(told)[1:-1] in json.dumps(composed(history, provider)[-1])


@every
def test_the_model_is_told_that_a_person_refused_and_why(provider: str) -> None:
    """The agent may have failed the call in words of its own, or not at all yet."""
    call = ToolPart(tool_call_id="c", tool_name="t", state="waiting-user", input={})
    refusal = InteractionPart(
        interaction_id="i",
        interaction_type="approval",
        status="resolved",
        request=InteractionRequest(title="May it?"),
        response=ApprovalResponse(decision="denied", reason="Too risky."),
        resolved_at=1,
        resolved_by="ann",
        tool_call_id="c",
    )
    history = [said("user", TextPart(text="Do it.")), said("agent", call, refusal, sequence=2)]
    assert "A person denied this call. Too risky." in json.dumps(composed(history, provider)[-1])


@every
def test_steps_of_one_message_are_answers_of_their_own(provider: str) -> None:
    """A result stands between the call and what the model said when it had read it."""
    call = ToolPart(
        tool_call_id="c", tool_name="t", state="completed", input={}, output="RESULT", step_id="s1"
    )
    answer = TextPart(text="ANSWER", state="done", step_id="s2")
    again = structs.replace(call, step_id="s1")
    for parts in (
        (call, answer),
        (again, StepStartPart(step_id="s1"), structs.replace(answer, step_id="s1")),
    ):
        text = json.dumps(composed([said("user", TextPart(text="Go.")), said("agent", *parts)], provider))
        assert text.index("RESULT") < text.index("ANSWER")


@every
def test_internal_messages_are_for_the_model_too(provider: str) -> None:
    """A recovery hint is stored for nobody else."""
    hint = structs.replace(said("user", TextPart(text="You were cut off.")), visibility="internal")
    assert "You were cut off." in json.dumps(composed([hint], provider))


def test_a_provider_that_is_not_known_is_refused_by_name() -> None:
    """The error says which there are."""
    with pytest.raises(ValueError, match="no composer for 'nobody'; there are openai-chat, openai-responses"):
        compose([], "nobody")  # type: ignore[call-overload]  # that is the test


def test_every_word_that_a_call_ends_with_is_told_in_a_sentence() -> None:
    """The words are the protocol's; a model has not read it."""
    table = specification.text().split("### 8.4 ")[1].split("### 8.5 ")[0]
    rows = [line.split("|") for line in table.splitlines() if "tool `error`" in line]
    assert {row[1].strip(" `") for row in rows} == set(ENDINGS)
