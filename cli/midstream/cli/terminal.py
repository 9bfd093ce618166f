"""A chat in a terminal: what is finished scrolls up, what streams and what is typed stay at the bottom."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import ANSI, FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.styles import Style
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text as Styled

from midstream.cli.blocks import complete_blocks
from midstream.cli.pieces import Heading, Kind, Line, Piece, Text, Tone
from midstream.cli.screen import MARKS

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

_STYLES: dict[Tone, str] = {
    "note": "dim",
    "tool": "cyan",
    "good": "green",
    "ask": "bold yellow",
    "warning": "yellow",
    "error": "bold red",
}
_WHO = {"agent": "bold green", "you": "bold blue", "user": "bold magenta"}
_LINES_BELOW = 4
"""Lines that the input and the state need below what streams."""
_LONGEST_REST = 4_000
"""Characters of an unfinished block that are drawn as Markdown; of a longer one, its end as it is."""


class _Block:
    """Markdown with one empty line between its blocks; rich puts more around lists, quotes and tables."""

    def __init__(self, text: str) -> None:
        self._markdown = Markdown(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        pending = begun = False
        for line in console.render_lines(self._markdown, options):
            if _is_gap(line):
                pending = begun
                continue
            if pending:
                yield Segment.line()
            yield from line
            yield Segment.line()
            begun, pending = True, False


def _is_gap(line: list[Segment]) -> bool:
    """Say whether a line is empty, and not one of a block of code, which has a background."""
    return not any(part.text.strip() or (part.style and part.style.bgcolor) for part in line)


class TerminalScreen:
    """Draws finished blocks for good, and above the input line the part of the text that may still change."""

    def __init__(
        self, console: Console | None = None, *, input: Input | None = None, output: Output | None = None
    ) -> None:
        self._console = console or Console(highlight=False)
        self._rest = ""
        self._gap = False
        self._kind: Kind = "text"
        self._who = ""
        self._state = ""
        self._question = False
        self._prompt: PromptSession[str] = PromptSession(
            message=self._message,
            bottom_toolbar=self._toolbar,
            erase_when_done=True,  # what was typed appears above as a message, when it is one
            history=InMemoryHistory(),
            reserve_space_for_menu=0,
            style=Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack"}),
            input=input,
            output=output,
        )

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Draw pieces; everything that is new appears at once."""
        # what prompt_toolkit offers for this gives the keyboard back to the terminal meanwhile: keys would be
        # echoed into the text, and a Ctrl-D lost
        app = self._prompt.app
        if pieces and app.is_running:
            app.renderer.erase()
            self._draw(pieces)
            app.renderer.request_absolute_cursor_position()
            app.invalidate()
        else:
            self._draw(pieces)

    async def state(self, link: str, activity: str) -> None:
        """Show both below the input line."""
        state = f"{link} · {activity}" if activity else link
        if state != self._state:
            self._state = state
            self._prompt.app.invalidate()

    async def asking(self, *, question: bool) -> None:
        """Mark the input line."""
        self._question = question
        self._prompt.app.invalidate()

    async def read(self) -> str | None:
        """Read a line; None when the person leaves (Ctrl-D, or Ctrl-C on an empty line)."""
        while True:
            try:
                return await self._prompt.prompt_async()
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._prompt.default_buffer.text:
                    return None

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Keep the keyboard from one line to the next; at the end draw what is left of a text."""
        try:
            with self._prompt.input.raw_mode():
                yield
        finally:
            self._print(self._rest)
            self._rest = ""

    def _draw(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Heading():
                    self._who = piece.who
                    self._gap = False
                    self._console.print()
                    self._console.print(Styled(piece.who, style=_WHO.get(piece.who, "bold")))
                case Line():
                    line = Styled(f"{MARKS[piece.tone]} {piece.text}", style=_STYLES[piece.tone])
                    self._console.print(Padding(line, (0, 0, 0, 2)))
                    self._gap = False
                case Text():
                    self._grow(piece)

    def _grow(self, piece: Text) -> None:
        self._kind = piece.kind
        finished, self._rest = complete_blocks(self._rest + piece.text)
        if piece.done:
            finished, self._rest = finished + self._rest, ""
        self._print(finished)

    def _print(self, text: str) -> None:
        if text.strip():
            if self._gap:
                self._console.print()
            self._console.print(self._drawn(text))
            self._gap = True

    def _drawn(self, text: str) -> RenderableType:
        if self._kind == "reasoning":
            return Padding(Styled(text.strip("\n"), style="dim italic"), (0, 0, 0, 2))
        if self._who == "agent":
            return Padding(_Block(text), (0, 0, 0, 2))
        return Padding(Styled(text.strip("\n")), (0, 0, 0, 2))

    def _message(self) -> ANSI:
        sign = "\x1b[1;33m?\x1b[0m " if self._question else "\x1b[1;34m>\x1b[0m "
        if not self._rest.strip():
            return ANSI(sign)
        rest = (
            self._drawn(self._rest)
            if len(self._rest) < _LONGEST_REST
            else Styled(self._rest[-_LONGEST_REST:])
        )
        with self._console.capture() as capture:
            if self._gap:
                self._console.print()
            self._console.print(rest)
        lines = capture.get().rstrip("\n").split("\n")
        room = max(self._console.height - _LINES_BELOW, 1)
        return ANSI("\n".join([*lines[-room:], sign]))

    def _toolbar(self) -> FormattedText:
        return FormattedText([("class:bottom-toolbar", f" {self._state}")])
