"""What a typed line means: words for the agent, or a command that begins with a slash. Pure."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

CommandName: TypeAlias = Literal[
    "answer", "approvals", "cancel", "earlier", "help", "later", "queue", "quit", "stop"
]

HELP: dict[CommandName, str] = {
    "stop": "stop the turn that runs, and take back what you queued",
    "queue": "say what waits for its turn",
    "cancel": "take back the last input that waits (/cancel all: all of yours)",
    "earlier": "show earlier messages",
    "later": "leave a question open and type something else",
    "answer": "come back to a question that was left open",
    "approvals": "give approvals without being asked (/approvals always), or be asked (/approvals ask)",
    "help": "this list",
    "quit": "leave; the turn goes on without you",
}
"""The commands, in the order in which they are explained."""

_NAMES: dict[str, CommandName] = {
    **{name: name for name in HELP},
    "q": "quit",
    "exit": "quit",
    "?": "help",
}


class Words(msgspec.Struct, frozen=True):
    """A prompt, or an answer where something is asked."""

    text: str


class Command(msgspec.Struct, frozen=True):
    """A command and the word after it, which may be empty."""

    name: CommandName
    argument: str


class Unknown(msgspec.Struct, frozen=True):
    """A slash and a word that is no command."""

    word: str


Typed: TypeAlias = Words | Command | Unknown


def read_line(line: str) -> Typed | None:
    """Return what a line means; None for one without content.

    Two slashes at its start send one: ``//etc`` is the prompt ``/etc``.
    """
    text = line.strip()
    if not text:
        return None
    if text.startswith("//"):
        return Words(text[1:])
    if not text.startswith("/"):
        return Words(text)
    word, _, argument = text[1:].partition(" ")
    name = _NAMES.get(word.lower())
    return Unknown(word) if name is None else Command(name, argument.strip())
