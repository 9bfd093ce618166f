"""A server in a process of its own, to be watched and killed by tests.

``python -m tests.end_to_end.child DATABASE AGENT [SETTING=VALUE...]`` serves with an agent of `agents.py`, or
leaves its turns to workers, where AGENT is ``remote``.
The first line of its output is the URL, then one line of JSON for each warning that is logged. It stops in
good order when its input ends. ``DIE_AT`` in its environment says when it kills itself: see `dying.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from midstream.server import Server, logs
from midstream.server.config import Config
from tests.end_to_end import agents, dying


async def main(database: str, agent: str, settings: dict[str, Any]) -> None:
    """Serve until the input ends."""
    logs.configure("json", "warning", stream=sys.stdout)
    open_database = dying.opener(os.environ.get("DIE_AT", ""))
    settings["config"] = Config(agent="remote")  # which an agent of this process wins over
    server = Server(
        agent=agents.AGENTS.get(agent), database=database, open_database=open_database, **settings
    )
    async with server.listen("127.0.0.1", 0) as running:
        os.write(1, f"{running.url}\n".encode())
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        await reader.read()


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[3:])
    asyncio.run(main(sys.argv[1], sys.argv[2], {name: json.loads(value) for name, value in given.items()}))
