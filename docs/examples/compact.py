"""An agent that keeps its context short: it summarizes what was said, and goes on from there."""

from midstream.protocol.model import TextPart
from midstream.server import Turn

MOST = 6


async def agent(turn: Turn) -> None:
    context = await turn.context()
    if len(context.messages) > MOST:
        before = context.messages[-2]  # the one before the prompt
        said = [part.text for m in context.messages[:-1] for part in m.parts if isinstance(part, TextPart)]
        await turn.compact(before.sequence, f"{len(said)} texts, the last: {said[-1]}")  # ask a model here
        context = await turn.context()
    async with turn.step() as step, step.text() as text:
        known = "nothing" if context.summary is None else context.summary.text
        await text.append(f"I know {known}, and {len(context.messages)} message(s).")
