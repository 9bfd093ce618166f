"""The command `midstream serve`: a server that runs until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, TextIO

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.cli.stopping import deaf_tasks, stop_signals
from midstream.cli.troubles import Troubles
from midstream.server import interpreter
from midstream.server.agents import AgentUnavailable, agent_named
from midstream.server.config import NO_PAGE, REMOTE, ConfigError
from midstream.server.server import RunningServer, Server
from midstream.server.storage.errors import StorageError
from midstream.web import page_folder, unbuilt_folder

if TYPE_CHECKING:
    from midstream.server.config import Config

LISTENING = "Listening on"
"""How the line begins that says where; who starts a server can wait for it."""
ENDING_SECONDS = 15
"""After how long a server that was told to stop ends at the latest, beyond what turns get: with the usual ten
seconds for these it is 25, and who supervises it mostly gives it thirty."""
TAKEN_OVER = (
    "Another process has taken the database over, or its file was deleted, moved or replaced, so this server"
    " stopped."
)


def default_page() -> str:
    """Return the folder of the chat page, or of one that says how to get it."""
    return str(page_folder() or unbuilt_folder())


async def serve(config: Config, *, speed: float, out: TextIO, lab: bool = False) -> None:
    """Serve until the first SIGINT or SIGTERM, then drain; a second one ends the process at once.

    With ``lab`` the page's link lab may kill and restart the process.

    Raises:
        CommandFailed: the agent cannot be used, the port is taken, the database belongs to another
            process or cannot be used; or it was taken over.

    """

    def restart(port: int) -> None:
        # as hard as kill -9: this process image is gone, with its threads, sockets and locks
        moved = [] if config.port else ["--port", str(port)]
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], *moved])  # noqa: S606 - our own command

    try:
        agent = None if config.agent == REMOTE else agent_named(config.agent, speed=speed)
        server = Server(agent=agent, config=config, restart=restart if lab else None)
    except AgentUnavailable as error:
        raise CommandFailed(str(error), code=MISUSED) from error
    with stop_signals(within=config.drain_seconds + ENDING_SECONDS) as stopped:
        try:
            await _until_stopped(server, stopped, out)
        except (ConfigError, StorageError) as error:
            raise CommandFailed(str(error)) from error
        if deaf := await deaf_tasks():
            # asyncio.run would wait for them for ever; all that the server had to do is done
            many = "1 task" if deaf == 1 else f"{deaf} tasks"
            _say(out, f"{many} of the agent would not be cancelled: it ends with this process.")
            os._exit(0)


async def _until_stopped(server: Server, stopped: asyncio.Event, out: TextIO) -> None:
    interpreter.tune()
    asyncio.get_running_loop().set_exception_handler(Troubles())
    async with server.listen() as running:
        what = f"agent {server.config.agent}, database {server.config.database}"
        _say(out, f"{LISTENING} {running.url} ({what}). Ctrl-C stops it.")
        if server.config.page != NO_PAGE:
            _say(out, f"The chat page is at {running.page_url}")
        if not await _told_to_stop(stopped, running):
            raise CommandFailed(TAKEN_OVER)
        _say(out, "Stopping: turns that run may end. Ctrl-C again stops at once.")
        await running.drain()


async def _told_to_stop(stopped: asyncio.Event, running: RunningServer) -> bool:
    """Wait until the server is to stop; return False where it lost its database."""
    told, lost = asyncio.create_task(stopped.wait()), asyncio.create_task(running.closed())
    try:
        done, _ = await asyncio.wait({told, lost}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
        lost.cancel()
    return told in done


def _say(out: TextIO, text: str) -> None:
    out.write(f"{text}\n")
    out.flush()
