"""What a chat shows, as data: pieces in order, which a screen draws in its own way."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

Tone: TypeAlias = Literal["note", "tool", "good", "ask", "warning", "error"]
"""What a line is about; a screen chooses its colour."""
Kind: TypeAlias = Literal["text", "reasoning"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Heading(msgspec.Struct, frozen=True):
    """A message begins; ``who`` wrote it."""

    who: str


class Text(msgspec.Struct, frozen=True):
    """Text that continues its part; ``done`` says that the part ends with it. ``text`` may be empty."""

    part_id: str
    kind: Kind
    text: str
    done: bool


class Line(msgspec.Struct, frozen=True):
    """A line of its own."""

    tone: Tone
    text: str


Piece: TypeAlias = Heading | Text | Line


def clean(text: str) -> str:
    """Return text that cannot steer a terminal: no control characters but newline and tab.

    Marks that turn the direction of writing go too: they can make a command look like another.
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n"))
