"""Who is measured: midstream, what users would take instead, and the kernel's own limit.

Each is a process that obeys the same lines (bench/README.md), and a script by which the load client
subscribes.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bench.machine import MODULES
from midstream.protocol.calls import SubscribeParams
from midstream.protocol.codec import MSGPACK
from midstream.protocol.frames import Hello, Pong

ROOT: Final = Path(__file__).parent.parent
PEERS: Final = ROOT / "bench" / "peers"
OLDEST_NODE: Final = 20


@dataclass(frozen=True)
class Contender:
    """One server under test."""

    name: str
    """As it stands in tables."""
    kind: Literal["plain", "socket.io", "midstream"]
    """How a client subscribes."""
    words: tuple[str, ...]
    """The command, from the root of the repository; a C file of this folder stands for its program."""
    needs: Literal["", "node", "aiohttp", "uvloop"] = ""
    """What has to be installed, beside what the project needs."""

    def command(self, built: Callable[[str], str]) -> list[str]:
        """Return the command; ``built`` makes a program of a C file."""
        return [built(word) if word.endswith(".c") else word for word in self.words]

    def missing(self) -> str:
        """Say why it cannot be run here; empty where it can."""
        if self.needs == "node":
            return _node_missing()
        if self.needs and importlib.util.find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        return ""

    def script(self, groups: int) -> str:
        """Return the script of the load client, one group for each room or session."""
        match self.kind:
            case "plain":
                return _lines(f"group {group}\npath /?room={group}" for group in range(groups))
            case "socket.io":
                return _socket_io(groups)
            case "midstream":
                return midstream_script([session(group) for group in range(groups)])


def session(number: int) -> str:
    """Return the id of a session of the server under test; all are of one length."""
    return f"s{number:05}"


def midstream_script(sessions: Iterable[str], *, limit: int = 50) -> str:
    """Return the script that subscribes to one session in each group."""
    hello = MSGPACK.encode(Hello(1, None, {"name": "bench"}))

    def subscribe(name: str) -> str:
        call = MSGPACK.call(1, "subscribe", SubscribeParams(session_id=name, limit=limit))
        return f"group {name}\nsend {call.hex()}\nawait 1"

    # the tags of frames: what begins with them is no text, and not counted
    ping, refusal, *others = (bytes((0x90 + size, 0xA0 + len(tag))) + tag for size, tag in _TAGS)
    return _lines(
        (
            "path /",
            f"header Sec-WebSocket-Protocol: {MSGPACK.subprotocol}",
            f"ping {ping.hex()} {MSGPACK.encode(Pong(0, 0)).hex()}",
            *(f"skip {tag.hex()}" for tag in others),
            "deltas",
            f"again {refusal.hex()} {AGAIN_MS}",
            f"send {hello.hex()}",
            "await 1",
            *map(subscribe, sessions),
        )
    )


AGAIN_MS: Final = 250
"""After what time a client makes a call again that was refused because the server is overloaded."""
_TAGS: Final = ((2, b"ping"), (3, b"error"), (3, b"mark"), (5, b"change"), (3, b"sync"))
"""How many elements such a frame has, and its tag (SPEC 3.9)."""


def midstream(*options: str, name: str = "midstream", needs: Literal["", "uvloop"] = "") -> Contender:
    """Return midstream's server, started with options of :mod:`bench.peers.midstream_server`."""
    words = (sys.executable, "-m", "bench.peers.midstream_server", *options)
    return Contender(name, "midstream", words, needs)


EPOLL: Final = Contender("C epoll", "plain", ("peers/epoll.c",))
NODE_WS: Final = Contender("node ws", "plain", ("node", "bench/peers/node_ws.mjs"), "node")
SOCKET_IO: Final = Contender("Socket.IO", "socket.io", ("node", "bench/peers/socket_io.mjs"), "node")
BUN: Final = Contender(
    "Bun publish", "plain", ("bench/peers/node_modules/.bin/bun", "bench/peers/bun_publish.mjs"), "node"
)
AIOHTTP: Final = Contender(
    "aiohttp", "plain", (sys.executable, "-m", "bench.peers.aiohttp_server"), "aiohttp"
)
WEBSOCKETS: Final = Contender(
    "websockets broadcast", "plain", (sys.executable, "-m", "bench.peers.websockets_server")
)


def _socket_io(groups: int) -> str:
    paths = (
        f"group {group}\npath /socket.io/?EIO=4&transport=websocket&room={group}\nawait 1\ntext 40\nawait 1"
        for group in range(groups)
    )
    return _lines((f"ping {b'2'.hex()} {b'3'.hex()}", *paths))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _node_missing() -> str:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return "node or npm is not installed"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    if int(said.strip().removeprefix("v").partition(".")[0] or 0) < OLDEST_NODE:
        return f"this node is {said.strip()}, and version {OLDEST_NODE} or newer is needed"
    lock = MODULES / ".package-lock.json"
    if not lock.exists() or lock.stat().st_mtime < (PEERS / "package-lock.json").stat().st_mtime:
        install = [npm, "ci", "--loglevel=error", "--no-audit", "--no-fund"]
        if subprocess.run(install, cwd=PEERS, stdout=subprocess.DEVNULL, check=False).returncode:
            return "npm could not install the peers"
        os.utime(lock)
    return ""
