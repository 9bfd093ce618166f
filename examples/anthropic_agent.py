"""An agent on Anthropic's Messages API: it thinks, searches the web, and asks people what it must know.

ANTHROPIC_API_KEY says who asks, MODEL which model.
"""

import os

from anthropic import AsyncAnthropic
from anthropic.types import ToolUnionParam
from msgspec import UNSET

from midstream.adapters.compose import compose
from midstream.agents import Question, QuestionOption, ToolCall, Turn, TurnFailed

MODEL = os.environ.get("MODEL", "claude-sonnet-5-5")
STEPS = 20  # a model that calls tools for ever is stopped
PATIENCE = 600  # seconds that a question waits for its answer

client = AsyncAnthropic(api_key=os.environ.get("ANTHROPIC_API_KEY", "none"))

OFFERED: list[ToolUnionParam] = [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},  # Anthropic runs this one itself
    {
        "name": "ask_user",
        "description": "Ask the person you talk to. Give options where there are only a few answers.",
        "input_schema": {
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "options": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["question"],
        },
    },
]


async def ask_user(turn: Turn, call: ToolCall) -> None:
    """Put the model's question to whoever is there, and give it the answer."""
    match call.input:
        case {"question": str(words), **rest}:
            given = rest.get("options")
        case _:
            await call.fail("Expected a question.")
            return
    options = [QuestionOption(value=str(option)) for option in given] if isinstance(given, list) else []
    question = Question(question_id="answer", question=words, options=options or UNSET)
    answers = await turn.ask(question, title="The agent asks", call=call, expires_in=PATIENCE)
    if answers.answered:
        await call.complete(str(answers.values["answer"]))
    else:
        await call.fail("Nobody answered. Go on without.")


async def agent(turn: Turn) -> None:
    """Answer one prompt: ask the model, show what it streams, run what it calls, ask again."""
    for _ in range(STEPS):
        messages = compose(await turn.context(), "anthropic")
        async with turn.step() as step:
            fed = await step.feed(
                client.messages.create(
                    model=MODEL,
                    max_tokens=16_000,
                    messages=messages,
                    tools=OFFERED,
                    thinking={"type": "adaptive"},
                    stream=True,
                )
            )
        fed.raise_for_error()
        for call in fed.calls:
            await ask_user(turn, call)
        steering = await turn.take_inputs()  # what was said meanwhile is answered too
        goes_on = fed.wants_results or fed.raw_reason == "pause_turn"  # a long search, to be gone on with
        if not steering and not goes_on:
            return
    raise TurnFailed("too_many_steps", f"The model called tools {STEPS} times in a row.")
