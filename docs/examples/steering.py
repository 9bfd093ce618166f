"""An agent that reads what people type while it works, asks questions, and can be stopped at any await."""

import asyncio

from midstream.server import Question, QuestionOption, Turn, TurnFailed


async def agent(turn: Turn) -> None:
    colour = Question(
        question_id="colour",
        question="Which colour?",
        options=[QuestionOption(value="red"), QuestionOption(value="blue")],
    )
    answers = await turn.ask(colour, title="Before I begin", expires_in=600)
    if not answers.answered:
        raise TurnFailed("no_answer", "Nobody chose a colour in ten minutes.", recoverable=True)
    painting = await turn.action("paint", f"Painting it {answers.values['colour']}")
    for coat in range(1, 4):
        async with turn.step() as step, step.text() as text:
            await text.append(f"Coat {coat}. ")
            await asyncio.sleep(0.01)
        for message in await turn.take_inputs():
            async with turn.step() as step, step.text() as text:
                await text.append(f"You added {len(message.parts)} part(s); I go on with that in mind. ")
    await painting.complete(title="Painted")
