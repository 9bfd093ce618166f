"""The command `midstream worker`: runs an agent's turns for a server, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, TextIO

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.cli.stopping import deaf_tasks, stop_signals
from midstream.server.agents import AgentUnavailable, agent_named
from midstream.worker import ConnectionRejected, MidstreamError, Worker, WorkerOptions

if TYPE_CHECKING:
    from midstream.client.credentials import Token

WORKER_REPLACED = 4506
"""The close code that another worker of the same name brings (SPEC 11.3)."""
WORKING = "Working for"
"""How the line begins that says for whom; who starts a worker can wait for it."""


async def work(  # noqa: PLR0913  # each is an option of the command
    url: str,
    agent: str,
    *,
    name: str | None,
    concurrency: int,
    resume: bool,
    drain_seconds: float,
    speed: float,
    out: TextIO,
    token: Token | None = None,
) -> None:
    """Work until the first SIGINT or SIGTERM, then let turns end; a second one ends the process at once.

    Raises:
        CommandFailed: the agent cannot be used, the server does not take workers or this one, or another
            worker took its name.

    """
    try:
        function = agent_named(agent, speed=speed)
        options = WorkerOptions(token=token)
        worker = Worker(url, function, name=name, concurrency=concurrency, resumes=resume, options=options)
    except (AgentUnavailable, ValueError) as error:
        raise CommandFailed(str(error), code=MISUSED) from error
    with stop_signals() as stopped:
        _say(out, f"Connecting to {url} ...")
        running = asyncio.create_task(worker.run())
        told = asyncio.create_task(stopped.wait())
        known = asyncio.create_task(worker.registered.wait())
        await asyncio.wait({running, told, known}, return_when=asyncio.FIRST_COMPLETED)
        if known.done():
            _say(out, f"{WORKING} {url} as {worker.name} (agent {agent}). Ctrl-C stops it.")
            await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
        known.cancel()
        if stopped.is_set():
            _say(out, "Stopping: turns that run may end. Ctrl-C again stops at once.")
            await worker.drain(drain_seconds)
        told.cancel()
        try:
            await running
        except ConnectionRejected as error:
            raise CommandFailed(_rejected(error, worker.name)) from error
        except MidstreamError as error:
            raise CommandFailed(str(error)) from error
        if await deaf_tasks():
            os._exit(0)  # asyncio.run would wait for them for ever


def _rejected(error: ConnectionRejected, name: str) -> str:
    if error.details.get("close_code") != WORKER_REPLACED:
        return str(error)
    return f"Another process works as {name!r} now, so this one stops. Give each worker a --name of its own."


def _say(out: TextIO, text: str) -> None:
    out.write(f"{text}\n")
    out.flush()
