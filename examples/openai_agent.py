"""An agent on any OpenAI-compatible endpoint: it keeps a folder of files, and asks before it deletes one.

OPENAI_API_KEY and OPENAI_BASE_URL say where the model is, MODEL which one, FOLDER what it keeps.
"""

import asyncio
import os
from pathlib import Path

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionToolParam

from midstream.adapters.compose import compose
from midstream.agents import ToolCall, Turn, TurnFailed
from midstream.protocol.values import Value

FOLDER = Path(os.environ.get("FOLDER", "files"))
MODEL = os.environ.get("MODEL", "gpt-5.4-mini")
STEPS = 20  # a model that calls tools for ever is stopped

client = AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))  # a server of your own may want no key


def list_files(_: Value) -> Value:
    """List the files."""
    return [path.name for path in sorted(FOLDER.iterdir())]


def delete_file(given: Value) -> Value:
    """Delete one of them, and nothing outside the folder."""
    match given:
        case {"name": str(name)} if Path(name).name == name:
            (FOLDER / name).unlink()
            return f"{name} is deleted."
        case _:
            raise ValueError('Expected {"name": NAME}, with the name of a file in the folder.')


TOOLS = {"list_files": list_files, "delete_file": delete_file}
NAME: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OFFERED: list[ChatCompletionToolParam] = [
    {"type": "function", "function": {"name": "list_files", "description": "List the files."}},
    {
        "type": "function",
        "function": {"name": "delete_file", "description": "Delete a file.", "parameters": NAME},
    },
]


async def run(turn: Turn, call: ToolCall) -> None:
    """Run a tool, once: a call that is claimed is never claimed again, whoever approves how often."""
    if call.tool_name not in TOOLS:
        await call.fail(f"There is no tool {call.tool_name}.")
        return
    if call.tool_name == "delete_file":
        approval = await turn.ask_approval(call, title="Delete a file?", description=str(call.input))
        if not approval.approved:
            await call.fail(f"Not allowed: {approval.reason or approval.status}")
            return
    await call.execute(TOOLS[call.tool_name])


async def agent(turn: Turn) -> None:
    """Answer one prompt: ask the model, show what it streams, run what it calls, ask again."""
    for _ in range(STEPS):
        messages = compose(await turn.context(), "openai-chat")
        async with turn.step() as step:
            fed = await step.feed(
                client.chat.completions.create(
                    model=MODEL,
                    messages=messages,
                    tools=OFFERED,
                    stream=True,
                    stream_options={"include_usage": True},
                )
            )
        fed.raise_for_error()
        await asyncio.gather(*(run(turn, call) for call in fed.calls))
        steering = await turn.take_inputs()  # what was said meanwhile is answered too
        if not steering and not fed.wants_results:
            return
    raise TurnFailed("too_many_steps", f"The model called tools {STEPS} times in a row.")
