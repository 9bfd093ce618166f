"""Where a chat is drawn: what every screen can do, and the plain one for pipes and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TextIO

from midstream.cli.pieces import Heading, Line, Piece, Text, Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS: dict[Tone, str] = {
    "note": "·",
    "tool": "⚙",
    "good": "✓",
    "ask": "?",
    "warning": "!",
    "error": "✗",
}
"""The first character of a line, for those who see no colour."""


class Screen(Protocol):
    """Draws pieces in order."""

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Draw pieces after all that was drawn before."""
        ...

    async def state(self, link: str, activity: str) -> None:
        """Say how the connection stands, and what the agent does; the last texts count."""
        ...

    async def asking(self, *, question: bool) -> None:
        """Say whether the next line answers a question."""
        ...


class PlainScreen:
    """Writes plain text; what streams is written as it comes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._column = 0
        self._link = ""
        self._part: str | None = None

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Write pieces."""
        for piece in pieces:
            match piece:
                case Heading():
                    self._line(f"[{piece.who}]")
                case Line():
                    self._line(f"{MARKS[piece.tone]} {piece.text}")
                case Text():
                    self._text(piece)
        self._out.flush()

    async def state(self, link: str, activity: str) -> None:  # noqa: ARG002 - it says itself what it does
        """Write how the connection stands, where that changed."""
        if link != self._link:
            self._link = link
            self._line(f"{MARKS['note']} {link}")
            self._out.flush()

    async def asking(self, *, question: bool) -> None:
        """Do nothing: there is no input line to mark."""

    def _text(self, piece: Text) -> None:
        if self._part != piece.part_id:
            self._end_line()
            self._part = piece.part_id
            self._write("(thinking) " if piece.kind == "reasoning" else "")
        self._write(piece.text)
        if piece.done:
            self._end_line()
            self._part = None

    def _line(self, text: str) -> None:
        self._end_line()
        self._write(f"{text}\n")

    def _end_line(self) -> None:
        if self._column:
            self._write("\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        if text:
            self._column = 0 if text.endswith("\n") else 1
