"""The command `midstream chat`: a screen and a keyboard for a chat, for terminals and for pipes."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, TextIO

from midstream.cli.chat import Chat
from midstream.cli.failure import FAILED
from midstream.cli.join import joined
from midstream.cli.keyboard import lines_of
from midstream.cli.pieces import Line
from midstream.cli.screen import PlainScreen
from midstream.cli.terminal import TerminalScreen

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from midstream.client.credentials import Token

OPEN_QUESTION = "The input has ended and a question is open. It stays open: join again to answer it."


async def talk(
    url: str, session_id: str, *, stdin: TextIO, stdout: TextIO, token: Token | None = None
) -> int:
    """Chat until the person leaves, or until the input ends and all that it asked for is done.

    Returns the exit code: 0, or 1 where a piped input did not come to a good end.

    Raises:
        CommandFailed: the session cannot be joined, or was closed by the server.

    """
    async with joined(url, session_id, create=True, token=token) as session:
        if _is_terminal(stdin, stdout):
            screen = TerminalScreen()
            chat = Chat(session, screen)
            await screen.show(
                [Line("note", f"Session {session_id} at {url}. /help explains, Ctrl-D leaves.")]
            )
            with screen.in_use():
                await _run(chat, _from_person(chat, screen))
            return 0
        chat = Chat(session, PlainScreen(stdout))
        await _run(chat, _from_stream(chat, stdin))
        return FAILED if chat.failed and not stdin.isatty() else 0


def _is_terminal(stdin: TextIO, stdout: TextIO) -> bool:
    return stdin.isatty() and stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


async def _run(chat: Chat, reading: Coroutine[None, None, None]) -> None:
    """Show and read until either ends."""
    await chat.draw()
    follow, states, read = (
        asyncio.create_task(work) for work in (chat.follow(), chat.follow_states(), reading)
    )
    try:
        done, _ = await asyncio.wait({follow, read}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (follow, states, read):
            task.cancel()
        await asyncio.gather(follow, states, read, return_exceptions=True)
        await chat.close()


async def _from_person(chat: Chat, screen: TerminalScreen) -> None:
    while (line := await screen.read()) is not None:
        if not await chat.typed(line):
            return


async def _from_stream(chat: Chat, stream: TextIO) -> None:
    # a person at a simple terminal may type while the agent answers; lines of a pipe mean one after the other
    patient = not stream.isatty()
    async for line in lines_of(stream):
        if not await chat.typed(line):
            return
        if patient:
            await chat.settled()
    if not await chat.settled():
        await chat.fail(OPEN_QUESTION)
