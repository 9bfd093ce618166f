"""A server without descriptors: who is connected is served, others are let in as soon as there are some."""

from __future__ import annotations

import json
import os
import resource
import socket
from pathlib import Path

from midstream.protocol.calls import Page, SessionResult
from tests.cli.processes import serving
from tests.laws.line import Line


def used_by(pid: int) -> int:
    """Return how many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def seconds_of(pid: int) -> float:
    """Return how much processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_a_server_that_runs_out_of_descriptors_goes_on_and_accepts_again(tmp_path: Path) -> None:
    """It says so once, turns in no circle, and says once that it is over."""
    async with serving(tmp_path, "--log-format", "json") as (server, url):
        pid = server.process.pid
        line = await Line.open(url)
        await line.ask(SessionResult, "sessions.create", session_id="s")
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used_by(pid), hard))
        port = int(url.rpartition(":")[2])
        waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        await server.until_note("connections_not_accepted")
        before = seconds_of(pid)
        for _ in range(200):
            await line.ask(Page, "messages", session_id="s")
        assert seconds_of(pid) - before < 5, "it turned in a circle"
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
        for one in waiting:
            one.close()
        another = await Line.open(url)
        assert (await another.ask(SessionResult, "sessions.get", session_id="s")).session.session_id == "s"
        await server.until_note("connections_accepted_again")
        events = [json.loads(one)["event"] for one in server.err.splitlines()]
        assert [one for one in events if "accepted" in one] == [
            "connections_not_accepted",
            "connections_accepted_again",
        ]
        await line.close()
        await another.close()
