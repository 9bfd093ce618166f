"""The agent to try midstream with: it shows everything that an agent can do, each on its word.

It answers in Markdown, thinks first, and does what the words of the prompt ask for (see
:mod:`midstream.server.agents.wishes`). It keeps notes in the session itself, so they survive a
restart, and reads what is typed meanwhile between its steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from midstream.agents import TurnFailed
from midstream.protocol.model import TextPart
from midstream.server.agents.pace import Pace, words
from midstream.server.agents.script import FIRST_HINT, HELP, HINT, ORDER, ORDER_HEAD, STORY
from midstream.server.agents.wishes import (
    NOTES,
    Wish,
    count_words,
    noted_text,
    notes_in,
    roll,
    wishes,
)

if TYPE_CHECKING:
    from midstream.agents import Agent, Step, Turn

WORD_S = 0.04
"""Seconds between two words at speed 1: a fast reader keeps up."""
WORK_S = 0.5
"""Seconds that a tool seems to work at speed 1, so that its states can be seen."""


def demo_agent(*, speed: float = 1.0) -> Agent:
    """Return the demo agent. ``speed`` is a factor on its reading pace; 0 does not wait at all."""
    pace = Pace(speed)

    async def agent(turn: Turn) -> None:
        await _Demo(turn, pace).answer()

    return agent


class _Demo:
    """One turn of the demo agent."""

    def __init__(self, turn: Turn, pace: Pace) -> None:
        self._turn = turn
        self._pace = pace
        self._text = turn.prompt_text
        self._wishes: list[Wish] = []

    async def answer(self) -> None:
        """Greet, and then do what was wished for, first come first served."""
        self._wishes = wishes(self._text)
        await self._open()
        while self._wishes:
            await _SHOWS[self._wishes.pop(0)](self)
            await self._listen()

    async def _open(self) -> None:
        async with self._turn.step() as step:
            await self._think(step, _thought(self._wishes))
            if not self._wishes:
                await self._say(step, _small_talk(self._text, first=self._turn.prompt.sequence == 1))

    async def _listen(self) -> None:
        """Take what was typed meanwhile: it is answered below itself, and what it wishes is done after."""
        for message in await self._turn.take_inputs():
            self._text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
            added = wishes(self._text)
            self._wishes.extend(wish for wish in added if wish not in self._wishes)
            then = "I will." if added else "Noted."
            await self.say(f"You add: *{_quoted(self._text)}*. {then}")

    async def help(self) -> None:
        """Say what can be typed."""
        await self.say(HELP)

    async def count(self) -> None:
        """Count the words of the prompt with a tool, whose arguments are streamed."""
        async with self._turn.step() as step:
            call = await step.tool("count_words", title="Count the words")
            for piece in ('{"text": ', f'"{len(self._text)} characters"', "}"):
                await call.append_input(piece)
                await self._pace.wait(WORD_S)
            await call.ready({"text": self._text})
        async with self._turn.step() as step:
            await call.run()
            await self._pace.wait(WORK_S)
            counted = count_words(self._text)
            await call.complete(counted)
            await self._say(
                step,
                f"Your message has **{counted['words']} {'word' if counted['words'] == 1 else 'words'}**; "
                f"the longest is `{counted['longest']}`.",
            )

    async def dice(self) -> None:
        """Roll dice with a tool that shows each throw before the sum is known."""
        async with self._turn.step() as step:
            call = await step.tool("roll_dice", input={"dice": 2}, title="Roll two dice")
        async with self._turn.step() as step:
            await call.run()
            thrown = roll(self._turn.turn_id)
            for count in range(1, len(thrown)):
                await self._pace.wait(WORK_S)
                await call.progress({"thrown": [*thrown[:count]]})
            await self._pace.wait(WORK_S)
            await call.complete({"thrown": [*thrown], "sum": sum(thrown)})
            await self._say(step, f"{' and '.join(map(str, thrown))} make **{sum(thrown)}**.")

    async def note(self) -> None:
        """Keep a note, or list them."""
        notes = notes_in((await self._turn.context()).messages)
        added = noted_text(self._text)
        if not added:
            await self.say(_listed(notes) + "\n\n`note` and some words add one; `delete` deletes the last.")
            return
        action = await self._turn.action("note", "Keeping a note")
        notes.append(added)
        async with self._turn.step() as step:
            await step.data(NOTES, [*notes])
            await self._say(step, f"Noted. {_listed(notes)}")
        await action.complete(title="Kept a note", data={"note": added})

    async def delete(self) -> None:
        """Delete the last note, if a person approves."""
        notes = notes_in((await self._turn.context()).messages)
        if not notes:
            await self.say("There is no note left to delete. `note buy milk` makes one.")
            return
        async with self._turn.step() as step:
            await self._say(step, f"The last note is *{notes[-1]}*. I ask before I delete anything.")
            call = await step.tool("delete_note", input={"note": notes[-1]}, title="Delete a note")
        answer = await self._turn.ask_approval(
            call, title=f"Delete the note “{notes[-1]}”?", description="It cannot be brought back."
        )
        async with self._turn.step() as step:
            if not answer.approved:
                await call.fail(f"denied: {answer.reason}" if answer.reason else "denied")
                await self._say(step, "Then it stays.")
                return
            await call.run()
            await self._pace.wait(WORK_S)
            await call.complete({"deleted": notes.pop()})
            await step.data(NOTES, [*notes])
            await self._say(step, f"Gone. {_listed(notes)}")

    async def question(self) -> None:
        """Take an order by asking: one choice, several, and free text."""
        answers = await self._turn.ask(*ORDER, title="Your pizza", description="It will not really come.")
        if not answers.answered:
            await self.say("No answer, no pizza.")
            return
        row = " | ".join(_joined(answers.values[question.question_id]) for question in ORDER)
        await self.say(f"Here is your order:\n\n{ORDER_HEAD}\n| {row} |\n\nThank you!")

    async def long(self) -> None:
        """Tell a story in steps, and read what is typed meanwhile after each."""
        for chapter in STORY:
            await self.say(chapter)
            await self._listen()

    async def action(self) -> None:
        """Show an action and its progress."""
        action = await self._turn.action("backup", "Making a backup", data={"done": 0})
        for done in (50, 100):
            await self._pace.wait(WORK_S)
            await action.update(description=f"{done} %", data={"done": done})
        await action.complete(title="Made a backup")
        await self.say("An *action* is something that an agent did, for people to see. (There is no backup.)")

    async def source(self) -> None:
        """Name a source."""
        async with self._turn.step() as step:
            await step.source_url("https://www.rfc-editor.org/rfc/rfc6455", title="RFC 6455: WebSocket")
            await self._say(step, "These words came to you by RFC 6455.")

    async def data(self) -> None:
        """Give data that is for the user interface alone."""
        async with self._turn.step() as step:
            await step.data("demo.weather", {"place": "here", "sky": "clear", "celsius": 21})
            await self._say(step, "That was *data*: a user interface may draw it, the model never reads it.")

    async def error(self) -> None:
        """Report an error and go on."""
        await self._turn.error("demo_error", "This error is part of the demonstration.")
        await self.say("I recovered.")

    async def fail(self) -> None:
        """Fail in the middle of a sentence."""
        async with self._turn.step() as step, step.text() as text:
            for word in words("This sentence will never be "):
                await text.append(word)
                await self._pace.wait(WORD_S)
            raise TurnFailed("demo_failed", "The demo agent failed because it was asked to.")

    async def say(self, markdown: str) -> None:
        """Stream an answer in a step of its own."""
        async with self._turn.step() as step:
            await self._say(step, markdown)

    async def _say(self, step: Step, markdown: str) -> None:
        async with step.text() as text:
            for word in words(markdown):
                await text.append(word)
                await self._pace.wait(WORD_S)

    async def _think(self, step: Step, thought: str) -> None:
        async with step.reasoning() as reasoning:
            for word in words(thought):
                await reasoning.append(word)
                await self._pace.wait(WORD_S)


_Show: TypeAlias = Callable[[_Demo], Awaitable[None]]
_SHOWS: dict[Wish, _Show] = {
    "help": _Demo.help,
    "tool": _Demo.count,
    "dice": _Demo.dice,
    "note": _Demo.note,
    "delete": _Demo.delete,
    "question": _Demo.question,
    "long": _Demo.long,
    "action": _Demo.action,
    "source": _Demo.source,
    "data": _Demo.data,
    "error": _Demo.error,
    "fail": _Demo.fail,
}


def _thought(wished: list[Wish]) -> str:
    if wished:
        found = f"I find {', '.join(wished)} in this."
        return found if len(wished) == 1 else f"{found} One after the other."
    return "Nothing to do in this, so I only answer."


def _small_talk(text: str, *, first: bool) -> str:
    said = f"You said “{_quoted(text)}”"
    if first:
        return f"Hello! I am the **demo agent**. {said}.\n\n{FIRST_HINT}"
    return f"{said}. {HINT}"


def _quoted(text: str, *, longest: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _joined(value: str | list[str]) -> str:
    return (value if isinstance(value, str) else ", ".join(value)) or "nothing"


def _listed(notes: list[str]) -> str:
    if not notes:
        return "I keep no notes."
    return "I keep these notes:\n\n" + "\n".join(f"- {note}" for note in notes)
