"""An agent that does what a test tells it to do, one thing at a time.

Each turn connects to the test at the port ``MIDSTREAM_DIRECTOR``, says which turn it is, and does what each
line of JSON asks for. A line comes back when it is done, so a test waits for what happens, never for time.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, cast

from midstream.agents import Question, QuestionOption, TurnFailed

if TYPE_CHECKING:
    from midstream.agents import Step, TextStream, ToolCall, Turn
    from midstream.protocol.values import Value

Order: TypeAlias = dict[str, "Value"]


async def directed(turn: Turn) -> None:
    """Run one turn as it is told."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["MIDSTREAM_DIRECTOR"]))
    try:
        actor = _Actor(turn)
        said: Value = {"session": turn.session_id, "turn": turn.turn_id, "prompt": turn.prompt_text}
        while True:
            writer.write(json.dumps(said).encode() + b"\n")
            line = await reader.readline()
            if not line:
                return
            order = cast("Order", json.loads(line))
            if order["do"] == "done":
                await actor.end()
                return
            said = await _DEEDS[cast("str", order["do"])](actor, order)
    finally:
        writer.close()


class _Actor:
    """What is open in one turn."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._step: Step | None = None
        self._text: TextStream | None = None
        self._call: ToolCall | None = None

    async def step(self) -> Step:
        """Return the open step; one is begun where there is none."""
        if self._step is None:
            self._step = self._turn.step()
            await self._step.__aenter__()
        return self._step

    async def close_text(self) -> None:
        """End the text that grows."""
        if self._text is not None:
            await self._text.done()
            self._text = None

    async def end(self) -> None:
        """End what is open: the text, and the step, which is stored then."""
        await self.close_text()
        if self._step is not None:
            await self._step.__aexit__(None, None, None)
            self._step = None

    async def say(self, order: Order) -> Value:
        """Append to the text, or the reasoning, that grows."""
        thinks = order["do"] == "think"
        if self._text is not None and self._text.is_reasoning != thinks:
            await self.close_text()
        if self._text is None:
            step = await self.step()
            self._text = step.reasoning() if thinks else step.text()
            await self._text.__aenter__()
        await self._text.append(cast("str", order["text"]))
        return None

    async def commit(self, _order: Order) -> Value:
        """End the step."""
        await self.end()
        return None

    async def inputs(self, _order: Order) -> Value:
        """Take what was typed meanwhile."""
        await self.end()
        return len(await self._turn.take_inputs())

    async def tool(self, order: Order) -> Value:
        """Begin a tool call, whose arguments stream where none are given."""
        await self.close_text()
        step = await self.step()
        title = cast("str | None", order.get("title"))
        name = cast("str", order["name"])
        if "input" in order:
            self._call = await step.tool(name, input=order["input"], title=title)
        else:
            self._call = await step.tool(name, title=title)
        return None

    async def move(self, order: Order) -> Value:
        """Move the tool call on."""
        call = cast("ToolCall", self._call)
        match order["to"]:
            case "input":
                await call.append_input(cast("str", order["text"]))
            case "ready":
                await call.ready(order["input"])
            case "running":
                await call.run()
            case "completed":
                await call.complete(order["output"])
                self._call = None
            case _:
                await call.fail(cast("str", order["error"]))
                self._call = None
        return None

    async def approval(self, order: Order) -> Value:
        """Ask for an approval, of the tool call where there is one."""
        await self.end()
        answer = await self._turn.ask_approval(
            self._call,
            title=cast("str", order["title"]),
            description=cast("str | None", order.get("description")),
        )
        return {"approved": answer.approved, "reason": answer.reason}

    async def ask(self, order: Order) -> Value:
        """Ask one question; with options, one or several of them are chosen."""
        await self.end()
        options = cast("list[str] | None", order.get("options"))
        asked = cast("str", order["question"])
        question = (
            Question(question_id="q", question=asked)
            if options is None
            else Question(
                question_id="q",
                question=asked,
                options=[QuestionOption(value=option) for option in options],
            )
        )
        answers = await self._turn.ask(question, title=cast("str", order["title"]))
        return cast("Value", answers.values["q"]) if answers.answered else None

    async def add(self, order: Order) -> Value:
        """Add a part that is whole at once: a file, a source, data."""
        await self.close_text()
        step = await self.step()
        first, second, name = (cast("str", order.get(key, "")) for key in ("first", "second", "name"))
        match order["what"]:
            case "file":
                await step.file(first, second, filename=name)
            case "source":
                await step.source_url(first, title=name)
            case "document":
                await step.source_document(first, second, filename=name)
            case _:
                await step.data(first, order["data"])
        return None

    async def action(self, order: Order) -> Value:
        """Show an action that is done at once."""
        await self.end()
        action = await self._turn.action("test", cast("str", order["title"]))
        await action.complete(description=cast("str", order["description"]))
        return None

    async def error(self, order: Order) -> Value:
        """Report an error, and go on."""
        await self.end()
        await self._turn.error("test_error", cast("str", order["message"]))
        return None

    async def fail(self, order: Order) -> Value:
        """Fail the turn."""
        raise TurnFailed("test_failed", cast("str", order["message"]))


_DEEDS: dict[str, Callable[[_Actor, Order], Awaitable[Value]]] = {
    "say": _Actor.say,
    "think": _Actor.say,
    "commit": _Actor.commit,
    "inputs": _Actor.inputs,
    "tool": _Actor.tool,
    "move": _Actor.move,
    "approval": _Actor.approval,
    "ask": _Actor.ask,
    "add": _Actor.add,
    "action": _Actor.action,
    "error": _Actor.error,
    "fail": _Actor.fail,
}
