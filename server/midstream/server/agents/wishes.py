"""What a prompt to the demo agent asks for, and the few things that it computes. Pure."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from midstream.protocol.model import DataPart
from midstream.protocol.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.model import Message

Wish: TypeAlias = Literal[
    "help", "tool", "dice", "note", "delete", "question", "long", "action", "source", "data", "error", "fail"
]
"""The things that the demo agent can show."""

NOTES = "demo.notes"
"""The data type of the part that has the notes of the session, all of them; the last one counts."""
FIRST_NOTES = ("Water the plants",)
"""What a new session has noted, so that there is something to delete."""

_NAMES: tuple[Wish, ...] = get_args(Wish)
_ITSELF: dict[str, Wish] = {name: name for name in _NAMES}
_WORDS: dict[str, Wish] = {
    **_ITSELF,
    "count": "tool",
    "words": "tool",
    "tools": "tool",
    "roll": "dice",
    "notes": "note",
    "remember": "note",
    "remove": "delete",
    "approval": "delete",
    "questions": "question",
    "ask": "question",
    "pizza": "question",
    "story": "long",
    "actions": "action",
    "sources": "source",
    "crash": "fail",
}
_EVERYTHING: tuple[Wish, ...] = ("tool", "dice", "action", "source", "data", "question", "delete")


def wishes(text: str) -> list[Wish]:
    """Return what a prompt asks for, in its own order and each once; nothing for small talk."""
    found: dict[Wish, None] = {}
    spoken = re.findall(r"[a-z]+", text.lower())
    if spoken and spoken[0] in {"note", "remember"}:
        return ["note"]  # the rest is the note, whatever its words
    for word in spoken:
        if word == "everything":
            found |= dict.fromkeys(_EVERYTHING)
        elif word in _WORDS:
            found[_WORDS[word]] = None
    return list(found)


def noted_text(text: str) -> str:
    """Return what a prompt such as ``note buy milk`` wants to have noted; empty where it says nothing."""
    match = re.match(r"\s*(?:note|remember)\b[\s:]*(.*)", text, re.IGNORECASE | re.DOTALL)
    return " ".join(match.group(1).split()) if match else ""


def notes_in(messages: Iterable[Message]) -> list[str]:
    """Return the session's notes, as the last message that has them tells."""
    notes: Value = list(FIRST_NOTES)
    for message in messages:
        for part in message.parts:
            if isinstance(part, DataPart) and part.data_type == NOTES:
                notes = part.data
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def count_words(text: str) -> dict[str, Value]:
    """Return how many words and characters a text has, and its longest word."""
    found = re.findall(r"\w+(?:['\u2019-]\w+)*", text)
    return {"words": len(found), "characters": len(text), "longest": max(found, key=len, default="")}


def roll(seed: str, *, dice: int = 2) -> list[int]:
    """Return so many throws of a die; the same seed gives the same ones."""
    generator = random.Random(seed)  # noqa: S311 - a game, which a test must be able to repeat
    return [generator.randint(1, 6) for _ in range(dice)]
