"""An agent that tries a step again: what the failed attempt streamed is taken back in one change."""

from collections.abc import AsyncIterator

from midstream.server import Turn

ATTEMPTS = 3


async def provider(attempt: int) -> AsyncIterator[str]:
    """Stand in for a model's stream that breaks the first time."""
    yield "The answer is "
    if attempt == 0:
        raise ConnectionError
    yield "42."


async def agent(turn: Turn) -> None:
    for attempt in range(ATTEMPTS):
        async with turn.step() as step:
            try:
                async with step.text() as text:
                    async for piece in provider(attempt):
                        await text.append(piece)
            except ConnectionError:
                await step.abandon()
                continue
        return
    await turn.error("provider_down", f"The model did not answer in {ATTEMPTS} attempts.")
