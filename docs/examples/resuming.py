"""Goes on where another process stopped: `midstream worker URL resuming:agent --name w --resume`."""

import asyncio

from midstream.agents import ToolCall, Turn
from midstream.protocol.model import TextPart

WORDS = ["One", "turn,", "whoever", "writes", "it,", "and", "each", "word", "once."]


async def agent(turn: Turn) -> None:
    left = turn.calls()  # what another process began; nothing in a turn that begins here
    if not left:
        said = await words_said(turn)
        async with turn.open_step() or turn.step() as step:
            async with next(iter(step.open_texts()), None) or step.text() as text:
                for word in WORDS[said:]:
                    await text.append(f"{word} ")
                    await asyncio.sleep(0.02)
            left = [await step.tool("publish", input=" ".join(WORDS))]
    for call in left:
        await finish(turn, call)


async def words_said(turn: Turn) -> int:
    messages = (await turn.context()).messages if turn.resumed else []
    mine = [
        part for one in messages if one.turn_id == turn.turn_id and one.role == "agent" for part in one.parts
    ]
    return sum(len(part.text.split()) for part in mine if isinstance(part, TextPart))


async def finish(turn: Turn, call: ToolCall) -> None:
    if call.state == "running":  # it was claimed, and may have had its effect
        await call.fail("The worker was lost while it ran this.")
    elif (await turn.ask_approval(call, title="May I publish?")).approved:  # asked once, whoever waits for it
        await call.execute(lambda given: f"Published: {given}")
    else:
        await call.fail("It was not allowed.")
