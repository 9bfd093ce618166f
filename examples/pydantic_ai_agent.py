"""An agent of Pydantic AI, which runs its own tools: here everybody sees them, and allows what is asked.

MODEL names the model as Pydantic AI does (openai:gpt-5.4-mini); its provider's key is in the environment.
"""

import asyncio
import os
from collections.abc import AsyncIterable

from pydantic_ai import (
    Agent,
    AgentStreamEvent,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolDenied,
)

from midstream.adapters import Fed
from midstream.adapters.compose import compose
from midstream.agents import ToolCall, Turn

assistant = Agent(
    os.environ.get("MODEL", "openai:gpt-5.4-mini"),
    instructions="You keep a list of things to do.",
    output_type=[str, DeferredToolRequests],
    defer_model_check=True,
)
to_do = ["Write to Ada.", "Water the plants."]


@assistant.tool_plain
async def read_list() -> list[str]:
    """Read the list of things to do."""
    return to_do


@assistant.tool_plain(requires_approval=True)
async def strike(item: str) -> str:
    """Strike an item from the list."""
    to_do.remove(item)
    return "Done."


async def agent(turn: Turn) -> None:
    """Answer one prompt: run the assistant, and go on with what people allowed until it has answered."""
    fed = Fed()

    async def show(_: RunContext[object], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Show one response, or one batch of tools; a tool is claimed on disk before it executes."""
        nonlocal fed
        async with turn.step() as step:
            fed = await step.feed(events)

    history, results = compose(await turn.context(), "pydantic-ai"), None
    while True:
        run = await assistant.run(
            message_history=history, deferred_tool_results=results, event_stream_handler=show
        )
        if isinstance(run.output, DeferredToolRequests):
            history, results = run.all_messages(), await decided(turn, fed)
        elif await turn.take_inputs():  # what was said meanwhile is answered too
            history, results = compose(await turn.context(), "pydantic-ai"), None
        else:
            return


async def decided(turn: Turn, fed: Fed) -> DeferredToolResults:
    """Ask people about every call that waits, all at once, and return what they say."""

    async def ask(call: ToolCall) -> bool | ToolDenied:
        approval = await turn.ask_approval(call, title=f"Run {call.tool_name}?", description=str(call.input))
        return approval.approved or ToolDenied(approval.reason or "Not allowed.")

    answers = await asyncio.gather(*(ask(call) for call, _ in fed.approvals))
    ids = (call_id for _, call_id in fed.approvals)
    return DeferredToolResults(approvals=dict(zip(ids, answers, strict=True)))
