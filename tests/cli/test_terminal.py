"""In a terminal the input line stays whole, and what streams stands above it until it is finished."""

import asyncio
import fcntl
import io
import os
import pty
import re
import struct
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console

from midstream.cli.pieces import Heading, Line, Text
from midstream.cli.terminal import TerminalScreen
from tests.cli.processes import COMMAND, serving

ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_=>])")
CTRL_C, CTRL_D = b"\x03", b"\x04"


async def drawn(*pieces: Heading | Line | Text) -> str:
    """Return what stands above the input line for good after these pieces."""
    out = io.StringIO()
    screen = TerminalScreen(Console(file=out, width=60))
    await screen.show(pieces)
    return out.getvalue()


async def test_a_block_is_drawn_when_it_is_finished() -> None:
    """What may still change is not: it stands with the input line."""
    begun = await drawn(Heading("agent"), Text("p", "text", "# Title\n\nSome *text", done=False))
    assert "Title" in begun
    assert "Some" not in begun
    ended = await drawn(
        Heading("agent"), Text("p", "text", "Some *te", done=False), Text("p", "text", "xt*", done=True)
    )
    assert ended == "\nagent\n  Some text" + " " * 49 + "\n"


async def test_one_empty_line_stands_between_blocks() -> None:
    """Also before and after a list, a quote or a table."""
    code = "```\none\n\n\ntwo\n```"
    blocks = ("before", "- one\n- two", "> quoted", "| a |\n|---|\n| b |", code, "after")
    shown = await drawn(Heading("agent"), Text("p", "text", "\n\n".join(blocks), done=True))
    lines = [line.strip() for line in shown.split("\n")]
    code_lines = ["", "one", "", "", "two", ""]  # with a margin of its own colour
    expected = [
        "before",
        "",
        "• one",
        "• two",
        "",
        "▌ quoted",
        "",
        "a",
        "─",
        "b",
        "",
        *code_lines,
        "",
        "after",
    ]
    assert lines[1:-1] == ["agent", *expected]


async def test_words_of_people_are_not_markdown() -> None:
    """What somebody typed is shown as it was typed."""
    assert "*text*" in await drawn(Heading("you"), Text("p", "text", "*text*", done=True))


async def test_lines_stand_above_a_text_that_streams() -> None:
    """A tool that starts in the middle of a text does not cut it."""
    out = await drawn(
        Heading("agent"),
        Text("p", "text", "one ", done=False),
        Line("tool", "add …"),
        Text("p", "text", "two", done=True),
    )
    assert out.index("⚙ add …") < out.index("one two")


class Terminal:
    """A pseudo-terminal with the command in it."""

    def __init__(self, process: Process, descriptor: int) -> None:
        """Begin to read what it draws."""
        self.process = process
        self._descriptor = descriptor
        self._drawn = bytearray()
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    @property
    def text(self) -> str:
        """All that was drawn, without colours and movements."""
        return ESCAPES.sub(b"", bytes(self._drawn)).decode(errors="replace")

    def type(self, keys: str | bytes) -> None:
        """Press keys."""
        os.write(self._descriptor, keys.encode() if isinstance(keys, str) else keys)

    async def until(self, text: str, *, after: int = 0) -> int:
        """Wait until a text was drawn; return where it ends, so that the next can be waited for after it."""
        while (at := self.text.find(text, after)) < 0:
            self._changed.clear()
            await self._changed.wait()
        return at + len(text)

    async def prompted(self) -> int:
        """Wait until the first line can be typed; keys before it are still the terminal's own."""
        return await self.until(">", after=await self.until("Ctrl-D leaves"))

    def close(self) -> None:
        """Stop reading."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _read(self) -> None:
        try:
            self._drawn += os.read(self._descriptor, 65_536)
        except OSError:  # the other end is closed
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self._changed.set()


@asynccontextmanager
async def terminal(*arguments: str, folder: Path) -> AsyncGenerator[Terminal]:
    """Run the command in a terminal of 80 by 40."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=folder,
        # a pseudo-terminal does not answer where its cursor stands
        env=os.environ | {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen = Terminal(process, ours)
    try:
        yield screen
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        screen.close()


async def test_a_person_chats_in_a_terminal(tmp_path: Path) -> None:
    """Prompts, an approval, a cleared line, and leaving: the server notices nothing but the end."""
    async with serving(tmp_path) as (_, url), terminal("chat", url, "s", folder=tmp_path) as screen:
        at = await screen.prompted()
        screen.type("hello\r")
        at = await screen.until("I am the demo agent", after=at)
        screen.type("delete\r")
        at = await screen.until("[y]es or [n]o?", after=at)
        screen.type("y, do\r")
        at = await screen.until("approved by local: do", after=at)
        at = await screen.until("I keep no notes.", after=at)
        screen.type("never sent")
        at = await screen.until("never sent", after=at)
        screen.type(CTRL_C)
        screen.type("use a tool\r")
        at = await screen.until("3 words", after=at)
        screen.type(CTRL_D)
        assert await screen.process.wait() == 0
    assert "Traceback" not in screen.text
    assert screen.text.count("**") == 0


async def test_ctrl_c_on_an_empty_line_leaves(tmp_path: Path) -> None:
    """As Ctrl-D does, and as /quit."""
    for keys in (CTRL_C, CTRL_D, b"/quit\r"):
        async with serving(tmp_path) as (_, url), terminal("chat", url, "s", folder=tmp_path) as screen:
            await screen.prompted()
            screen.type(keys)
            assert await screen.process.wait() == 0
        assert "Traceback" not in screen.text
