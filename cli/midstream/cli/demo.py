"""The command `midstream demo`: a server with the demo agent, its page, and a chat in the same terminal."""

from __future__ import annotations

import asyncio
import http.client
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast
from urllib.parse import quote

from midstream.cli.failure import CommandFailed
from midstream.cli.serve import LISTENING
from midstream.cli.talk import talk
from midstream.web import page_folder

if TYPE_CHECKING:
    from collections.abc import Generator

HOST = "127.0.0.1"
DRAIN_S = 2
"""Seconds that a turn gets to end when the demo is left."""
STOP_S = DRAIN_S + 8
"""Seconds after which a server that does not end is ended."""


def demo(*, port: int, database: Path, session_id: str, stdin: TextIO, stdout: TextIO) -> int:
    """Chat with the demo agent; starts a server unless one listens already, and then ends it too.

    Returns the exit code of the chat.

    Raises:
        CommandFailed: the port belongs to another program, or the server cannot start.

    """
    url = f"ws://{HOST}:{port}"
    if _answers(port):
        _say(stdout, f"A server listens at {url} already: joining it.")
        _say(stdout, _addresses(port, session_id))
        return asyncio.run(talk(url, session_id, stdin=stdin, stdout=stdout))
    with _leaving_on(signal.SIGTERM, signal.SIGHUP), _server(port, database) as process:
        _say(stdout, _invitation(port, session_id))
        _say(stdout, f"The server is process {process.pid} at {url}, its database {database}.")
        _say(stdout, f"Join from a second terminal: make chat (or: midstream chat {url} {session_id})")
        code = asyncio.run(talk(url, session_id, stdin=stdin, stdout=stdout))
        _say(
            stdout, f"The server stops too. {database} keeps the conversation: the next demo goes on with it."
        )
        return code


def _invitation(port: int, session_id: str) -> str:
    """Say where to look, or how to get what is not there, in lines that stand out."""
    if page_folder() is not None:
        return _addresses(port, session_id)
    return (
        "\n    The chat page is not built; chat here, in the terminal.\n"
        "    To get it, install Node 20 or newer with npm, then: make page\n"
    )


def _addresses(port: int, session_id: str) -> str:
    page, place = f"http://{HOST}:{port}", quote(session_id, safe="")
    return (
        f"\n    Open the chat page:  {page}/\n"
        f"    This conversation:   {page}/s/{place}\n"
        f"    Its link lab:        {page}/s/{place}?lab\n"
    )


def _answers(port: int) -> bool:
    """Say whether a server of midstream listens on the port."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        name = connection.getresponse().headers.get("Server", "")
    except ConnectionRefusedError:
        return False
    except (OSError, http.client.HTTPException):
        name = ""
    finally:
        connection.close()
    if not name.startswith("midstream"):
        raise CommandFailed(f"Port {port} belongs to another program. Stop it, or choose another: --port N.")
    return True


@contextmanager
def _server(port: int, database: Path) -> Generator[subprocess.Popen[str]]:
    """Run a server in a process of its own, from when it listens to the end of the block."""
    command = [sys.executable, "-m", "midstream.cli", "serve", "--agent", "demo", "--host", HOST]
    command += ["--port", str(port), "--database", str(database), "--drain-seconds", str(DRAIN_S)]
    command += ["--log-level", "warning", "--lab"]
    # its log would run through the chat; it is shown where the server does not start
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        # a session of its own, so that Ctrl-C in the chat is not meant for the server
        process = subprocess.Popen(  # noqa: S603 - the command is our own
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        try:
            lines = cast("TextIO", process.stdout)  # a pipe, as asked for
            first = lines.readline()
            if not first.startswith(LISTENING):
                process.wait()
                log.seek(0)
                why = log.read().strip().removeprefix("midstream: ")
                raise CommandFailed(
                    why or f"The server ended with code {process.returncode} before it listened."
                )
            # it says a line or two after each restart by the link lab, and must not wait for a reader
            reading = threading.Thread(target=_pass_over, args=(lines,), daemon=True)
            reading.start()
            yield process
        finally:
            _end(process)


@contextmanager
def _leaving_on(*numbers: signal.Signals) -> Generator[None]:
    """Let a signal leave the block as an exit does, so that the server does not stay behind."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _pass_over(lines: TextIO) -> None:
    for _ in lines:
        pass


def _say(out: TextIO, text: str) -> None:
    out.write(f"{text}\n")
    out.flush()
